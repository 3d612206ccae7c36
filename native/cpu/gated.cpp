// gated: act(gate) * up, per row. gate_up [T, 2F] float32, gate first -> out [T, F] float32 or bfloat16.
#include "activate.h"
#include "kernels.h"

namespace octavo::OCTAVO_LEVEL {

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
