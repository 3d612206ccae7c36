// Vectors of floats and of 32-bit integers, as wide as the level this file is compiled for.
//
// The kernels in this folder are written once against these names and built once per level. This is the only file that
// asks which level that is. A level's names live in a namespace of their own (OCTAVO_LEVEL), and nothing here or in the
// kernels is a template or inline function of the standard library: the linker would keep one copy of such a function
// for all levels, and it might be one that the processor cannot run.
//
// vf: kLanes floats.  vi: kLanes 32-bit integers.  vm: a truth value per lane.
#pragma once

#include <cstdint>
#include <cstring>

#include "octavo/bfloat16.h"

#ifndef OCTAVO_LEVEL
#error "compile with -DOCTAVO_LEVEL=<name of the level's namespace>"
#endif

#if defined(__AVX512F__)
#include "simd_avx512.h"
#elif defined(__AVX2__)
#include "simd_avx2.h"
#else
#include "simd_portable.h"
#endif

namespace octavo::OCTAVO_LEVEL {

static inline vf operator+(vf a, vf b) {
    return add(a, b);
}
static inline vf operator-(vf a, vf b) {
    return sub(a, b);
}
static inline vf operator*(vf a, vf b) {
    return mul(a, b);
}
static inline vf operator/(vf a, vf b) {
    return div(a, b);
}

static inline int64_t min_of(int64_t a, int64_t b) {
    return a < b ? a : b;
}
static inline int64_t max_of(int64_t a, int64_t b) {
    return a > b ? a : b;
}

// ---- elements as they are stored -----------------------------------------------------------------------------------

static inline vf load_elements(const float* p) {
    return load(p);
}
static inline vf load_elements(const bfloat16* p) {
    return widen(p);
}
static inline vf load_elements(const float* p, int count) {
    return load_first(p, count);
}
static inline vf load_elements(const bfloat16* p, int count) {
    bfloat16 lanes[kLanes] = {};
    std::memcpy(lanes, p, sizeof(bfloat16) * static_cast<size_t>(count));
    return widen(lanes);
}
static inline void store_elements(float* p, vf a) {
    store(p, a);
}
static inline void store_elements(bfloat16* p, vf a) {
    narrow(p, a);
}
static inline void store_elements(float* p, vf a, int count) {
    store_first(p, a, count);
}
static inline void store_elements(bfloat16* p, vf a, int count) {
    if (count == kLanes) {
        narrow(p, a);
        return;
    }
    bfloat16 lanes[kLanes];
    narrow(lanes, a);
    std::memcpy(p, lanes, sizeof(bfloat16) * static_cast<size_t>(count));
}

}  // namespace octavo::OCTAVO_LEVEL
