// Construction, packing, and the ops that work row by row.
#include "octavo/backend.h"

#include "octavo/cpu_features.h"
#include "octavo/select_kernels.h"
#include "run_rows.h"

namespace octavo {

namespace {

size_t packed_bytes(dtype type, int64_t n, int64_t k) {
    const shape_check check("pack_linear");
    check.require(n > 0 && k > 0, "N and K must be positive");
    check.require(k % unit_elements(type) == 0, "K is " + std::to_string(k) + "; bfloat16 needs an even K");
    return static_cast<size_t>(ceil_div(n, kPanelColumns) * kPanelColumns * k * item_bytes(type));
}

}  // namespace

packed_matrix::packed_matrix(slab& memory, dtype element, int64_t columns, int64_t rows, int64_t width)
    : type(element), n(columns), k(rows), gate_width(width), panels(memory.take(packed_bytes(element, columns, rows))) {
    shape_check("pack_gated")
        .require(width == 0 || n == 2 * kGateColumns * ceil_div(width, kGateColumns),
                 "N must be twice F rounded up to " + std::to_string(kGateColumns));
}

backend::backend(dtype type, const char* isa, int num_threads)
    : type_(type),
      kernels_(select_kernels(isa)),
      third_cache_bytes_(third_cache_bytes()),
      arena_(std::make_shared<arena>()),
      pool_(num_threads) {}

void backend::pack_columns(packed_matrix& matrix, int64_t first_column, const float* rows, int64_t num_rows,
                           int64_t k) {
    shape_check check("pack_linear");
    check.bind("K", matrix.k, "the packed matrix");
    check.bind("K", k, "rows");
    check.require(first_column >= 0 && num_rows >= 0 && first_column + num_rows <= matrix.n,
                  "columns " + std::to_string(first_column) + " to " + std::to_string(first_column + num_rows) +
                      " of N = " + std::to_string(matrix.n));
    if (num_rows == 0) return;
    const pack_weights_params params{rows, matrix.panels.data, k, first_column, num_rows};
    const int64_t first_panel = first_column / kPanelColumns;
    const int64_t last_panel = ceil_div(first_column + num_rows, kPanelColumns);
    const auto pack = kernels_.pack_weights[static_cast<int>(matrix.type)];
    pool_.run(last_panel - first_panel, [&](int64_t unit, int) { pack(params, first_panel + unit); });
}

tensor backend::embedding(const int32_t* tokens, int64_t num_tokens, const packed_matrix& table, float scale) {
    shape_check check("embedding");
    for (int64_t t = 0; t < num_tokens; ++t) {
        check.require(tokens[t] >= 0 && tokens[t] < table.n,
                      "token " + std::to_string(tokens[t]) + " is not below V = " + std::to_string(table.n));
    }
    tensor out(*arena_, dtype::float32, {num_tokens, table.k});
    const embedding_params params{tokens, table.panels.data, out.floats(), table.k, scale};
    const auto gather = kernels_.embedding[static_cast<int>(table.type)];
    run_rows(num_tokens, table.k * 4, [&](int64_t first, int64_t last) { gather(params, first, last); });
    return out;
}

std::pair<tensor, tensor> backend::rms_norm(const tensor& x, const tensor* addend, const packed_vector& weight,
                                            float eps) {
    shape_check check("rms_norm");
    check.check(x, "x", dtype::float32, {"T", "E"});
    if (addend) check.check(*addend, "addend", dtype::float32, {"T", "E"});
    check.bind("E", static_cast<int64_t>(weight.values.size()), "weight");
    const int64_t t = x.size(0), e = x.size(1);
    tensor normed(*arena_, type_, {t, e}), residual(*arena_, dtype::float32, {t, e});
    const norm_params params{
        x.floats(), addend ? addend->floats() : nullptr, weight.values.data(), residual.floats(), normed.data(), e,
        eps};
    const auto norm = kernels_.norm[index()];
    run_rows(t, e, [&](int64_t first, int64_t last) { norm(params, first, last); });
    return {std::move(normed), std::move(residual)};
}

tensor backend::norm_only(const tensor& x, const packed_vector& weight, float eps) {
    shape_check check("norm_only");
    check.check(x, "x", dtype::float32, {"T", "E"});
    check.bind("E", static_cast<int64_t>(weight.values.size()), "weight");
    const int64_t t = x.size(0), e = x.size(1);
    tensor out(*arena_, dtype::float32, {t, e});
    const norm_params params{x.floats(), nullptr, weight.values.data(), nullptr, out.data(), e, eps};
    const auto norm = kernels_.norm[static_cast<int>(dtype::float32)];
    run_rows(t, e, [&](int64_t first, int64_t last) { norm(params, first, last); });
    return out;
}

tensor backend::gated_activation(const tensor& gate_up, activation kind) {
    shape_check check("gated_activation");
    check.check(gate_up, "gate_up", dtype::float32, {"T", "2F"});
    check.require(gate_up.size(1) % 2 == 0, "2F is " + std::to_string(gate_up.size(1)) + ", an odd number");
    const int64_t t = gate_up.size(0), f = gate_up.size(1) / 2;
    tensor out(*arena_, type_, {t, f});
    const gated_params params{gate_up.floats(), out.data(), f, kind};
    const auto gated = kernels_.gated[index()];
    run_rows(t, f * 4, [&](int64_t first, int64_t last) { gated(params, first, last); });
    return out;
}

}  // namespace octavo
