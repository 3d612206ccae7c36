// Activations of gated feed-forward blocks, over vectors.
//
// silu(x) = x * sigmoid(x).  gelu_tanh(x) = x / 2 * (1 + tanh(y)) = x * sigmoid(2y), y = sqrt(2 / pi) (x + 0.044715
// x^3): the second form loses no digits where tanh is near -1. Source: GLU variants, arXiv 2002.05202.
#pragma once

#include "math.h"
#include "octavo/kernel_table.h"

namespace octavo::OCTAVO_LEVEL {

constexpr float kTwiceSqrt2OverPi = 1.5957691216057308f;

template <activation kKind>
static inline vf activate(vf x) {
    if constexpr (kKind == activation::silu) {
        return x * sigmoid_of(x);
    } else {
        const vf cubic = multiply_add(x * x * x, broadcast(0.044715f), x);
        return x * sigmoid_of(cubic * broadcast(kTwiceSqrt2OverPi));
    }
}

}  // namespace octavo::OCTAVO_LEVEL
