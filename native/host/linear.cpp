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

linear_params params_of(const product& p, const void* packed_x, int64_t num_blocks) {
    linear_params out{};
    out.panels = p.weights.panels.data;
    out.bias = p.weights.bias.empty() ? nullptr : p.weights.bias.data();
    out.x = packed_x;
    out.out = p.out;
    out.rows = p.rows;
    out.k = p.weights.k;
    out.n = p.weights.n;
    out.num_blocks = num_blocks;
    out.softcap = p.softcap;
    out.gate = p.gate;
    out.gate_width = p.weights.gate_width;
    return out;
}

int64_t row_bytes(const packed_matrix& weights) {
    return weights.k * item_bytes(weights.type);
}

// One row is packed as it is.
const void* only_row(const product& p) {
    return static_cast<const char*>(p.x) + (p.indices ? p.indices[0] : 0) * row_bytes(p.weights);
}

}  // namespace

void backend::multiply(const product& p) {
    if (p.rows == 0) return;
    const int type = static_cast<int>(p.weights.type);
    const int64_t x_bytes = row_bytes(p.weights);
    const int64_t tile_rows = kernels_.max_tile_rows[type];
    const int64_t num_blocks = ceil_div(p.rows, tile_rows);
    arena::buffer packed;
    if (p.rows > 1) {
        packed = arena_->take(static_cast<size_t>(p.rows * x_bytes));
        const pack_rows_params pack{p.x, p.indices, packed.get(), p.rows, p.weights.k, num_blocks};
        const int64_t step = std::max<int64_t>(1, kPackHereBytes / (x_bytes * tile_rows));
        pool_.run(ceil_div(num_blocks, step), [&](int64_t unit, int) {
            const int64_t last = std::min((unit + 1) * step, num_blocks);
            for (int64_t block = unit * step; block < last; ++block) kernels_.pack_rows[type](pack, block);
        });
    }
    linear_params params = params_of(p, p.rows > 1 ? packed.get() : only_row(p), num_blocks);
    const int64_t num_panels = ceil_div(params.n, kPanelColumns);
    params.blocks_per_unit = std::clamp<int64_t>(kRowBytesPerUnit / (x_bytes * tile_rows), 1, num_blocks);
    const int64_t row_units = ceil_div(num_blocks, params.blocks_per_unit);
    // As few panels as keep the unit worth handing out, as many as leave each thread some units.
    const int64_t panel_bytes = x_bytes * kPanelColumns;
    const int64_t least = ceil_div(kBytesPerUnit, panel_bytes * std::min(p.rows, tile_rows));
    const int64_t most = num_panels * row_units / (kUnitsPerThread * pool_.num_threads());
    params.panels_per_unit = std::clamp<int64_t>(std::min<int64_t>(most, 8), std::min(least, num_panels), num_panels);
    const int64_t num_units = row_units * ceil_div(num_panels, params.panels_per_unit);
    pool_.run(num_units, [&](int64_t unit, int) { kernels_.linear[type](params, unit); });
}

void backend::multiply_here(const product& p, char* packed, memory_ahead* ahead) const {
    const int type = static_cast<int>(p.weights.type);
    const int64_t num_blocks = ceil_div(p.rows, kernels_.max_tile_rows[type]);
    if (p.rows > 1) {
        const pack_rows_params pack{p.x, p.indices, packed, p.rows, p.weights.k, num_blocks};
        for (int64_t block = 0; block < num_blocks; ++block) kernels_.pack_rows[type](pack, block);
    }
    linear_params params = params_of(p, p.rows > 1 ? packed : only_row(p), num_blocks);
    params.blocks_per_unit = num_blocks;
    params.panels_per_unit = ceil_div(params.n, kPanelColumns);
    params.ahead = ahead;
    kernels_.linear[type](params, 0);
}

tensor backend::linear(const tensor& x, const packed_matrix& weights) {
    shape_check check("linear");
    check.check(x, "x", weights.type, {"T", "K"});
    check.bind("K", weights.k, "weights");
    tensor out(*arena_, dtype::float32, {x.size(0), weights.n});
    multiply({x.data(), nullptr, x.size(0), weights, 0.0f, activation::none, out.data()});
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
    multiply({x.data(), rows, num_rows, head, softcap, activation::none, out.data()});
    return out;
}

}  // namespace octavo
