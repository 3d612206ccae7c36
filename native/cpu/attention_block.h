// attention: one row block and the keys of one partition, and the softmax between the two products.
//
// scores = q . k -> weights = exp(score - maximum), hidden keys 0 -> partial = sum of weight * value, maximum, sum.
// What makes a row's bits its own is written in attention_partitions.h.
#pragma once

#include "kernels.h"
#include "math.h"

namespace octavo::OCTAVO_LEVEL {

constexpr int64_t kMaxStretch = 32;  // tokens that are scored together: these, or a block if that is smaller
constexpr float kLowest = -3.0e38f;  // below any score; finite, so that differences are never inf - inf

// Memory of one thread, cut from its scratch.
template <class Element>
struct workspace {
    Element* queries;  // as packed by the Rows in use
    float* scores;     // [rows of a block][kPartition]
    Element* weights;  // [rows of a block][kPartition]
    float* partial;    // [rows of a block][Dp + 2]: values, maximum, sum
    float* running;    // [rows][Dp + 2]
};

// The rows of one row block against one partition.
template <class Element>
struct row_block {
    const attention_params& p;
    const attention_tile& tile;
    const workspace<Element>& space;
    int64_t first_row, num_rows;
    int64_t partition_start;  // absolute position
    int64_t stretch_size;
    int64_t first_stretch, last_stretch;
    int64_t num_keys;  // of the partition, up to the last that some row sees

    int64_t position(int64_t row) const {
        return tile.first_position + (first_row + row) / (p.num_heads / p.layout.num_kv_heads);
    }
    int64_t first_key(int64_t row) const {  // within the partition
        return p.window > 0 ? max_of(0, position(row) - p.window + 1 - partition_start) : 0;
    }
    const char* block_of(int64_t stretch, int64_t& offset) const {
        const int64_t at = partition_start + stretch * stretch_size;
        offset = at % p.layout.block_size;
        return p.cache + tile.block_table[at / p.layout.block_size] * p.layout.block_bytes;
    }
};

// The block of the stretch that will be wanted when the present one is done with: of the next partition, else of the
// tile whose turn comes then. Asking for it is left to the first row block of a tile.
struct stretch_ahead {
    const char* block;  // null: nobody knows
    int64_t offset, kv_head;
};

template <class Element>
static stretch_ahead find_ahead(const row_block<Element>& b, int64_t stretch) {
    if (b.first_row != 0) return {};
    const int64_t size = b.p.layout.block_size;
    const attention_tile* tile = &b.tile;
    int64_t at = b.partition_start + kPartition + stretch * b.stretch_size;
    if (at >= tile->first_position + tile->num_tokens) {
        tile = tile->next;
        if (!tile) return {};
        at = tile->first_partition * kPartition + stretch * b.stretch_size;
        if (at >= tile->first_position + tile->num_tokens) return {};
    }
    return {b.p.cache + tile->block_table[at / size] * b.p.layout.block_bytes, at % size, tile->kv_head};
}

// Scores of one row -> weights, their maximum score and their sum.
template <class Element>
static void weigh(const row_block<Element>& b, int64_t row) {
    float* const scores = b.space.scores + row * kPartition;
    Element* const weights = b.space.weights + row * kPartition;
    const int64_t first = b.first_stretch * b.stretch_size, last = b.last_stretch * b.stretch_size;
    const int64_t first_seen = b.first_key(row);
    const int64_t last_seen = b.position(row) + 1 - b.partition_start;
    const vf scale = broadcast(b.p.scale), cap = broadcast(b.p.softcap);
    vf highest = broadcast(kLowest);
    for (int64_t key = first; key < last; key += kLanes) {
        vf value = load(scores + key) * scale;
        if (b.p.softcap > 0) value = softcap_of(value, cap);
        if (key < first_seen || key + kLanes > last_seen) {
            const vi keys = add(lane_numbers(), broadcast(static_cast<int32_t>(key)));
            const vm hidden = either(is_less(keys, broadcast(static_cast<int32_t>(first_seen))),
                                     is_less(broadcast(static_cast<int32_t>(last_seen - 1)), keys));
            value = select(hidden, broadcast(-__builtin_inff()), value);
        }
        store(scores + key, value);
        highest = maximum(highest, value);
    }
    const float maximum_score = max_lane(highest);
    vf sum = broadcast(0.0f);
    for (int64_t key = first; key < last; key += kLanes) {
        store_elements(weights + key, exp_of(load(scores + key) - broadcast(maximum_score)));
        sum = sum + load_elements(weights + key);
    }
    float* const out = b.space.partial + row * (b.p.layout.head_dim_padded + 2) + b.p.layout.head_dim_padded;
    out[0] = maximum_score;
    out[1] = sum_lanes(sum);
}

}  // namespace octavo::OCTAVO_LEVEL
