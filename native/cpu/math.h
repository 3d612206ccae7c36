// exp, log and their kin over vectors. The same operations in every lane, so a value does not depend on its place.
//
// Sources: range reduction by Cody and Waite; polynomials of the Cephes library (Moshier), used as published numbers.
// Errors are a few units in the last place over the ranges that the kernels use.
#pragma once

#include "simd.h"

namespace octavo::OCTAVO_LEVEL {

constexpr float kLog2E = 1.44269504088896341f;
constexpr float kLn2High = 0.693359375f;  // few bits, so that n * kLn2High is exact
constexpr float kLn2Low = -2.12194440e-4f;
constexpr float kExpLowest = -87.33654f;  // below, the result is 0: no denormals
constexpr float kExpHighest = 88.37626f;

// exp(0) is 1 exactly and exp(-inf) is 0 exactly: a masked key must be a no-op.
static inline vf exp_of(vf x) {
    const vm is_vanishing = is_less(x, broadcast(kExpLowest));
    // maximum and minimum give their second operand if one is not a number: NaN goes through.
    const vf bounded = minimum(broadcast(kExpHighest), maximum(broadcast(kExpLowest), x));
    const vi exponent = round_to_int(bounded * broadcast(kLog2E));
    const vf n = to_float(exponent);
    const vf r = multiply_add(n, broadcast(-kLn2Low), multiply_add(n, broadcast(-kLn2High), bounded));
    vf p = broadcast(1.9875691500e-4f);
    p = multiply_add(p, r, broadcast(1.3981999507e-3f));
    p = multiply_add(p, r, broadcast(8.3334519073e-3f));
    p = multiply_add(p, r, broadcast(4.1665795894e-2f));
    p = multiply_add(p, r, broadcast(1.6666665459e-1f));
    p = multiply_add(p, r, broadcast(5.0000001201e-1f));
    p = multiply_add(p, r * r, r) + broadcast(1.0f);
    const vf power = from_bits(shift_left<23>(add(exponent, broadcast(127))));
    return select(is_vanishing, broadcast(0.0f), p * power);
}

// Of positive normal numbers.
static inline vf log_of(vf x) {
    const vi bits = as_bits(x);
    // Mantissa in [sqrt(1/2), sqrt(2)), so that values near 1 lose no digits.
    const vi shifted = sub(bits, broadcast(0x3f3504f3));
    const vi exponent = sub(shift_right<23>(add(shifted, broadcast(0x40000000))), broadcast(128));
    const vf n = to_float(exponent);
    const vf m = from_bits(sub(bits, shift_left<23>(exponent))) - broadcast(1.0f);
    vf p = broadcast(7.0376836292e-2f);
    p = multiply_add(p, m, broadcast(-1.1514610310e-1f));
    p = multiply_add(p, m, broadcast(1.1676998740e-1f));
    p = multiply_add(p, m, broadcast(-1.2420140846e-1f));
    p = multiply_add(p, m, broadcast(1.4249322787e-1f));
    p = multiply_add(p, m, broadcast(-1.6668057665e-1f));
    p = multiply_add(p, m, broadcast(2.0000714765e-1f));
    p = multiply_add(p, m, broadcast(-2.4999993993e-1f));
    p = multiply_add(p, m, broadcast(3.3333331174e-1f));
    const vf square = m * m;
    vf tail = p * m * square;
    tail = multiply_add(n, broadcast(kLn2Low), tail);
    tail = multiply_add(square, broadcast(-0.5f), tail);
    return multiply_add(n, broadcast(kLn2High), m + tail);
}

static inline vf sigmoid_of(vf x) {
    return broadcast(1.0f) / (broadcast(1.0f) + exp_of(broadcast(0.0f) - x));
}
// tanh(x) = 2 sigmoid(2x) - 1; absolute error as of float32 near 1.
static inline vf tanh_of(vf x) {
    return multiply_add(broadcast(2.0f), sigmoid_of(x + x), broadcast(-1.0f));
}
// cap * tanh(x / cap), the soft limit of scores and logits.
static inline vf softcap_of(vf x, vf cap) {
    return cap * tanh_of(x / cap);
}

}  // namespace octavo::OCTAVO_LEVEL
