// norm: residual = x + addend; out = residual / sqrt(mean(residual^2) + eps) * weight, per row.
//
// x, addend, residual [T, E] float32; out [T, E] float32 or bfloat16; weight [E] float32.
// Source: RMSNorm, arXiv 1910.07467.
#include "kernels.h"

namespace octavo::OCTAVO_LEVEL {

template <class Element>
void norm(const norm_params& p, int64_t first_row, int64_t last_row) {
    const int64_t whole = p.e / kLanes * kLanes;
    const int rest = static_cast<int>(p.e - whole);
    for (int64_t t = first_row; t < last_row; ++t) {
        const float* const x = p.x + t * p.e;
        const float* const addend = p.addend ? p.addend + t * p.e : nullptr;
        float* const residual = p.residual ? p.residual + t * p.e : nullptr;
        auto* const out = static_cast<Element*>(p.out) + t * p.e;
        vf squares = broadcast(0.0f);
        for (int64_t i = 0; i < whole; i += kLanes) {
            vf value = load(x + i);
            if (addend) value = value + load(addend + i);
            if (residual) store(residual + i, value);
            squares = multiply_add(value, value, squares);
        }
        if (rest > 0) {
            vf value = load_first(x + whole, rest);
            if (addend) value = value + load_first(addend + whole, rest);
            if (residual) store_first(residual + whole, value, rest);
            squares = multiply_add(value, value, squares);
        }
        const float mean = sum_lanes(squares) / static_cast<float>(p.e);
        const vf factor = broadcast(1.0f / __builtin_sqrtf(mean + p.eps));
        const float* const sum = residual ? residual : x;
        for (int64_t i = 0; i < whole; i += kLanes) {
            store_elements(out + i, load(sum + i) * factor * load(p.weight + i));
        }
        if (rest > 0) {
            const vf value = load_first(sum + whole, rest) * factor * load_first(p.weight + whole, rest);
            store_elements(out + whole, value, rest);
        }
    }
}

template void norm<float>(const norm_params&, int64_t, int64_t);
template void norm<bfloat16>(const norm_params&, int64_t, int64_t);

}  // namespace octavo::OCTAVO_LEVEL
