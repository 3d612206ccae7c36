// linear: x [rows, K] times a packed matrix, plus bias -> out [rows, N] float32.
//
// Layout: kernel_table.h. A unit of work is some row blocks by some panels; a panel (32 columns, K * 64 bytes in
// bfloat16) stays in the second cache while the row blocks pass, one row block's sums stay in registers over all of K.
// Cost: one row reads N * K elements once and is bound by memory; many rows do 2 * rows * N * K operations.
// One text: see tile.h; the bias is added last.
#include "kernels.h"
#include "linear_unit.h"
#include "math.h"
#include "tile.h"

namespace octavo::OCTAVO_LEVEL {

// 8 KB ahead: with two threads the best of 0 to 16 KB on Zen 4, by little (docs/log.md).
constexpr int kPrefetchUnits = 2048;

// What few products need: bias, soft cap, a last panel that is not full. Kept apart, so that sums stay in registers.
template <int kRows, int kVectors>
__attribute__((noinline)) static void finish_tile(const linear_params& p, const vf (&acc)[kRows][kVectors], float* out,
                                                  int64_t first_column, int64_t width) {
    for (int v = 0; v < kVectors; ++v) {
        const int count = static_cast<int>(min_of(kLanes, width - v * kLanes));
        if (count <= 0) return;
        const vf bias = p.bias ? load_first(p.bias + first_column + v * kLanes, count) : broadcast(0.0f);
        for (int r = 0; r < kRows; ++r) {
            vf value = acc[r][v];
            if (p.bias) value = value + bias;
            if (p.softcap > 0) value = softcap_of(value, broadcast(p.softcap));
            store_first(out + r * p.n + v * kLanes, value, count);
        }
    }
}

template <class Unit, int kRows>
static void multiply_panel(const linear_params& p, const Unit* w, const Unit* x, int64_t units, int64_t first_row,
                           int64_t first_column) {
    // One row has registers to spare and takes the panel's whole width; chains of sums hide the latency.
    constexpr int kVectors = kRows == 1 ? kPanelColumns / kLanes : 2;
    const int64_t width = min_of(kPanelColumns, p.n - first_column);
    const bool is_plain = p.bias == nullptr && p.softcap == 0;
    for (int64_t column = 0; column < width; column += kVectors * kLanes) {
        vf acc[kRows][kVectors];
        for (int r = 0; r < kRows; ++r) {
            for (int v = 0; v < kVectors; ++v) acc[r][v] = broadcast(0.0f);
        }
        multiply_tile<Unit, kRows, kVectors, 1, kRows, kRows == 1 ? kPrefetchUnits : 0>(w + column, kPanelColumns, x,
                                                                                        units, acc);
        float* const out = p.out + first_row * p.n + first_column + column;
        if (is_plain && width - column >= kVectors * kLanes) {
            for (int r = 0; r < kRows; ++r) {
                for (int v = 0; v < kVectors; ++v) store(out + r * p.n + v * kLanes, acc[r][v]);
            }
        } else {
            finish_tile(p, acc, out, first_column + column, width - column);
        }
    }
}

template <class Unit>
using panel_function = void (*)(const linear_params&, const Unit*, const Unit*, int64_t, int64_t, int64_t);

// multiply_panel by number of rows, 1 .. kMaxTileRows.
template <class Unit, int kRows = kMaxTileRows>
struct panel_by_rows {
    static panel_function<Unit> find(int64_t rows) {
        if (rows == kRows) return multiply_panel<Unit, kRows>;
        if constexpr (kRows > 1) return panel_by_rows<Unit, kRows - 1>::find(rows);
        return nullptr;
    }
};

template <class Element>
void linear(const linear_params& p, int64_t unit) {
    using scalar = typename unit_of<Element>::scalar;
    const int64_t units = p.k / unit_of<Element>::kElements;
    const linear_unit work = unit_of_product(p, unit);
    for (int64_t panel = work.first_panel; panel < work.last_panel; ++panel) {
        const auto* const w = static_cast<const scalar*>(p.panels) + panel * units * kPanelColumns;
        for (int64_t block = work.first_block; block < work.last_block; ++block) {
            const int64_t row = block_start(p.rows, p.num_blocks, block);
            const int64_t count = block_start(p.rows, p.num_blocks, block + 1) - row;
            const auto* const x = static_cast<const scalar*>(p.x) + row * units;
            panel_by_rows<scalar>::find(count)(p, w, x, units, row, panel * kPanelColumns);
        }
    }
}

template void linear<float>(const linear_params&, int64_t);
template void linear<bfloat16>(const linear_params&, int64_t);

}  // namespace octavo::OCTAVO_LEVEL
