// attention on the matrix unit: the products of up to 32 rows of q with the keys and values of one partition.
//
// The cache is read where it lies (decision 0003): of K 16 pairs of features by 16 keys are a tile, of V 16 pairs of
// keys by 16 features. Queries are packed as [row][Dp], with zeros behind D. Scores and weights lie as for vectors.
// Copied before use, a step at a time: a last step of D that is not full; the values of the last keys of a sequence,
// because what lies behind them may be anything; and all values of blocks of 16 tokens, since a step takes 32.
#pragma once

#include "amx_product.h"
#include "attention_block.h"

namespace octavo::OCTAVO_LEVEL {

using tile_block = row_block<bfloat16>;

// scores[r][key] = q . k
template <int kRowTiles, int kKeyTiles>
static void score_by_tiles(tile_unit& unit, const tile_block& b) {
    const int64_t units = b.p.layout.head_dim / 2, steps = units / kStepUnits, rest = units % kStepUnits;
    const int64_t q_row_bytes = 2 * b.p.layout.head_dim_padded, k_row_bytes = 4 * b.p.layout.block_size;
    const char* const q = reinterpret_cast<const char*>(b.space.queries) + b.first_row * q_row_bytes;
    for (int64_t stretch = b.first_stretch; stretch < b.last_stretch; ++stretch) {
        int64_t offset;
        const char* const block = b.block_of(stretch, offset);
        const char* const keys = block + b.tile.kv_head * b.p.layout.k_head_bytes + offset * 4;
        clear_sums<kRowTiles, kKeyTiles>(unit);
        multiply_steps<kRowTiles, kKeyTiles>(unit, {q, q_row_bytes, kTileRowBytes},
                                             {keys, k_row_bytes, kStepUnits * k_row_bytes}, steps);
        if (rest > 0) {
            alignas(64) char last[kTileRows][kPanelRowBytes] = {};
            for (int64_t i = 0; i < rest; ++i) {
                std::memcpy(last[i], keys + (steps * kStepUnits + i) * k_row_bytes, kKeyTiles * kTileRowBytes);
            }
            multiply_steps<kRowTiles, kKeyTiles>(unit, {q + steps * kTileRowBytes, q_row_bytes, 0},
                                                 {last[0], kPanelRowBytes, 0}, 1);
        }
        store_sums<kRowTiles, kKeyTiles>(unit, b.space.scores + stretch * b.stretch_size, kPartition);
    }
}

// Blocks of 16 tokens: of the step of 32 keys at either end one half may not have been weighed.
static void clear_outer_weights(const tile_block& b) {
    if (b.stretch_size >= kStepElements) return;
    for (int64_t r = 0; r < b.num_rows; ++r) {
        bfloat16* const weights = b.space.weights + r * kPartition;
        if (b.first_stretch % 2 != 0) {
            std::memset(weights + (b.first_stretch - 1) * b.stretch_size, 0, kTileRowBytes / 2);
        }
        if (b.last_stretch % 2 != 0) std::memset(weights + b.last_stretch * b.stretch_size, 0, kTileRowBytes / 2);
    }
}

static const char* values_of(const tile_block& b, int64_t key, int64_t column) {
    int64_t offset;
    const int64_t stretch = key / b.stretch_size;
    const char* const block = b.block_of(stretch, offset) + b.p.layout.k_bytes;
    const int64_t pair = (offset + key - stretch * b.stretch_size) / 2;
    return block + b.tile.kv_head * b.p.layout.v_head_bytes + 4 * (pair * b.p.layout.head_dim_padded + column);
}

// The values of 32 keys by 32 features, zeros for keys outside those that are scored or behind the sequence.
static void copy_values(const tile_block& b, int64_t first_key, int64_t column, char (*out)[kPanelRowBytes]) {
    for (int64_t i = 0; i < kTileRows; ++i) {
        const int64_t key = first_key + 2 * i;
        if (key < b.first_stretch * b.stretch_size || key >= b.num_keys) {
            std::memset(out[i], 0, kPanelRowBytes);
            continue;
        }
        const char* const source = values_of(b, key, column);
        if (key + 1 < b.num_keys) {
            std::memcpy(out[i], source, kPanelRowBytes);
            continue;
        }
        for (int64_t at = 0; at < kPanelRowBytes; at += 4 * kLanes) {
            const vi pairs = load(reinterpret_cast<const int32_t*>(source + at));
            store(reinterpret_cast<int32_t*>(out[i] + at), bit_and(pairs, broadcast(0xffff)));
        }
    }
}

// partial[r][feature] = sum over keys of weight * value
template <int kRowTiles>
static void gather_by_tiles(tile_unit& unit, const tile_block& b) {
    const int64_t padded = b.p.layout.head_dim_padded;
    const int64_t first_step = b.first_stretch * b.stretch_size / kStepElements;
    for (int64_t column = 0; column < padded; column += kPanelColumns) {
        clear_sums<kRowTiles, 2>(unit);
        for (int64_t step = first_step; step * kStepElements < b.num_keys; ++step) {
            const int64_t key = step * kStepElements;
            const tile_operand weights{reinterpret_cast<const char*>(b.space.weights + key), 2 * kPartition, 0};
            if (b.stretch_size == kStepElements && key + kStepElements <= b.num_keys) {
                multiply_steps<kRowTiles, 2>(unit, weights, {values_of(b, key, column), 4 * padded, 0}, 1);
            } else {
                alignas(64) char values[kTileRows][kPanelRowBytes];
                copy_values(b, key, column, values);
                multiply_steps<kRowTiles, 2>(unit, weights, {values[0], kPanelRowBytes, 0}, 1);
            }
        }
        store_sums<kRowTiles, 2>(unit, b.space.partial + column, padded + 2);
    }
}

template <int kRowTiles>
static void attend_by_row_tiles(const tile_block& b) {
    tile_unit unit(config_for(b.num_rows));
    if (b.stretch_size == kStepElements) {
        score_by_tiles<kRowTiles, 2>(unit, b);
    } else {
        score_by_tiles<kRowTiles, 1>(unit, b);
    }
    for (int64_t row = 0; row < b.num_rows; ++row) weigh(b, row);
    clear_outer_weights(b);
    gather_by_tiles<kRowTiles>(unit, b);
}

struct tile_rows {
    using element = bfloat16;
    static constexpr int64_t kMaxRows = kAmxRows;

    static int64_t query_bytes(const attention_params& p, int64_t rows) { return rows * p.layout.head_dim_padded * 2; }

    static void pack(const attention_params& p, const attention_tile& tile, bfloat16* queries) {
        const int64_t heads = p.num_heads / p.layout.num_kv_heads, d = p.layout.head_dim;
        for (int64_t row = 0; row < tile.num_tokens * heads; ++row) {
            const int64_t token = tile.first_token + row / heads, head = tile.kv_head * heads + row % heads;
            std::memcpy(queries, static_cast<const bfloat16*>(p.q) + (token * p.num_heads + head) * d,
                        static_cast<size_t>(d) * sizeof(bfloat16));
            std::memset(queries + d, 0, static_cast<size_t>(p.layout.head_dim_padded - d) * sizeof(bfloat16));
            queries += p.layout.head_dim_padded;
        }
    }

    static void attend(const tile_block& b) {
        if (b.num_rows <= kTileRows) {
            attend_by_row_tiles<1>(b);
        } else {
            attend_by_row_tiles<2>(b);
        }
    }
};

}  // namespace octavo::OCTAVO_LEVEL
