// What becomes of the sums of a product: bias, soft cap, gate, a last panel that is not full.
#pragma once

#include "activate.h"
#include "octavo/kernel_table.h"

namespace octavo::OCTAVO_LEVEL {

// Whether the sums of a panel are the result as they are.
static inline bool is_plain_product(const linear_params& p, int64_t first_column) {
    return p.bias == nullptr && p.softcap == 0 && p.gate == activation::none && p.n - first_column >= kPanelColumns;
}

template <class Element, activation kKind>
static void gate_sums(const linear_params& p, const float (*sums)[kPanelColumns], int64_t rows, int64_t first_row,
                      int64_t first_column) {
    const int64_t first = first_column / 2, width = min_of(kGateColumns, p.gate_width - first);
    for (int64_t r = 0; r < rows; ++r) {
        Element* const out = static_cast<Element*>(p.out) + (first_row + r) * p.gate_width + first;
        for (int64_t i = 0; i < width; i += kLanes) {
            vf gate = load(sums[r] + i), up = load(sums[r] + kGateColumns + i);
            if (p.bias) {
                gate = gate + load(p.bias + first_column + i);
                up = up + load(p.bias + first_column + kGateColumns + i);
            }
            store_elements(out + i, activate<kKind>(gate) * up, static_cast<int>(min_of(kLanes, width - i)));
        }
    }
}

template <class Element>
__attribute__((noinline)) static void finish_rows(const linear_params& p, const float (*sums)[kPanelColumns],
                                                  int64_t rows, int64_t first_row, int64_t first_column) {
    if (p.gate == activation::silu) return gate_sums<Element, activation::silu>(p, sums, rows, first_row, first_column);
    if (p.gate == activation::gelu_tanh) {
        return gate_sums<Element, activation::gelu_tanh>(p, sums, rows, first_row, first_column);
    }
    const int64_t width = min_of(kPanelColumns, p.n - first_column);
    for (int64_t r = 0; r < rows; ++r) {
        float* const out = static_cast<float*>(p.out) + (first_row + r) * p.n + first_column;
        for (int64_t column = 0; column < width; column += kLanes) {
            const int count = static_cast<int>(min_of(kLanes, width - column));
            vf value = load(sums[r] + column);
            if (p.bias) value = value + load_first(p.bias + first_column + column, count);
            if (p.softcap > 0) value = softcap_of(value, broadcast(p.softcap));
            store_first(out + column, value, count);
        }
    }
}

}  // namespace octavo::OCTAVO_LEVEL
