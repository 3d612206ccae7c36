// attention by vectors: the products of some rows of q with the keys and values of one partition.
//
// Queries are packed as row blocks [D units][r][unit].
#pragma once

#include "attention_block.h"
#include "tile.h"

namespace octavo::OCTAVO_LEVEL {

template <class Element, class Unit>
static const Unit* keys_at(const row_block<Element>& b, const char* block, int64_t offset, int64_t kv_head) {
    return reinterpret_cast<const Unit*>(block + kv_head * b.p.layout.k_head_bytes) + offset;
}
template <class Element, class Unit>
static const Unit* values_at(const row_block<Element>& b, const char* block, int64_t offset, int64_t kv_head) {
    return reinterpret_cast<const Unit*>(block + b.p.layout.k_bytes + kv_head * b.p.layout.v_head_bytes) +
           offset / unit_of<Element>::kElements * b.p.layout.head_dim_padded;
}

// scores[r][key] = q . k
template <class Element, int kRows, int kVectors>
static void score(const row_block<Element>& b) {
    using unit = typename unit_of<Element>::scalar;
    const int64_t units = b.p.layout.head_dim / unit_of<Element>::kElements;
    const auto* const q = reinterpret_cast<const unit*>(b.space.queries) + b.first_row * units;
    for (int64_t stretch = b.first_stretch; stretch < b.last_stretch; ++stretch) {
        int64_t offset;
        const char* const block = b.block_of(stretch, offset);
        const auto* const keys = keys_at<Element, unit>(b, block, offset, b.tile.kv_head);
        const stretch_ahead next = find_ahead(b, stretch);
        const auto* const ahead = next.block ? keys_at<Element, unit>(b, next.block, next.offset, next.kv_head) : keys;
        for (int64_t column = 0; column < b.stretch_size; column += kVectors * kLanes) {
            vf acc[kRows][kVectors];
            for (int r = 0; r < kRows; ++r) {
                for (int v = 0; v < kVectors; ++v) acc[r][v] = broadcast(0.0f);
            }
            multiply_tile<unit, kRows, kVectors, 1, kRows, 0, lines_of(kVectors)>(
                keys + column, b.p.layout.block_size, q, units, acc, ahead + column, b.p.layout.block_size);
            float* const out = b.space.scores + stretch * b.stretch_size + column;
            for (int r = 0; r < kRows; ++r) {
                for (int v = 0; v < kVectors; ++v) store(out + r * kPartition + v * kLanes, acc[r][v]);
            }
        }
    }
}

// The last key of an odd number: the upper half of each pair of values belongs to no key of this sequence.
template <int kRows, int kVectors, int kRowStride>
static inline void add_last_key(const int32_t* w, const int32_t* x, vf (&acc)[kRows][kVectors]) {
    const vi lower = broadcast(0xffff);
    for (int r = 0; r < kRows; ++r) {
        const int32_t weight = load_unit(x + r * kRowStride) & 0xffff;
        for (int v = 0; v < kVectors; ++v) {
            acc[r][v] = accumulate(acc[r][v], bit_and(load(w + v * kLanes), lower), weight);
        }
    }
}
template <int kRows, int kVectors, int kRowStride>
static inline void add_last_key(const float*, const float*, vf (&)[kRows][kVectors]) {}

// partial[r][feature] = sum over keys of weight * value
template <class Element, int kRows, int kVectors>
static void gather_values(const row_block<Element>& b) {
    using unit = typename unit_of<Element>::scalar;
    constexpr int64_t kElements = unit_of<Element>::kElements;
    constexpr int kRowStride = kPartition / kElements;
    const int64_t padded = b.p.layout.head_dim_padded;
    const auto* const weights = reinterpret_cast<const unit*>(b.space.weights);
    for (int64_t column = 0; column < padded; column += kVectors * kLanes) {
        vf acc[kRows][kVectors];
        for (int r = 0; r < kRows; ++r) {
            for (int v = 0; v < kVectors; ++v) acc[r][v] = broadcast(0.0f);
        }
        for (int64_t stretch = b.first_stretch; stretch < b.last_stretch; ++stretch) {
            int64_t offset;
            const char* const block = b.block_of(stretch, offset);
            const auto* const values = values_at<Element, unit>(b, block, offset, b.tile.kv_head) + column;
            const stretch_ahead next = find_ahead(b, stretch);
            const auto* const ahead =
                next.block ? values_at<Element, unit>(b, next.block, next.offset, next.kv_head) + column : values;
            const unit* const x = weights + stretch * (b.stretch_size / kElements);
            const int64_t keys = min_of(b.stretch_size, b.num_keys - stretch * b.stretch_size);
            const int64_t whole = keys / kElements;
            multiply_tile<unit, kRows, kVectors, kRowStride, 1, 0, lines_of(kVectors)>(values, padded, x, whole, acc,
                                                                                       ahead, padded);
            if (keys % kElements != 0) {
                add_last_key<kRows, kVectors, kRowStride>(values + whole * padded, x + whole, acc);
            }
        }
        for (int r = 0; r < kRows; ++r) {
            for (int v = 0; v < kVectors; ++v) {
                store(b.space.partial + r * (padded + 2) + column + v * kLanes, acc[r][v]);
            }
        }
    }
}

// With few rows two vectors of sums a row are too few chains to hide how long one step of a chain takes.
template <int kRows>
constexpr bool kIsFew = kRows * 4 + 4 <= 2 * kMaxTileRows + 2;

template <class Element, int kRows>
static void attend_rows(const row_block<Element>& b) {
    if (b.stretch_size >= 2 * kLanes) {
        score<Element, kRows, 2>(b);
    } else {
        score<Element, kRows, 1>(b);
    }
    for (int64_t row = 0; row < kRows; ++row) weigh(b, row);
    if constexpr (kIsFew<kRows>) {
        if (b.p.layout.head_dim_padded % (4 * kLanes) == 0) return gather_values<Element, kRows, 4>(b);
    }
    gather_values<Element, kRows, 2>(b);
}

template <class Element>
struct vector_rows {
    using element = Element;
    static constexpr int64_t kMaxRows = kMaxTileRows;

    static int64_t query_bytes(const attention_params& p, int64_t rows) {
        return rows * p.layout.head_dim * static_cast<int64_t>(sizeof(Element));
    }

    static void pack(const attention_params& p, const attention_tile& tile, Element* queries) {
        const int64_t heads = p.num_heads / p.layout.num_kv_heads;
        const int64_t rows = tile.num_tokens * heads, num_blocks = ceil_div(rows, kMaxRows);
        const int64_t units = p.layout.head_dim / unit_of<Element>::kElements;
        using unit = typename unit_of<Element>::scalar;
        for (int64_t block = 0; block < num_blocks; ++block) {
            const int64_t first = block_start(rows, num_blocks, block);
            const int64_t count = block_start(rows, num_blocks, block + 1) - first;
            auto* const target = reinterpret_cast<unit*>(queries) + first * units;
            for (int64_t r = 0; r < count; ++r) {
                const int64_t token = tile.first_token + (first + r) / heads;
                const int64_t head = tile.kv_head * heads + (first + r) % heads;
                const auto* const q = static_cast<const unit*>(p.q) + (token * p.num_heads + head) * units;
                for (int64_t i = 0; i < units; ++i) target[i * count + r] = load_unit(q + i);
            }
        }
    }

    template <int kRows = kMaxRows>
    static void attend(const row_block<Element>& b) {
        if (b.num_rows == kRows) return attend_rows<Element, kRows>(b);
        if constexpr (kRows > 1) attend<kRows - 1>(b);
    }
};

}  // namespace octavo::OCTAVO_LEVEL
