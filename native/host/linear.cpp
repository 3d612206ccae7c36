// linear and logits: how a product is cut into units of work.
#include <algorithm>

#include "octavo/backend.h"

namespace octavo {

namespace {

// A unit of one-row work streams at least this much of the matrix, so that a hand-over costs nothing beside it.
constexpr int64_t kBytesPerUnit = 48 << 10;
// x of a unit of many-row work: with one panel it fits a second cache of 1 MB, and most of one of 512 KB.
constexpr int64_t kRowBytesPerUnit = 320 << 10;
constexpr int64_t kUnitsPerThread = 8;
constexpr int64_t kPackHereBytes = 64 << 10;

}  // namespace

void backend::multiply(const void* x, const int32_t* indices, int64_t rows, const packed_matrix& weights, float softcap,
                       float* out) {
    if (rows == 0) return;
    const int type = static_cast<int>(weights.type);
    const int64_t row_bytes = weights.k * item_bytes(weights.type);
    const int64_t max_tile_rows = kernels_.max_tile_rows[type];
    const int64_t num_blocks = ceil_div(rows, max_tile_rows);
    linear_params p{};
    arena::buffer packed;
    if (rows == 1) {
        p.x = static_cast<const char*>(x) + (indices ? indices[0] : 0) * row_bytes;
    } else {
        packed = arena_->take(static_cast<size_t>(rows * row_bytes));
        const pack_rows_params pack{x, indices, packed.get(), rows, weights.k, num_blocks};
        const int64_t step = std::max<int64_t>(1, kPackHereBytes / (row_bytes * max_tile_rows));
        pool_.run(ceil_div(num_blocks, step), [&](int64_t unit, int) {
            const int64_t last = std::min((unit + 1) * step, num_blocks);
            for (int64_t block = unit * step; block < last; ++block) kernels_.pack_rows[type](pack, block);
        });
        p.x = packed.get();
    }
    p.panels = weights.panels.data;
    p.bias = weights.bias.empty() ? nullptr : weights.bias.data();
    p.out = out;
    p.rows = rows;
    p.k = weights.k;
    p.n = weights.n;
    p.num_blocks = num_blocks;
    p.softcap = softcap;
    const int64_t num_panels = ceil_div(weights.n, kPanelColumns);
    p.blocks_per_unit = std::clamp<int64_t>(kRowBytesPerUnit / (row_bytes * max_tile_rows), 1, num_blocks);
    const int64_t row_units = ceil_div(num_blocks, p.blocks_per_unit);
    // As few panels as keep the unit worth handing out, as many as leave each thread some units.
    const int64_t panel_bytes = row_bytes * kPanelColumns;
    const int64_t least = ceil_div(kBytesPerUnit, panel_bytes * std::min(rows, max_tile_rows));
    const int64_t most = num_panels * row_units / (kUnitsPerThread * pool_.num_threads());
    p.panels_per_unit = std::clamp<int64_t>(std::min<int64_t>(most, 8), std::min(least, num_panels), num_panels);
    const int64_t num_units = row_units * ceil_div(num_panels, p.panels_per_unit);
    pool_.run(num_units, [&](int64_t unit, int) { kernels_.linear[type](p, unit); });
}

tensor backend::linear(const tensor& x, const packed_matrix& weights) {
    shape_check check("linear");
    check.check(x, "x", weights.type, {"T", "K"});
    check.bind("K", weights.k, "weights");
    tensor out(*arena_, dtype::float32, {x.size(0), weights.n});
    multiply(x.data(), nullptr, x.size(0), weights, 0.0f, out.floats());
    return out;
}

tensor backend::logits(const tensor& x, const int32_t* rows, int64_t num_rows, const packed_matrix& head,
                       float softcap) {
    shape_check check("logits");
    check.check(x, "x", head.type, {"T", "E"});
    check.bind("E", head.k, "head");
    for (int64_t r = 0; r < num_rows; ++r) {
        check.require(rows[r] >= 0 && rows[r] < x.size(0),
                      "row " + std::to_string(rows[r]) + " is not below T = " + std::to_string(x.size(0)));
    }
    tensor out(*arena_, dtype::float32, {num_rows, head.n});
    multiply(x.data(), rows, num_rows, head, softcap, out.floats());
    return out;
}

}  // namespace octavo
