// attention, inner part: the rows of one row block against the keys of one partition.
//
// scores = q . k -> weights = exp(score - maximum), hidden keys 0 -> partial = sum of weight * value, maximum, sum.
// What makes a row's bits its own is written in attention.cpp.
#pragma once

#include "kernels.h"
#include "math.h"
#include "tile.h"

namespace octavo::OCTAVO_LEVEL {

constexpr int64_t kMaxStretch = 32;  // tokens that are scored together: these, or a block if that is smaller
constexpr float kLowest = -3.0e38f;  // below any score; finite, so that differences are never inf - inf

// Memory of one thread, cut from its scratch.
template <class Element>
struct workspace {
    Element* queries;  // row blocks [D units][r][unit]
    float* scores;     // [kMaxTileRows][kPartition]
    Element* weights;  // [kMaxTileRows][kPartition]
    float* partial;    // [kMaxTileRows][Dp + 2]: values, maximum, sum
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

// scores[r][key] = q . k
template <class Element, int kRows, int kVectors>
static void score(const row_block<Element>& b) {
    using unit = typename unit_of<Element>::scalar;
    const int64_t units = b.p.layout.head_dim / unit_of<Element>::kElements;
    const auto* const q = reinterpret_cast<const unit*>(b.space.queries) + b.first_row * units;
    for (int64_t stretch = b.first_stretch; stretch < b.last_stretch; ++stretch) {
        int64_t offset;
        const char* const block = b.block_of(stretch, offset);
        const auto* const keys =
            reinterpret_cast<const unit*>(block + b.tile.kv_head * b.p.layout.k_head_bytes) + offset;
        for (int64_t column = 0; column < b.stretch_size; column += kVectors * kLanes) {
            vf acc[kRows][kVectors];
            for (int r = 0; r < kRows; ++r) {
                for (int v = 0; v < kVectors; ++v) acc[r][v] = broadcast(0.0f);
            }
            multiply_tile<unit, kRows, kVectors, 1, kRows>(keys + column, b.p.layout.block_size, q, units, acc);
            float* const out = b.space.scores + stretch * b.stretch_size + column;
            for (int r = 0; r < kRows; ++r) {
                for (int v = 0; v < kVectors; ++v) store(out + r * kPartition + v * kLanes, acc[r][v]);
            }
        }
    }
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

// The last key of an odd number: the upper half of each pair of values belongs to no key of this sequence.
template <int kRows, int kRowStride>
static inline void add_last_key(const int32_t* w, const int32_t* x, vf (&acc)[kRows][2]) {
    const vi lower = broadcast(0xffff);
    for (int r = 0; r < kRows; ++r) {
        const int32_t weight = load_unit(x + r * kRowStride) & 0xffff;
        for (int v = 0; v < 2; ++v) acc[r][v] = accumulate(acc[r][v], bit_and(load(w + v * kLanes), lower), weight);
    }
}
template <int kRows, int kRowStride>
static inline void add_last_key(const float*, const float*, vf (&)[kRows][2]) {}

// partial[r][feature] = sum over keys of weight * value
template <class Element, int kRows>
static void gather_values(const row_block<Element>& b) {
    using unit = typename unit_of<Element>::scalar;
    constexpr int64_t kElements = unit_of<Element>::kElements;
    constexpr int kRowStride = kPartition / kElements;
    const int64_t padded = b.p.layout.head_dim_padded;
    const auto* const weights = reinterpret_cast<const unit*>(b.space.weights);
    for (int64_t column = 0; column < padded; column += 2 * kLanes) {
        vf acc[kRows][2];
        for (int r = 0; r < kRows; ++r) acc[r][0] = acc[r][1] = broadcast(0.0f);
        for (int64_t stretch = b.first_stretch; stretch < b.last_stretch; ++stretch) {
            int64_t offset;
            const char* const block = b.block_of(stretch, offset) + b.p.layout.k_bytes;
            const auto* const values = reinterpret_cast<const unit*>(block + b.tile.kv_head * b.p.layout.v_head_bytes) +
                                       offset / kElements * padded + column;
            const unit* const x = weights + stretch * (b.stretch_size / kElements);
            const int64_t keys = min_of(b.stretch_size, b.num_keys - stretch * b.stretch_size);
            const int64_t whole = keys / kElements;
            multiply_tile<unit, kRows, 2, kRowStride, 1>(values, padded, x, whole, acc);
            if (keys % kElements != 0) add_last_key<kRows, kRowStride>(values + whole * padded, x + whole, acc);
        }
        for (int r = 0; r < kRows; ++r) {
            store(b.space.partial + r * (padded + 2) + column, acc[r][0]);
            store(b.space.partial + r * (padded + 2) + column + kLanes, acc[r][1]);
        }
    }
}

template <class Element, int kRows>
static void attend_rows(const row_block<Element>& b) {
    if (b.stretch_size >= 2 * kLanes) {
        score<Element, kRows, 2>(b);
    } else {
        score<Element, kRows, 1>(b);
    }
    for (int64_t row = 0; row < kRows; ++row) weigh(b, row);
    gather_values<Element, kRows>(b);
}

template <class Element, int kRows = kMaxTileRows>
struct attend_by_rows {
    static void run(const row_block<Element>& b) {
        if (b.num_rows == kRows) return attend_rows<Element, kRows>(b);
        if constexpr (kRows > 1) attend_by_rows<Element, kRows - 1>::run(b);
    }
};

}  // namespace octavo::OCTAVO_LEVEL
