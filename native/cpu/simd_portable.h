// simd.h in the compiler's own vectors of four: SSE2 on x86-64, NEON on arm64, plain registers elsewhere.
//
// A product and a sum are two operations here, each rounded: not every machine of this level has a fused one.
#pragma once

namespace octavo::OCTAVO_LEVEL {

constexpr int kLanes = 4;
constexpr int kMaxTileRows = 4;

typedef float float_lanes __attribute__((vector_size(16)));
typedef int32_t int_lanes __attribute__((vector_size(16)));
typedef uint32_t unsigned_lanes __attribute__((vector_size(16)));

struct vf {
    float_lanes v;
};
struct vi {
    int_lanes v;
};
struct vm {
    int_lanes v;  // all bits of a lane, or none
};

// ---- memory --------------------------------------------------------------------------------------------------------

static inline vf load_first(const float* p, int count) {
    vf out{};
    std::memcpy(&out.v, p, sizeof(float) * static_cast<size_t>(count));
    return out;
}
static inline vf load(const float* p) {
    vf out;
    std::memcpy(&out.v, p, sizeof out.v);
    return out;
}
static inline vi load(const int32_t* p) {
    vi out;
    std::memcpy(&out.v, p, sizeof out.v);
    return out;
}
static inline void store(float* p, vf a) {
    std::memcpy(p, &a.v, sizeof a.v);
}
static inline void store(int32_t* p, vi a) {
    std::memcpy(p, &a.v, sizeof a.v);
}
static inline void store_first(float* p, vf a, int count) {
    std::memcpy(p, &a.v, sizeof(float) * static_cast<size_t>(count));
}
static inline vf broadcast(float a) {
    return {float_lanes{a, a, a, a}};
}
static inline vi broadcast(int32_t a) {
    return {int_lanes{a, a, a, a}};
}
static inline vi lane_numbers() {
    return {int_lanes{0, 1, 2, 3}};
}

// See simd_avx512.h; here compilers know best.
static inline void hold(vf&) {}
static inline void hold(vi&) {}

// ---- floats --------------------------------------------------------------------------------------------------------

static inline vf add(vf a, vf b) {
    return {a.v + b.v};
}
static inline vf sub(vf a, vf b) {
    return {a.v - b.v};
}
static inline vf mul(vf a, vf b) {
    return {a.v * b.v};
}
static inline vf div(vf a, vf b) {
    return {a.v / b.v};
}
static inline vf multiply_add(vf a, vf b, vf c) {
    return {a.v * b.v + c.v};
}
static inline vm is_less(vf a, vf b) {
    return {a.v < b.v};
}
static inline vm is_nan(vf a) {
    return {a.v != a.v};
}

// ---- integers ------------------------------------------------------------------------------------------------------

static inline vi add(vi a, vi b) {
    return {(int_lanes)((unsigned_lanes)a.v + (unsigned_lanes)b.v)};
}
static inline vi sub(vi a, vi b) {
    return {(int_lanes)((unsigned_lanes)a.v - (unsigned_lanes)b.v)};
}
static inline vi bit_and(vi a, vi b) {
    return {a.v & b.v};
}
static inline vi bit_or(vi a, vi b) {
    return {a.v | b.v};
}
static inline vi bit_xor(vi a, vi b) {
    return {a.v ^ b.v};
}
template <int kBits>
static inline vi shift_left(vi a) {
    return {(int_lanes)((unsigned_lanes)a.v << kBits)};
}
template <int kBits>
static inline vi shift_right(vi a) {
    return {(int_lanes)((unsigned_lanes)a.v >> kBits)};
}
static inline vm is_less(vi a, vi b) {
    return {a.v < b.v};
}
// Both halves of the products of unsigned lanes.
static inline void multiply_wide(vi a, vi b, vi& high, vi& low) {
    for (int i = 0; i < kLanes; ++i) {
        const uint64_t product = static_cast<uint64_t>(static_cast<uint32_t>(a.v[i])) * static_cast<uint32_t>(b.v[i]);
        low.v[i] = static_cast<int32_t>(static_cast<uint32_t>(product));
        high.v[i] = static_cast<int32_t>(static_cast<uint32_t>(product >> 32));
    }
}

// ---- between kinds -------------------------------------------------------------------------------------------------

static inline vi as_bits(vf a) {
    return {(int_lanes)a.v};
}
static inline vf from_bits(vi a) {
    return {(float_lanes)a.v};
}
static inline vi select(vm which, vi yes, vi no) {
    return {(which.v & yes.v) | (~which.v & no.v)};
}
static inline vf select(vm which, vf yes, vf no) {
    return from_bits(select(which, as_bits(yes), as_bits(no)));
}
static inline vf maximum(vf a, vf b) {
    return select(is_less(b, a), a, b);
}
static inline vf minimum(vf a, vf b) {
    return select(is_less(a, b), a, b);
}
static inline vi round_to_int(vf a) {
    // Adding 1.5 * 2^23 leaves the nearest integer in the low bits of the sum.
    const vf magic = broadcast(12582912.0f);
    return sub(as_bits(add(a, magic)), as_bits(magic));
}
static inline vf to_float(vi a) {
    return {float_lanes{(float)a.v[0], (float)a.v[1], (float)a.v[2], (float)a.v[3]}};
}
static inline bool any(vm a) {
    return (a.v[0] | a.v[1] | a.v[2] | a.v[3]) != 0;
}
static inline vm either(vm a, vm b) {
    return {a.v | b.v};
}

// ---- over lanes ----------------------------------------------------------------------------------------------------

// Sum and maximum of the lanes: the upper half is added to the lower until one lane is left, at every level.
static inline float sum_lanes(vf a) {
    return (a.v[0] + a.v[2]) + (a.v[1] + a.v[3]);
}
static inline float larger(float a, float b) {
    return a > b ? a : b;
}
static inline float max_lane(vf a) {
    return larger(larger(a.v[0], a.v[2]), larger(a.v[1], a.v[3]));
}

// ---- bfloat16 ------------------------------------------------------------------------------------------------------

static inline vf widen(const bfloat16* p) {
    return {float_lanes{widen_scalar(p[0]), widen_scalar(p[1]), widen_scalar(p[2]), widen_scalar(p[3])}};
}
static inline void narrow(bfloat16* p, vf a) {
    for (int i = 0; i < kLanes; ++i) p[i] = narrow_scalar(a.v[i]);
}
// acc + even(w) * even(x) + odd(w) * odd(x), where each lane of w, and x, is a pair of bfloat16.
static inline vf dot_pairs(vf acc, vi w, int32_t x) {
    const vi upper = broadcast(static_cast<int32_t>(0xffff0000u));
    const vi xs = broadcast(x);
    acc = multiply_add(from_bits(shift_left<16>(w)), from_bits(shift_left<16>(xs)), acc);
    return multiply_add(from_bits(bit_and(w, upper)), from_bits(bit_and(xs, upper)), acc);
}

}  // namespace octavo::OCTAVO_LEVEL
