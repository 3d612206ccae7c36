// rotary with its writes of K and V, and pages as they are read back.
#include <cmath>

#include "pages.h"

namespace octavo::checks {

namespace {

constexpr int64_t kTokens = 7, kHeads = 3, kKvHeads = 2, kLayer = 1, kMaxPosition = 64;
constexpr float kEps = 1e-6f;

struct rotary_case {
    int64_t block_size, head_dim;
    bool has_norms;
};

// Inputs of one call; tokens lie in places that are not in order.
struct rotary_inputs {
    std::vector<float> qkv, cos, sin, q_norm, k_norm;
    std::vector<int32_t> positions{0, 5, 6, 7, 40, 63, 1}, slots;

    explicit rotary_inputs(const rotary_case& c)
        : qkv(draw(kTokens * (kHeads + 2 * kKvHeads) * c.head_dim, 1)),
          q_norm(draw(c.head_dim, 2)),
          k_norm(draw(c.head_dim, 3)) {
        for (int64_t position = 0; position < kMaxPosition; ++position) {
            for (int64_t i = 0; i < c.head_dim / 2; ++i) {
                const double angle = static_cast<double>(position) *
                                     std::pow(100.0, -2.0 * static_cast<double>(i) / static_cast<double>(c.head_dim));
                cos.push_back(static_cast<float>(std::cos(angle)));
                sin.push_back(static_cast<float>(std::sin(angle)));
            }
        }
        const auto size = static_cast<int32_t>(c.block_size);
        slots = {0, 2 * size - 1, size, 3, 2, size + 1, size - 1};
    }
};

// One head of row t, normed if asked and rotated.
std::vector<double> expect_head(const rotary_inputs& in, const rotary_case& c, int64_t t, int64_t head,
                                const std::vector<float>& weight) {
    const int64_t d = c.head_dim, half = d / 2;
    const float* const x = in.qkv.data() + (t * (kHeads + 2 * kKvHeads) + head) * d;
    double squares = 0;
    for (int64_t i = 0; i < d; ++i) squares += static_cast<double>(x[i]) * static_cast<double>(x[i]);
    const double factor = 1 / std::sqrt(squares / static_cast<double>(d) + static_cast<double>(kEps));
    const auto value = [&](int64_t i) {
        return c.has_norms ? x[i] * factor * static_cast<double>(weight[static_cast<size_t>(i)]) : x[i];
    };
    std::vector<double> out(static_cast<size_t>(d));
    for (int64_t i = 0; i < half; ++i) {
        const auto at = static_cast<size_t>(in.positions[static_cast<size_t>(t)] * half + i);
        const double cosine = in.cos[at], sine = in.sin[at];
        out[static_cast<size_t>(i)] = value(i) * cosine - value(i + half) * sine;
        out[static_cast<size_t>(i + half)] = value(i + half) * cosine + value(i) * sine;
    }
    return out;
}

// q, and the pages of both blocks.
std::vector<float> rotate(const kernel_table& kernels, dtype type, const rotary_case& c, const rotary_inputs& in,
                          int64_t step) {
    pages cache(kernels, type, {c.block_size, kKvHeads, c.head_dim, 2}, 2);
    numbers q(type, kTokens * kHeads * c.head_dim);
    const rotary_params p{in.qkv.data(),
                          in.positions.data(),
                          in.slots.data(),
                          in.cos.data(),
                          in.sin.data(),
                          c.has_norms ? in.q_norm.data() : nullptr,
                          c.has_norms ? in.k_norm.data() : nullptr,
                          q.data(),
                          cache.layer(kLayer),
                          cache.layout(),
                          kHeads,
                          kEps};
    for (int64_t row = 0; row < kTokens; row += step) kernels.rotary[static_cast<int>(type)](p, row, row + step);
    std::vector<float> out = q.values();
    for (const int64_t block : {0, 1}) {
        const std::vector<float> page = cache.read(block);
        out.insert(out.end(), page.begin(), page.end());
    }
    return out;
}

std::vector<double> expect(const rotary_case& c, const rotary_inputs& in) {
    std::vector<double> out;
    for (int64_t t = 0; t < kTokens; ++t) {
        for (int64_t head = 0; head < kHeads; ++head) {
            const std::vector<double> q = expect_head(in, c, t, head, in.q_norm);
            out.insert(out.end(), q.begin(), q.end());
        }
    }
    const page_shape shape{c.block_size, kKvHeads, c.head_dim, 2};
    const auto start = static_cast<int64_t>(out.size());
    out.resize(static_cast<size_t>(start + 2 * shape.page_floats()));
    for (int64_t t = 0; t < kTokens; ++t) {
        const int64_t slot = in.slots[static_cast<size_t>(t)];
        const int64_t page = start + slot / c.block_size * shape.page_floats();
        for (int64_t head = 0; head < kKvHeads; ++head) {
            const std::vector<double> k = expect_head(in, c, t, kHeads + head, in.k_norm);
            const float* const v =
                in.qkv.data() + (t * (kHeads + 2 * kKvHeads) + kHeads + kKvHeads + head) * c.head_dim;
            for (int64_t i = 0; i < c.head_dim; ++i) {
                out[static_cast<size_t>(page + shape.place_of(kLayer, 0, slot % c.block_size, head) + i)] =
                    k[static_cast<size_t>(i)];
                out[static_cast<size_t>(page + shape.place_of(kLayer, 1, slot % c.block_size, head) + i)] = v[i];
            }
        }
    }
    return out;
}

void check_pages(report& out, const kernel_table& kernels, dtype type, const rotary_case& c) {
    const page_shape shape{c.block_size, kKvHeads, c.head_dim, 2};
    pages cache(kernels, type, shape, 3);
    const std::vector<float> page = rounded(type, draw(shape.page_floats(), 4));
    cache.write(1, page);
    out.same("a page that was written", cache.read(1), page);
    const std::vector<float> nothing(page.size());
    out.same("the page before it", cache.read(0), nothing);
    out.same("the page behind it", cache.read(2), nothing);
}

}  // namespace

void check_rotary(report& out, const kernel_table& kernels) {
    for (const dtype type : kTypes) {
        for (const rotary_case& c : {rotary_case{16, 2, false}, rotary_case{16, 6, true}, rotary_case{32, 16, true},
                                     rotary_case{64, 80, false}, rotary_case{32, 128, true}}) {
            const rotary_inputs in(c);
            const std::string what = std::string("rotary ") + name_of(type) + ", D " + std::to_string(c.head_dim);
            const std::vector<float> found = rotate(kernels, type, c, in, kTokens);
            out.near(what, found, expect(c, in), type == dtype::bfloat16 ? kRounded : kSums);
            out.same(what + " one by one", rotate(kernels, type, c, in, 1), found);
            check_pages(out, kernels, type, c);
        }
    }
}

}  // namespace octavo::checks
