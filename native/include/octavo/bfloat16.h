// bfloat16: the upper half of a float32. Rounding is to nearest, ties to even; a NaN stays a NaN.
#pragma once

#include <cstdint>
#include <cstring>

namespace octavo {

struct bfloat16 {
    uint16_t bits;
};

static inline float widen_scalar(bfloat16 a) {
    const uint32_t bits = static_cast<uint32_t>(a.bits) << 16;
    float out;
    std::memcpy(&out, &bits, sizeof out);
    return out;
}
static inline float widen_scalar(float a) {
    return a;
}

static inline bfloat16 narrow_scalar(float a) {
    uint32_t bits;
    std::memcpy(&bits, &a, sizeof bits);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return {static_cast<uint16_t>((bits >> 16) | 0x40u)};
    return {static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
}

static inline void narrow_into(bfloat16& out, float a) {
    out = narrow_scalar(a);
}
static inline void narrow_into(float& out, float a) {
    out = a;
}

}  // namespace octavo
