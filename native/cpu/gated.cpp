// gated: act(gate) * up, per row. gate_up [T, 2F] float32, gate first -> out [T, F] float32 or bfloat16.
//
// silu(x) = x * sigmoid(x).  gelu_tanh(x) = x / 2 * (1 + tanh(y)) = x * sigmoid(2y), y = sqrt(2 / pi) (x + 0.044715
// x^3): the second form loses no digits where tanh is near -1. Source: GLU variants, arXiv 2002.05202.
#include "kernels.h"
#include "math.h"

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

template <activation kKind, class Element>
static void gate_rows(const gated_params& p, int64_t first_row, int64_t last_row) {
    const int64_t whole = p.f / kLanes * kLanes;
    const int rest = static_cast<int>(p.f - whole);
    for (int64_t t = first_row; t < last_row; ++t) {
        const float* const gate = p.gate_up + t * 2 * p.f;
        const float* const up = gate + p.f;
        auto* const out = static_cast<Element*>(p.out) + t * p.f;
        for (int64_t i = 0; i < whole; i += kLanes) {
            store_elements(out + i, activate<kKind>(load(gate + i)) * load(up + i));
        }
        if (rest > 0) {
            const vf value = activate<kKind>(load_first(gate + whole, rest)) * load_first(up + whole, rest);
            store_elements(out + whole, value, rest);
        }
    }
}

template <class Element>
void gated(const gated_params& p, int64_t first_row, int64_t last_row) {
    if (p.kind == activation::silu) {
        gate_rows<activation::silu, Element>(p, first_row, last_row);
    } else {
        gate_rows<activation::gelu_tanh, Element>(p, first_row, last_row);
    }
}

template void gated<float>(const gated_params&, int64_t, int64_t);
template void gated<bfloat16>(const gated_params&, int64_t, int64_t);

}  // namespace octavo::OCTAVO_LEVEL
