// simd.h for AVX-512 (F, BW, DQ, VL), with VDPBF16PS where the level has AVX512_BF16.
#pragma once

#include <immintrin.h>

namespace octavo::OCTAVO_LEVEL {

constexpr int kLanes = 16;
constexpr int kMaxTileRows = 12;  // 12 rows x 2 vectors of sums leave 8 of 32 registers for operands

struct vf {
    __m512 v;
};
struct vi {
    __m512i v;
};
struct vm {
    __mmask16 v;
};

static inline __mmask16 first_lanes(int count) {
    return static_cast<__mmask16>((1u << count) - 1u);
}

// ---- memory --------------------------------------------------------------------------------------------------------

static inline vf load(const float* p) {
    return {_mm512_loadu_ps(p)};
}
static inline vi load(const int32_t* p) {
    return {_mm512_loadu_si512(p)};
}
static inline vf load_first(const float* p, int count) {
    return {_mm512_maskz_loadu_ps(first_lanes(count), p)};
}
static inline void store(float* p, vf a) {
    _mm512_storeu_ps(p, a.v);
}
static inline void store(int32_t* p, vi a) {
    _mm512_storeu_si512(p, a.v);
}
static inline void store_first(float* p, vf a, int count) {
    _mm512_mask_storeu_ps(p, first_lanes(count), a.v);
}
static inline vf broadcast(float a) {
    return {_mm512_set1_ps(a)};
}
static inline vi broadcast(int32_t a) {
    return {_mm512_set1_epi32(a)};
}
static inline vi lane_numbers() {
    return {_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)};
}

// From here on the value is in a register: GCC would rather load it again for each use.
static inline void hold(vf& a) {
    __asm__("" : "+v"(a.v));
}
static inline void hold(vi& a) {
    __asm__("" : "+v"(a.v));
}

// ---- floats --------------------------------------------------------------------------------------------------------

static inline vf add(vf a, vf b) {
    return {_mm512_add_ps(a.v, b.v)};
}
static inline vf sub(vf a, vf b) {
    return {_mm512_sub_ps(a.v, b.v)};
}
static inline vf mul(vf a, vf b) {
    return {_mm512_mul_ps(a.v, b.v)};
}
static inline vf div(vf a, vf b) {
    return {_mm512_div_ps(a.v, b.v)};
}
static inline vf multiply_add(vf a, vf b, vf c) {
    return {_mm512_fmadd_ps(a.v, b.v, c.v)};
}
static inline vf maximum(vf a, vf b) {
    return {_mm512_max_ps(a.v, b.v)};
}
static inline vf minimum(vf a, vf b) {
    return {_mm512_min_ps(a.v, b.v)};
}
static inline vm is_less(vf a, vf b) {
    return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ)};
}
static inline vm is_nan(vf a) {
    return {_mm512_cmp_ps_mask(a.v, a.v, _CMP_UNORD_Q)};
}

// ---- integers ------------------------------------------------------------------------------------------------------

static inline vi add(vi a, vi b) {
    return {_mm512_add_epi32(a.v, b.v)};
}
static inline vi sub(vi a, vi b) {
    return {_mm512_sub_epi32(a.v, b.v)};
}
static inline vi bit_and(vi a, vi b) {
    return {_mm512_and_si512(a.v, b.v)};
}
static inline vi bit_or(vi a, vi b) {
    return {_mm512_or_si512(a.v, b.v)};
}
static inline vi bit_xor(vi a, vi b) {
    return {_mm512_xor_si512(a.v, b.v)};
}
template <int kBits>
static inline vi shift_left(vi a) {
    return {_mm512_slli_epi32(a.v, kBits)};
}
template <int kBits>
static inline vi shift_right(vi a) {
    return {_mm512_srli_epi32(a.v, kBits)};
}
static inline vm is_less(vi a, vi b) {
    return {_mm512_cmplt_epi32_mask(a.v, b.v)};
}
// Both halves of the products of unsigned lanes.
static inline void multiply_wide(vi a, vi b, vi& high, vi& low) {
    const __m512i even = _mm512_mul_epu32(a.v, b.v);
    const __m512i odd = _mm512_mul_epu32(_mm512_srli_epi64(a.v, 32), _mm512_srli_epi64(b.v, 32));
    low.v = _mm512_mask_blend_epi32(0xaaaa, even, _mm512_slli_epi64(odd, 32));
    high.v = _mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(even, 32), odd);
}

// ---- between kinds -------------------------------------------------------------------------------------------------

static inline vi round_to_int(vf a) {
    return {_mm512_cvtps_epi32(a.v)};
}
static inline vf to_float(vi a) {
    return {_mm512_cvtepi32_ps(a.v)};
}
static inline vi as_bits(vf a) {
    return {_mm512_castps_si512(a.v)};
}
static inline vf from_bits(vi a) {
    return {_mm512_castsi512_ps(a.v)};
}
static inline vf select(vm which, vf yes, vf no) {
    return {_mm512_mask_blend_ps(which.v, no.v, yes.v)};
}
static inline vi select(vm which, vi yes, vi no) {
    return {_mm512_mask_blend_epi32(which.v, no.v, yes.v)};
}
static inline bool any(vm a) {
    return a.v != 0;
}
static inline vm either(vm a, vm b) {
    return {static_cast<__mmask16>(a.v | b.v)};
}

// ---- over lanes ----------------------------------------------------------------------------------------------------

// Sum and maximum of the lanes: the upper half is added to the lower until one lane is left, at every level.
static inline float sum_lanes(vf a) {
    const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
static inline float max_lane(vf a) {
    const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

// ---- bfloat16 ------------------------------------------------------------------------------------------------------

static inline vf widen(const bfloat16* p) {
    const __m256i half = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16))};
}
static inline void narrow(bfloat16* p, vf a) {
#if defined(__AVX512BF16__)
    // Rounds as below, but for denormals, which become 0.
    const __m256bh rounded = _mm512_cvtneps_pbh(a.v);
    std::memcpy(p, &rounded, sizeof rounded);
#else
    const __m512i bits = _mm512_castps_si512(a.v);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    rounded = _mm512_mask_or_epi32(rounded, is_nan(a).v, bits, _mm512_set1_epi32(0x400000));
    const __m256i half = _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded, 16));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), half);
#endif
}
// acc + even(w) * even(x) + odd(w) * odd(x), where each lane of w, and x, is a pair of bfloat16.
static inline vf dot_pairs(vf acc, vi w, int32_t x) {
#if defined(__AVX512BF16__)
    return {_mm512_dpbf16_ps(acc.v, (__m512bh)w.v, (__m512bh)_mm512_set1_epi32(x))};
#else
    const __m512i upper = _mm512_set1_epi32(static_cast<int32_t>(0xffff0000u));
    const __m512i xs = _mm512_set1_epi32(x);
    acc.v = _mm512_fmadd_ps(_mm512_castsi512_ps(_mm512_slli_epi32(w.v, 16)),
                            _mm512_castsi512_ps(_mm512_slli_epi32(xs, 16)), acc.v);
    return {_mm512_fmadd_ps(_mm512_castsi512_ps(_mm512_and_si512(w.v, upper)),
                            _mm512_castsi512_ps(_mm512_and_si512(xs, upper)), acc.v)};
#endif
}

}  // namespace octavo::OCTAVO_LEVEL
