// The one inner loop of all matrix work: some rows of x times some columns of packed weights.
//
// One text: an element of the result is a chain acc = acc + w * x over the units of K in ascending order, whatever the
// number of rows and columns that are computed beside it.
#pragma once

#include "octavo/kernel_table.h"
#include "simd.h"

namespace octavo::OCTAVO_LEVEL {

template <class Element>
struct unit_of;
template <>
struct unit_of<float> {
    using scalar = float;
    using vector = vf;
    static constexpr int kElements = 1;
};
template <>
struct unit_of<bfloat16> {
    using scalar = int32_t;  // a pair; the element of lower index in the lower half
    using vector = vi;
    static constexpr int kElements = 2;
};

static inline vf accumulate(vf acc, vf w, float x) {
    return multiply_add(w, broadcast(x), acc);
}
static inline vf accumulate(vf acc, vi w, int32_t x) {
    return dot_pairs(acc, w, x);
}

// Units live in memory that was written as elements.
static inline float load_unit(const float* p) {
    return *p;
}
static inline int32_t load_unit(const int32_t* p) {
    int32_t out;
    std::memcpy(&out, p, sizeof out);
    return out;
}

constexpr int kLineUnits = kLineBytes / 4;
// Cache lines that hold what a step reads of w.
constexpr int lines_of(int num_vectors) {
    return (num_vectors * kLanes + kLineUnits - 1) / kLineUnits;
}

// acc[r][v] += w[step][v] * x[r][step] for `steps` units.
// w: rows of columns, `w_stride` units apart. x: rows kRowStride units apart, steps kStepStride units apart.
// kPrefetch: units of w to ask the memory for ahead of use; 0: none.
// kAheadLines: cache lines that each step asks for at `ahead`, which moves on by `ahead_stride` units; 0: none.
template <class Unit, int kRows, int kVectors, int kRowStride, int kStepStride, int kPrefetch = 0, int kAheadLines = 0>
__attribute__((always_inline)) static inline void multiply_tile(const Unit* w, int64_t w_stride, const Unit* x,
                                                                int64_t steps, vf (&acc)[kRows][kVectors],
                                                                const Unit* ahead = nullptr, int64_t ahead_stride = 0) {
    for (int64_t step = 0; step < steps; ++step) {
        decltype(load(w)) columns[kVectors];
        for (int v = 0; v < kVectors; ++v) {
            columns[v] = load(w + v * kLanes);
            hold(columns[v]);
        }
        if constexpr (kPrefetch > 0) {
            for (int v = 0; v < kVectors * kLanes; v += 16) __builtin_prefetch(w + v + kPrefetch);
        }
        if constexpr (kAheadLines > 0) {
            // Into the second cache: the first is smaller than what lies between here and the use.
            for (int line = 0; line < kAheadLines; ++line) __builtin_prefetch(ahead + line * kLineUnits, 0, 2);
            ahead += ahead_stride;
        }
        for (int r = 0; r < kRows; ++r) {
            const Unit value = load_unit(x + r * kRowStride);
            for (int v = 0; v < kVectors; ++v) acc[r][v] = accumulate(acc[r][v], columns[v], value);
        }
        w += w_stride;
        x += kStepStride;
    }
}

}  // namespace octavo::OCTAVO_LEVEL
