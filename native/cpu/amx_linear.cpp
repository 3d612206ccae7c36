// linear on the matrix unit: x [rows, K] bfloat16 times a packed matrix, plus bias -> out [rows, N] float32.
//
// Panels lie as for the other levels (kernel_table.h): 16 pairs of K by 16 columns are a tile whose rows are 128 bytes
// apart. Row blocks are of 32 rows, the last one of what is left: [K / 32][r][32], then [r][the rest of K]; one row is
// packed as it is. A panel (K * 64 bytes) stays in the second cache while the row blocks pass.
// One text: see amx_product.h; the bias is added last.
#include "amx_product.h"
#include "kernels.h"
#include "linear_finish.h"
#include "linear_unit.h"

namespace octavo::OCTAVO_LEVEL {

constexpr int kPrefetchBytes = 6 << 10;  // measured on a Xeon with an early kernel of this kind (docs/decisions/0015)

static int64_t height_of(int64_t rows, int64_t block) {
    return min_of(kAmxRows, rows - block * kAmxRows);
}

void pack_rows_by_tiles(const pack_rows_params& p, int64_t block) {
    const int64_t first = block * kAmxRows, count = height_of(p.rows, block);
    auto* target = static_cast<bfloat16*>(p.packed) + first * p.k;
    for (int64_t start = 0; start < p.k; start += kStepElements) {
        const int64_t width = min_of(kStepElements, p.k - start);
        for (int64_t r = 0; r < count; ++r) {
            const int64_t row = p.indices ? p.indices[first + r] : first + r;
            const auto* const source = static_cast<const bfloat16*>(p.x) + row * p.k + start;
            std::memcpy(target, source, static_cast<size_t>(width) * sizeof(bfloat16));
            target += width;
        }
    }
}

static void pad_step(const char* a, const char* b, int64_t rows, int64_t units, padded_step& out) {
    std::memset(&out, 0, sizeof out);
    for (int64_t r = 0; r < rows; ++r) std::memcpy(out.a[r], a + r * units * 4, static_cast<size_t>(units * 4));
    std::memcpy(out.b, b, static_cast<size_t>(units * kPanelRowBytes));
}

// One row block, of `rows` rows, by one panel.
template <int kRowTiles>
static void multiply_panel(tile_unit& unit, const linear_params& p, int64_t block, int64_t rows, int64_t panel) {
    const int64_t units = p.k / 2, steps = units / kStepUnits, rest = units % kStepUnits;
    const char* const a = static_cast<const char*>(p.x) + block * kAmxRows * p.k * 2;
    const char* const b = static_cast<const char*>(p.panels) + panel * units * kPanelRowBytes;
    const tile_operand rows_of_x{a, kTileRowBytes, rows * kTileRowBytes};
    const tile_operand columns{b, kPanelRowBytes, kStepUnits * kPanelRowBytes};
    clear_sums<kRowTiles, 2>(unit);
    // Few rows wait for memory, many pass over a panel that is in the cache after the first.
    multiply_steps<kRowTiles, 2, kRowTiles == 1 ? kPrefetchBytes : 0>(unit, rows_of_x, columns, steps);
    if (rest > 0) {
        padded_step last;
        pad_step(a + steps * rows * kTileRowBytes, b + steps * kStepUnits * kPanelRowBytes, rows, rest, last);
        multiply_steps<kRowTiles, 2>(unit, {last.a[0], kTileRowBytes, 0}, {last.b[0], kPanelRowBytes, 0}, 1);
    }
    const int64_t first_row = block * kAmxRows, first_column = panel * kPanelColumns;
    if (is_plain_product(p, first_column)) {
        store_sums<kRowTiles, 2>(unit, static_cast<float*>(p.out) + first_row * p.n + first_column, p.n);
        return;
    }
    alignas(64) float sums[kAmxRows][kPanelColumns];
    store_sums<kRowTiles, 2>(unit, sums[0], kPanelColumns);
    finish_rows<bfloat16>(p, sums, rows, first_row, first_column);
}

// Row blocks of one height by the unit's panels; the configuration holds for all of them.
static void multiply_blocks(const linear_params& p, const linear_unit& work, int64_t first_block, int64_t last_block) {
    if (first_block >= last_block) return;
    const int64_t rows = height_of(p.rows, first_block);
    tile_unit unit(config_for(rows));
    for (int64_t panel = work.first_panel; panel < work.last_panel; ++panel) {
        for (int64_t block = first_block; block < last_block; ++block) {
            if (rows <= kTileRows) {
                multiply_panel<1>(unit, p, block, rows, panel);
            } else {
                multiply_panel<2>(unit, p, block, rows, panel);
            }
        }
    }
}

void linear_by_tiles(const linear_params& p, int64_t unit) {
    const linear_unit work = unit_of_product(p, unit);
    const int64_t num_full = p.rows / kAmxRows;
    multiply_blocks(p, work, work.first_block, min_of(work.last_block, num_full));
    multiply_blocks(p, work, max_of(work.first_block, num_full), work.last_block);
}

}  // namespace octavo::OCTAVO_LEVEL
