// Ops that take rows one by one: embedding, norm, gated.
#include <cmath>

#include "checks.h"

namespace octavo::checks {

namespace {

constexpr int64_t kRows = 5;
constexpr int64_t kWidths[] = {1, 3, 4, 66, 200};

void check_embedding(report& out, const kernel_table& kernels, dtype type) {
    constexpr int64_t kVocab = 70, kWidth = 34;
    constexpr float kScale = 3.5f;
    const std::vector<float> table = rounded(type, draw(kVocab * kWidth, 1));
    numbers panels(type, ceil_div(kVocab, kPanelColumns) * kPanelColumns * kWidth);
    for (int64_t panel = 0; panel * kPanelColumns < kVocab; ++panel) {
        kernels.pack_weights[static_cast<int>(type)]({table.data(), panels.data(), kWidth, 0, kVocab}, panel);
    }
    const std::vector<int32_t> tokens{69, 0, 31, 32, 0};
    std::vector<float> found(kRows * kWidth);
    kernels.embedding[static_cast<int>(type)]({tokens.data(), panels.data(), found.data(), kWidth, kScale}, 0, 2);
    kernels.embedding[static_cast<int>(type)]({tokens.data(), panels.data(), found.data(), kWidth, kScale}, 2, kRows);
    std::vector<double> expected;
    for (const int32_t token : tokens) {
        for (int64_t i = 0; i < kWidth; ++i) {
            expected.push_back(static_cast<double>(table[static_cast<size_t>(token * kWidth + i)]) * kScale);
        }
    }
    out.near(std::string("embedding ") + name_of(type), found, expected, kSums);
}

void check_norm(report& out, const kernel_table& kernels, dtype type, int64_t e, bool has_addend) {
    constexpr float kEps = 1e-5f;
    const std::string what = std::string("norm ") + name_of(type) + " " + std::to_string(e);
    const std::vector<float> x = draw(kRows * e, 1), addend = draw(kRows * e, 2), weight = draw(e, 3);
    const auto run = [&](int64_t step, std::vector<float>& residual) {
        numbers found(type, kRows * e);
        const norm_params p{
            x.data(), has_addend ? addend.data() : nullptr, weight.data(), residual.data(), found.data(), e, kEps};
        for (int64_t row = 0; row < kRows; row += step) kernels.norm[static_cast<int>(type)](p, row, row + step);
        return found.values();
    };
    std::vector<float> residual(x.size()), residual_alone(x.size());
    const std::vector<float> found = run(kRows, residual);
    out.same(what + " one by one", run(1, residual_alone), found);
    out.same(what + " residual one by one", residual_alone, residual);
    std::vector<double> expected(x.size()), sums(x.size());
    for (int64_t t = 0; t < kRows; ++t) {
        double squares = 0;
        for (int64_t i = t * e; i < (t + 1) * e; ++i) {
            const auto at = static_cast<size_t>(i);
            sums[at] = static_cast<double>(x[at]) + (has_addend ? static_cast<double>(addend[at]) : 0.0);
            squares += sums[at] * sums[at];
        }
        const double factor = 1 / std::sqrt(squares / static_cast<double>(e) + kEps);
        for (int64_t i = 0; i < e; ++i) {
            const auto at = static_cast<size_t>(t * e + i);
            expected[at] = sums[at] * factor * static_cast<double>(weight[static_cast<size_t>(i)]);
        }
    }
    out.near(what, found, expected, type == dtype::bfloat16 ? kRounded : kSums);
    out.near(what + " residual", residual, sums, kSums);
}

void check_gated(report& out, const kernel_table& kernels, dtype type, int64_t f, activation kind) {
    const std::string what = std::string("gated ") + name_of(type) + " " + std::to_string(f);
    std::vector<float> gate_up = draw(kRows * 2 * f, 4, 8.0f);
    gate_up[0] = -120.0f;  // beyond the range of the exponential
    const auto run = [&](int64_t step) {
        numbers found(type, kRows * f);
        const gated_params p{gate_up.data(), found.data(), f, kind};
        for (int64_t row = 0; row < kRows; row += step) kernels.gated[static_cast<int>(type)](p, row, row + step);
        return found.values();
    };
    std::vector<double> expected;
    for (int64_t t = 0; t < kRows; ++t) {
        const float* const gate = gate_up.data() + t * 2 * f;
        for (int64_t i = 0; i < f; ++i) expected.push_back(activate(kind, gate[i]) * static_cast<double>(gate[f + i]));
    }
    const std::vector<float> found = run(kRows);
    out.near(what, found, expected, type == dtype::bfloat16 ? kRounded : kSums);
    out.same(what + " one by one", run(1), found);
}

}  // namespace

void check_rows(report& out, const kernel_table& kernels) {
    for (const dtype type : kTypes) {
        check_embedding(out, kernels, type);
        for (const int64_t width : kWidths) {
            for (const bool has_addend : {false, true}) check_norm(out, kernels, type, width, has_addend);
            for (const activation kind : {activation::silu, activation::gelu_tanh}) {
                check_gated(out, kernels, type, width, kind);
            }
        }
    }
}

}  // namespace octavo::checks
