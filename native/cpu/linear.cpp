// linear: x [rows, K] times a packed matrix, plus bias -> out [rows, N] float32.
//
// Layout: kernel_table.h. A unit of work is some row blocks by some panels; a panel (32 columns, K * 64 bytes in
// bfloat16) stays in the second cache while the row blocks pass, one row block's sums stay in registers over all of K.
// Cost: one row reads N * K elements once and is bound by memory; many rows do 2 * rows * N * K operations.
// One text: see tile.h; the bias is added last.
#include "kernels.h"
#include "linear_finish.h"
#include "linear_unit.h"
#include "tile.h"

namespace octavo::OCTAVO_LEVEL {

// 8 KB ahead: with two threads the best of 0 to 16 KB on Zen 4, by little (docs/log.md).
constexpr int kPrefetchUnits = 2048;

// `ahead`: the panel that is multiplied next, if the memory is to be asked for it; null: not.
template <class Unit>
struct panel_job {
    const Unit* w;
    const Unit* x;
    const Unit* ahead;
    int64_t units, first_row, first_column;
};

// Up to `most` lines of what is wanted of memory; where nothing is, one and the same line that is at hand.
template <class Unit>
struct lines_ahead {
    const Unit* start;
    int64_t stride, count;
};

template <class Unit>
static inline lines_ahead<Unit> take_lines(memory_ahead* ahead, const Unit* at_hand, int64_t most) {
    if (!ahead || ahead->num_regions == 0) return {at_hand, 0, most};
    const int64_t count = min_of(most, (ahead->region_bytes - ahead->next_byte) / kLineBytes);
    const auto* const start = reinterpret_cast<const Unit*>(ahead->regions[0] + ahead->next_byte);
    ahead->next_byte += count * kLineBytes;
    if (ahead->next_byte + kLineBytes > ahead->region_bytes) {
        ahead->next_byte = 0;
        ++ahead->regions;
        --ahead->num_regions;
    }
    return {start, kLineUnits, count};
}

template <class Element, int kRows>
static void multiply_panel(const linear_params& p, const panel_job<typename unit_of<Element>::scalar>& job) {
    using unit = typename unit_of<Element>::scalar;
    // One row has registers to spare and takes the panel's whole width; chains of sums hide the latency.
    constexpr int kVectors = kRows == 1 ? kPanelColumns / kLanes : 2;
    const bool is_plain = is_plain_product(p, job.first_column);
    alignas(64) float sums[kRows][kPanelColumns];
    for (int64_t column = 0; column < kPanelColumns; column += kVectors * kLanes) {
        vf acc[kRows][kVectors];
        for (int r = 0; r < kRows; ++r) {
            for (int v = 0; v < kVectors; ++v) acc[r][v] = broadcast(0.0f);
        }
        if constexpr (kRows == 1) {
            multiply_tile<unit, kRows, kVectors, 1, kRows, kPrefetchUnits>(job.w + column, kPanelColumns, job.x,
                                                                           job.units, acc);
        } else if (job.ahead) {
            multiply_tile<unit, kRows, kVectors, 1, kRows, 0, lines_of(kVectors)>(
                job.w + column, kPanelColumns, job.x, job.units, acc, job.ahead + column, kPanelColumns);
        } else {
            for (int64_t done = 0; done < job.units;) {
                const lines_ahead<unit> lines = take_lines(p.ahead, job.w, job.units - done);
                multiply_tile<unit, kRows, kVectors, 1, kRows, 0, 1>(job.w + column + done * kPanelColumns,
                                                                     kPanelColumns, job.x + done * kRows, lines.count,
                                                                     acc, lines.start, lines.stride);
                done += lines.count;
            }
        }
        if (is_plain) {
            float* const out = static_cast<float*>(p.out) + job.first_row * p.n + job.first_column + column;
            for (int r = 0; r < kRows; ++r) {
                for (int v = 0; v < kVectors; ++v) store(out + r * p.n + v * kLanes, acc[r][v]);
            }
        } else {
            for (int r = 0; r < kRows; ++r) {
                for (int v = 0; v < kVectors; ++v) store(sums[r] + column + v * kLanes, acc[r][v]);
            }
        }
    }
    if (!is_plain) finish_rows<Element>(p, sums, kRows, job.first_row, job.first_column);
}

template <class Element>
using panel_function = void (*)(const linear_params&, const panel_job<typename unit_of<Element>::scalar>&);

// multiply_panel by number of rows, 1 .. kMaxTileRows.
template <class Element, int kRows = kMaxTileRows>
struct panel_by_rows {
    static panel_function<Element> find(int64_t rows) {
        if (rows == kRows) return multiply_panel<Element, kRows>;
        if constexpr (kRows > 1) return panel_by_rows<Element, kRows - 1>::find(rows);
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
        // Asked for in the first of several passes, so that the next panel is in the second cache when its turn comes.
        const bool asks = panel + 1 < work.last_panel && work.last_block - work.first_block > 1;
        for (int64_t block = work.first_block; block < work.last_block; ++block) {
            const int64_t row = block_start(p.rows, p.num_blocks, block);
            const int64_t count = block_start(p.rows, p.num_blocks, block + 1) - row;
            const auto* const x = static_cast<const scalar*>(p.x) + row * units;
            const scalar* const ahead = asks && block == work.first_block ? w + units * kPanelColumns : nullptr;
            panel_by_rows<Element>::find(count)(p, {w, x, ahead, units, row, panel * kPanelColumns});
        }
    }
}

template void linear<float>(const linear_params&, int64_t);
template void linear<bfloat16>(const linear_params&, int64_t);

}  // namespace octavo::OCTAVO_LEVEL
