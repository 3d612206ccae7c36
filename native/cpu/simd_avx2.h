// simd.h for AVX2 with FMA.
#pragma once

#include <immintrin.h>

namespace octavo::OCTAVO_LEVEL {

constexpr int kLanes = 8;
constexpr int kMaxTileRows = 4;  // 4 rows x 2 vectors of sums, and of 16 registers 8 for operands and their halves

struct vf {
    __m256 v;
};
struct vi {
    __m256i v;
};
struct vm {
    __m256 v;  // all bits of a lane, or none
};

// ---- memory --------------------------------------------------------------------------------------------------------

static inline vf load(const float* p) {
    return {_mm256_loadu_ps(p)};
}
static inline vi load(const int32_t* p) {
    return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))};
}
static inline void store(float* p, vf a) {
    _mm256_storeu_ps(p, a.v);
}
static inline void store(int32_t* p, vi a) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), a.v);
}
static inline vi lane_numbers() {
    return {_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)};
}
static inline vf load_first(const float* p, int count) {
    const __m256i which = _mm256_cmpgt_epi32(_mm256_set1_epi32(count), lane_numbers().v);
    return {_mm256_maskload_ps(p, which)};
}
static inline void store_first(float* p, vf a, int count) {
    const __m256i which = _mm256_cmpgt_epi32(_mm256_set1_epi32(count), lane_numbers().v);
    _mm256_maskstore_ps(p, which, a.v);
}
static inline vf broadcast(float a) {
    return {_mm256_set1_ps(a)};
}
static inline vi broadcast(int32_t a) {
    return {_mm256_set1_epi32(a)};
}

// See simd_avx512.h.
static inline void hold(vf& a) {
    __asm__("" : "+x"(a.v));
}
static inline void hold(vi& a) {
    __asm__("" : "+x"(a.v));
}

// ---- floats --------------------------------------------------------------------------------------------------------

static inline vf add(vf a, vf b) {
    return {_mm256_add_ps(a.v, b.v)};
}
static inline vf sub(vf a, vf b) {
    return {_mm256_sub_ps(a.v, b.v)};
}
static inline vf mul(vf a, vf b) {
    return {_mm256_mul_ps(a.v, b.v)};
}
static inline vf div(vf a, vf b) {
    return {_mm256_div_ps(a.v, b.v)};
}
static inline vf multiply_add(vf a, vf b, vf c) {
    return {_mm256_fmadd_ps(a.v, b.v, c.v)};
}
static inline vf maximum(vf a, vf b) {
    return {_mm256_max_ps(a.v, b.v)};
}
static inline vf minimum(vf a, vf b) {
    return {_mm256_min_ps(a.v, b.v)};
}
static inline vm is_less(vf a, vf b) {
    return {_mm256_cmp_ps(a.v, b.v, _CMP_LT_OQ)};
}
static inline vm is_nan(vf a) {
    return {_mm256_cmp_ps(a.v, a.v, _CMP_UNORD_Q)};
}

// ---- integers ------------------------------------------------------------------------------------------------------

static inline vi add(vi a, vi b) {
    return {_mm256_add_epi32(a.v, b.v)};
}
static inline vi sub(vi a, vi b) {
    return {_mm256_sub_epi32(a.v, b.v)};
}
static inline vi bit_and(vi a, vi b) {
    return {_mm256_and_si256(a.v, b.v)};
}
static inline vi bit_or(vi a, vi b) {
    return {_mm256_or_si256(a.v, b.v)};
}
static inline vi bit_xor(vi a, vi b) {
    return {_mm256_xor_si256(a.v, b.v)};
}
template <int kBits>
static inline vi shift_left(vi a) {
    return {_mm256_slli_epi32(a.v, kBits)};
}
template <int kBits>
static inline vi shift_right(vi a) {
    return {_mm256_srli_epi32(a.v, kBits)};
}
static inline vm is_less(vi a, vi b) {
    return {_mm256_castsi256_ps(_mm256_cmpgt_epi32(b.v, a.v))};
}
// Both halves of the products of unsigned lanes.
static inline void multiply_wide(vi a, vi b, vi& high, vi& low) {
    const __m256i even = _mm256_mul_epu32(a.v, b.v);
    const __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64(a.v, 32), _mm256_srli_epi64(b.v, 32));
    low.v = _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa);
    high.v = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
}

// ---- between kinds -------------------------------------------------------------------------------------------------

static inline vi round_to_int(vf a) {
    return {_mm256_cvtps_epi32(a.v)};
}
static inline vf to_float(vi a) {
    return {_mm256_cvtepi32_ps(a.v)};
}
static inline vi as_bits(vf a) {
    return {_mm256_castps_si256(a.v)};
}
static inline vf from_bits(vi a) {
    return {_mm256_castsi256_ps(a.v)};
}
static inline vf select(vm which, vf yes, vf no) {
    return {_mm256_blendv_ps(no.v, yes.v, which.v)};
}
static inline vi select(vm which, vi yes, vi no) {
    return as_bits(select(which, from_bits(yes), from_bits(no)));
}
static inline bool any(vm a) {
    return _mm256_movemask_ps(a.v) != 0;
}
static inline vm either(vm a, vm b) {
    return {_mm256_or_ps(a.v, b.v)};
}

// ---- over lanes ----------------------------------------------------------------------------------------------------

// Sum and maximum of the lanes: the upper half is added to the lower until one lane is left, at every level.
static inline float sum_lanes(vf a) {
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
static inline float max_lane(vf a) {
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

// ---- bfloat16 ------------------------------------------------------------------------------------------------------

static inline vf widen(const bfloat16* p) {
    const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16))};
}
static inline void narrow(bfloat16* p, vf a) {
    const vi bits = as_bits(a);
    const vi odd = bit_and(shift_right<16>(bits), broadcast(1));
    const vi rounded = add(bits, add(odd, broadcast(0x7fff)));
    const vi upper = shift_right<16>(select(is_nan(a), bit_or(bits, broadcast(0x400000)), rounded));
    const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(upper.v, upper.v), 0xd8);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_castsi256_si128(packed));
}
// acc + even(w) * even(x) + odd(w) * odd(x), where each lane of w, and x, is a pair of bfloat16.
static inline vf dot_pairs(vf acc, vi w, int32_t x) {
    const vi upper = broadcast(static_cast<int32_t>(0xffff0000u));
    const vi xs = broadcast(x);
    acc = multiply_add(from_bits(shift_left<16>(w)), from_bits(shift_left<16>(xs)), acc);
    return multiply_add(from_bits(bit_and(w, upper)), from_bits(bit_and(xs, upper)), acc);
}

}  // namespace octavo::OCTAVO_LEVEL
