// attention: causal softmax attention of one tile of queries over the paged cache.
//
// q [T, H, D] -> out [T, H * D]; cache layout in kernel_table.h. A tile is some consecutive tokens of one sequence
// times the query heads that share a kv head: its rows stream the same keys and values. Row r is token r / G, head r %
// G.
//
// One text: keys are taken in partitions of kPartition tokens cut from absolute position 0. Within a partition a row
// has scores -> maximum -> exponentials -> weighted values; partitions are merged in ascending order by one function.
// So a row's bits depend on its own position alone: not on the tile, the chunk, or who computes which partition. Keys
// that a row must not see have weight 0 exactly, and adding 0 * value changes nothing; values behind the sequence's
// end, which may be left over from another request and not even be numbers, are never read.
//
// bfloat16: q, keys, weights and values are bfloat16, sums float32; the sum of weights is that of the rounded ones.
// Cost: 4 * D operations per query row and key; one query a sequence reads 2 * D elements per key and kv head.
// Sources: PagedAttention, arXiv 2309.06180; FlashAttention, arXiv 2205.14135; online softmax, arXiv 1805.02867.
//
// Here is the order of things, the same for all; Rows does the products of one row block with one partition:
// attention_rows.h by vectors, attention_tiles.h by matrix tiles. What a Rows offers:
//     element                         of q, keys, values and weights
//     kMaxRows                        of a row block
//     query_bytes(p, rows)            of packed queries
//     pack(p, tile, queries)          copies the tile's queries there, as attend wants them
//     attend(row_block)               fills its `partial`
#pragma once

#include "attention_block.h"

namespace octavo::OCTAVO_LEVEL {

static size_t aligned(int64_t bytes) {
    return static_cast<size_t>((bytes + 63) / 64 * 64);
}

template <class Rows>
static size_t scratch_bytes_of(const attention_params& p, int64_t num_tokens) {
    const int64_t rows = num_tokens * (p.num_heads / p.layout.num_kv_heads);
    const int64_t row_floats = p.layout.head_dim_padded + 2;
    return aligned(Rows::query_bytes(p, rows)) + aligned(Rows::kMaxRows * kPartition * 4) +
           aligned(Rows::kMaxRows * kPartition * static_cast<int64_t>(sizeof(typename Rows::element))) +
           aligned(Rows::kMaxRows * row_floats * 4) + aligned(rows * row_floats * 4);
}

template <class Rows>
static workspace<typename Rows::element> cut(const attention_params& p, const attention_tile& tile, char* scratch) {
    using element = typename Rows::element;
    const int64_t rows = tile.num_tokens * (p.num_heads / p.layout.num_kv_heads);
    workspace<element> w;
    w.queries = reinterpret_cast<element*>(scratch);
    scratch += aligned(Rows::query_bytes(p, rows));
    w.scores = reinterpret_cast<float*>(scratch);
    scratch += aligned(Rows::kMaxRows * kPartition * 4);
    w.weights = reinterpret_cast<element*>(scratch);
    scratch += aligned(Rows::kMaxRows * kPartition * static_cast<int64_t>(sizeof(element)));
    w.partial = reinterpret_cast<float*>(scratch);
    scratch += aligned(Rows::kMaxRows * (p.layout.head_dim_padded + 2) * 4);
    w.running = reinterpret_cast<float*>(scratch);
    return w;
}

// Fills space.partial for one row block. False: no row sees a key of this partition.
template <class Rows>
static bool attend_row_block(const attention_params& p, const attention_tile& tile,
                             const workspace<typename Rows::element>& space, int64_t partition, int64_t first_row,
                             int64_t num_rows) {
    row_block<typename Rows::element> b{p, tile, space, first_row, num_rows, partition * kPartition, 0, 0, 0, 0};
    b.stretch_size = min_of(kMaxStretch, p.layout.block_size);
    b.num_keys = min_of(kPartition, b.position(num_rows - 1) + 1 - b.partition_start);
    const int64_t first_key = b.first_key(0);
    if (b.num_keys <= first_key) return false;
    b.first_stretch = first_key / b.stretch_size;
    b.last_stretch = ceil_div(b.num_keys, b.stretch_size);
    Rows::attend(b);
    return true;
}

static void clear_rows(float* rows, int64_t count, int64_t padded) {
    for (int64_t r = 0; r < count; ++r) {
        float* const row = rows + r * (padded + 2);
        for (int64_t i = 0; i < padded; i += kLanes) store(row + i, broadcast(0.0f));
        row[padded] = kLowest;
        row[padded + 1] = 0.0f;
    }
}

// running [rows][Dp + 2] takes in the partials of the partition that follows.
static void merge_rows(float* running, const float* partials, int64_t num_rows, int64_t padded) {
    const int64_t width = padded + 2;
    for (int64_t first = 0; first < num_rows; first += kLanes) {
        const int64_t count = min_of(kLanes, num_rows - first);
        float before[kLanes] = {}, found[kLanes] = {}, keep[kLanes], take[kLanes];
        for (int64_t r = 0; r < count; ++r) {
            before[r] = running[(first + r) * width + padded];
            found[r] = partials[(first + r) * width + padded];
        }
        const vf highest = maximum(load(before), load(found));
        store(keep, exp_of(load(before) - highest));
        store(take, exp_of(load(found) - highest));
        for (int64_t r = 0; r < count; ++r) {
            float* const own = running + (first + r) * width;
            const float* const partial = partials + (first + r) * width;
            for (int64_t i = 0; i < padded; i += kLanes) {
                store(own + i, multiply_add(load(partial + i), broadcast(take[r]), load(own + i) * broadcast(keep[r])));
            }
            own[padded] = found[r] > before[r] ? found[r] : before[r];
            own[padded + 1] = partial[padded + 1] * take[r] + own[padded + 1] * keep[r];
        }
    }
}

template <class Element>
static void write_rows(const attention_params& p, const attention_tile& tile, const float* running) {
    const int64_t heads = p.num_heads / p.layout.num_kv_heads, d = p.layout.head_dim;
    const int64_t padded = p.layout.head_dim_padded;
    for (int64_t row = 0; row < tile.num_tokens * heads; ++row) {
        const float* const source = running + row * (padded + 2);
        auto* const out = static_cast<Element*>(p.out) +
                          ((tile.first_token + row / heads) * p.num_heads + tile.kv_head * heads + row % heads) * d;
        const vf sum = broadcast(source[padded + 1]);
        for (int64_t i = 0; i < d; i += kLanes) {
            store_elements(out + i, load(source + i) / sum, static_cast<int>(min_of(kLanes, d - i)));
        }
    }
}

template <class Rows>
static void attend_whole(const attention_params& p, const attention_tile& tile, char* scratch) {
    const auto space = cut<Rows>(p, tile, scratch);
    const int64_t rows = tile.num_tokens * (p.num_heads / p.layout.num_kv_heads);
    const int64_t padded = p.layout.head_dim_padded;
    const int64_t num_blocks = ceil_div(rows, Rows::kMaxRows);
    Rows::pack(p, tile, space.queries);
    clear_rows(space.running, rows, padded);
    for (int64_t i = 0; i < tile.num_partitions; ++i) {
        for (int64_t block = 0; block < num_blocks; ++block) {
            const int64_t first = block_start(rows, num_blocks, block);
            const int64_t count = block_start(rows, num_blocks, block + 1) - first;
            if (!attend_row_block<Rows>(p, tile, space, tile.first_partition + i, first, count)) continue;
            merge_rows(space.running + first * (padded + 2), space.partial, count, padded);
        }
    }
    write_rows<typename Rows::element>(p, tile, space.running);
}

template <class Rows>
static void attend_one_partition(const attention_params& p, const attention_tile& tile, int64_t partition,
                                 char* scratch) {
    const auto space = cut<Rows>(p, tile, scratch);
    const int64_t rows = tile.num_tokens * (p.num_heads / p.layout.num_kv_heads);
    const int64_t row_floats = p.layout.head_dim_padded + 2;
    const int64_t num_blocks = ceil_div(rows, Rows::kMaxRows);
    Rows::pack(p, tile, space.queries);
    float* const out = tile.partials + partition * rows * row_floats;
    for (int64_t block = 0; block < num_blocks; ++block) {
        const int64_t first = block_start(rows, num_blocks, block);
        const int64_t count = block_start(rows, num_blocks, block + 1) - first;
        if (!attend_row_block<Rows>(p, tile, space, tile.first_partition + partition, first, count)) {
            clear_rows(space.partial, count, row_floats - 2);
        }
        std::memcpy(out + first * row_floats, space.partial, static_cast<size_t>(count * row_floats) * sizeof(float));
    }
}

template <class Rows>
static void combine(const attention_params& p, const attention_tile& tile, char* scratch) {
    const auto space = cut<Rows>(p, tile, scratch);
    const int64_t rows = tile.num_tokens * (p.num_heads / p.layout.num_kv_heads);
    const int64_t padded = p.layout.head_dim_padded;
    clear_rows(space.running, rows, padded);
    for (int64_t i = 0; i < tile.num_partitions; ++i) {
        merge_rows(space.running, tile.partials + i * rows * (padded + 2), rows, padded);
    }
    write_rows<typename Rows::element>(p, tile, space.running);
}

}  // namespace octavo::OCTAVO_LEVEL
