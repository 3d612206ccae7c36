// linear: every number of rows around a tile's height, tails of columns, every ending.
#include <cmath>

#include "checks.h"

namespace octavo::checks {

namespace {

constexpr int64_t kMostRows = 13;

struct ending {
    const char* name;
    bool has_bias;
    float softcap;
    activation gate;
};
constexpr ending kEndings[] = {{"plain", false, 0, activation::none},
                               {"bias", true, 0, activation::none},
                               {"softcap", true, 3, activation::none},
                               {"silu", false, 0, activation::silu},
                               {"gelu", true, 0, activation::gelu_tanh}};

// A matrix [n, k] with its bias; gated: n is that of gates and ups in turns, `gate_width` of the pairs are real.
struct layer {
    dtype type;
    int64_t n, k, gate_width;
    std::vector<float> weights, bias;
    numbers panels;

    layer(const kernel_table& kernels, dtype element, int64_t columns, int64_t rows, int64_t width)
        : type(element),
          n(columns),
          k(rows),
          gate_width(width),
          weights(rounded(element, draw(columns * rows, 1))),
          bias(draw(columns, 2)),
          panels(element, ceil_div(columns, kPanelColumns) * kPanelColumns * rows) {
        // In two parts that share a panel, as a checkpoint's q, k and v do.
        const int64_t half = n / 2;
        pack(kernels, 0, half);
        pack(kernels, half, n - half);
    }

    void pack(const kernel_table& kernels, int64_t first, int64_t count) {
        const pack_weights_params p{weights.data() + first * k, panels.data(), k, first, count};
        for (int64_t panel = first / kPanelColumns; panel * kPanelColumns < first + count; ++panel) {
            kernels.pack_weights[static_cast<int>(type)](p, panel);
        }
    }

    bool is_gated(const ending& end) const { return end.gate != activation::none; }
    int64_t width(const ending& end) const { return is_gated(end) ? gate_width : n; }
    dtype out_type(const ending& end) const { return is_gated(end) ? type : dtype::float32; }
};

// Rows `indices` of x times the matrix, cut into units of so many row blocks and panels; 0: all in one.
std::vector<float> multiply(const kernel_table& kernels, const layer& l, const ending& end, const numbers& x,
                            const std::vector<int32_t>& indices, int64_t per_unit) {
    const int type = static_cast<int>(l.type);
    const auto rows = static_cast<int64_t>(indices.size());
    const int64_t num_blocks = ceil_div(rows, kernels.max_tile_rows[type]);
    const int64_t num_panels = ceil_div(l.n, kPanelColumns);
    numbers packed(l.type, rows * l.k), out(l.out_type(end), rows * l.width(end));
    for (int64_t block = 0; block < num_blocks; ++block) {
        kernels.pack_rows[type]({x.data(), indices.data(), packed.data(), rows, l.k, num_blocks}, block);
    }
    linear_params p{};
    p.panels = l.panels.data();
    p.bias = end.has_bias ? l.bias.data() : nullptr;
    p.x = packed.data();
    p.out = out.data();
    p.rows = rows;
    p.k = l.k;
    p.n = l.n;
    p.num_blocks = num_blocks;
    p.blocks_per_unit = per_unit ? per_unit : num_blocks;
    p.panels_per_unit = per_unit ? per_unit : num_panels;
    p.softcap = end.softcap;
    p.gate = end.gate;
    p.gate_width = l.gate_width;
    const int64_t num_units = ceil_div(num_blocks, p.blocks_per_unit) * ceil_div(num_panels, p.panels_per_unit);
    for (int64_t unit = 0; unit < num_units; ++unit) kernels.linear[type](p, unit);
    return out.values();
}

std::vector<double> expect(const layer& l, const ending& end, const std::vector<float>& x, int64_t rows) {
    std::vector<double> out;
    for (int64_t r = 0; r < rows; ++r) {
        const auto sum_of = [&](int64_t column) {
            double sum = end.has_bias ? l.bias[static_cast<size_t>(column)] : 0.0;
            for (int64_t i = 0; i < l.k; ++i) {
                sum += static_cast<double>(l.weights[static_cast<size_t>(column * l.k + i)]) *
                       static_cast<double>(x[static_cast<size_t>(r * l.k + i)]);
            }
            return end.softcap > 0 ? end.softcap * std::tanh(sum / end.softcap) : sum;
        };
        for (int64_t i = 0; i < l.width(end); ++i) {
            const int64_t gate = i / kGateColumns * kPanelColumns + i % kGateColumns;
            out.push_back(l.is_gated(end) ? activate(end.gate, sum_of(gate)) * sum_of(gate + kGateColumns) : sum_of(i));
        }
    }
    return out;
}

std::vector<int32_t> range(int64_t first, int64_t count) {
    std::vector<int32_t> out;
    for (int64_t i = 0; i < count; ++i) out.push_back(static_cast<int32_t>(first + i));
    return out;
}

void check_ending(report& out, const kernel_table& kernels, const layer& l, const ending& end) {
    const std::string what = std::string("linear ") + end.name + " " + name_of(l.type) + " [" + std::to_string(l.n) +
                             ", " + std::to_string(l.k) + "], rows ";
    const std::vector<float> x = rounded(l.type, draw(kMostRows * l.k, 3));
    const numbers given(l.type, x);
    const tolerance allowed = l.out_type(end) == dtype::bfloat16 ? kRounded : kSums;
    std::vector<float> alone;
    for (int32_t r = 0; r < kMostRows; ++r) {
        const std::vector<float> row = multiply(kernels, l, end, given, {r}, 0);
        alone.insert(alone.end(), row.begin(), row.end());
    }
    out.near(what + "one by one", alone, expect(l, end, x, kMostRows), allowed);
    for (int64_t rows = 2; rows <= kMostRows; ++rows) {
        const int64_t first = kMostRows - rows;
        const std::vector<float> own = part(alone, first * l.width(end), rows * l.width(end));
        for (const int64_t per_unit : {0, 1}) {
            out.same(what + std::to_string(rows), multiply(kernels, l, end, given, range(first, rows), per_unit), own);
        }
    }
}

}  // namespace

void check_linear(report& out, const kernel_table& kernels) {
    for (const dtype type : kTypes) {
        for (const auto& [n, k] : {std::pair<int64_t, int64_t>{1, 2}, {31, 6}, {32, 64}, {70, 90}, {97, 200}}) {
            const layer plain(kernels, type, n, k, 0);
            const layer gated(kernels, type, 2 * kGateColumns * ceil_div(n, kGateColumns), k, n);
            for (const ending& end : kEndings) {
                check_ending(out, kernels, end.gate == activation::none ? plain : gated, end);
            }
        }
    }
}

}  // namespace octavo::checks
