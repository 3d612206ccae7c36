// Packing: matrices into panels once at load, rows of x into row blocks once per product.
//
// weights  [num_columns, K] float32 -> panels [N / 32][K units][32 columns][unit], rounded to the element type
// rows     [rows, K] -> row blocks, block b of r rows: [K units][r][unit]
#include "kernels.h"
#include "tile.h"

namespace octavo::OCTAVO_LEVEL {

// Columns are written a stretch of K at a time, so that the lines of the panel being written stay in the first cache.
constexpr int64_t kStretchUnits = 64;

template <class Element>
void pack_weights(const pack_weights_params& p, int64_t panel) {
    constexpr int64_t kElements = unit_of<Element>::kElements;
    const int64_t units = p.k / kElements;
    auto* const target = static_cast<Element*>(p.panels) + panel * units * kPanelColumns * kElements;
    const int64_t first = max_of(panel * kPanelColumns, p.first_column);
    const int64_t last = min_of((panel + 1) * kPanelColumns, p.first_column + p.num_columns);
    for (int64_t start = 0; start < units; start += kStretchUnits) {
        const int64_t stop = min_of(start + kStretchUnits, units);
        for (int64_t column = first; column < last; ++column) {
            const float* const row = p.source + (column - p.first_column) * p.k;
            Element* const place = target + (column - panel * kPanelColumns) * kElements;
            for (int64_t unit = start; unit < stop; ++unit) {
                for (int64_t i = 0; i < kElements; ++i) {
                    narrow_into(place[unit * kPanelColumns * kElements + i], row[unit * kElements + i]);
                }
            }
        }
    }
}

// kRows rows side by side: written in order, read along kRows streams.
template <class Unit, int kRows>
static void interleave(const Unit* const* rows, int64_t units, Unit* target) {
    for (int64_t i = 0; i < units; ++i) {
        for (int r = 0; r < kRows; ++r) target[r] = load_unit(rows[r] + i);
        target += kRows;
    }
}

template <class Unit, int kRows = kMaxTileRows>
struct interleave_by_rows {
    static void run(int64_t count, const Unit* const* rows, int64_t units, Unit* target) {
        if (count == kRows) return interleave<Unit, kRows>(rows, units, target);
        if constexpr (kRows > 1) interleave_by_rows<Unit, kRows - 1>::run(count, rows, units, target);
    }
};

template <class Element>
void pack_rows(const pack_rows_params& p, int64_t block) {
    using unit = typename unit_of<Element>::scalar;
    const int64_t units = p.k / unit_of<Element>::kElements;
    const int64_t start = block_start(p.rows, p.num_blocks, block);
    const int64_t count = block_start(p.rows, p.num_blocks, block + 1) - start;
    const unit* rows[kMaxTileRows];
    for (int64_t r = 0; r < count; ++r) {
        const int64_t row = p.indices ? p.indices[start + r] : start + r;
        rows[r] = static_cast<const unit*>(p.x) + row * units;
    }
    interleave_by_rows<unit>::run(count, rows, units, static_cast<unit*>(p.packed) + start * units);
}

template void pack_weights<float>(const pack_weights_params&, int64_t);
template void pack_weights<bfloat16>(const pack_weights_params&, int64_t);
template void pack_rows<float>(const pack_rows_params&, int64_t);
template void pack_rows<bfloat16>(const pack_rows_params&, int64_t);

}  // namespace octavo::OCTAVO_LEVEL
