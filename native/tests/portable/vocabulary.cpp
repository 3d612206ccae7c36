// Passes over rows of logits.
#include <algorithm>
#include <cmath>
#include <limits>

#include "checks.h"

namespace octavo::checks {

namespace {

constexpr float kNothing = -std::numeric_limits<float>::infinity();

void check_scan(report& out, const kernel_table& kernels, std::vector<float> logits) {
    const auto v = static_cast<int64_t>(logits.size());
    const auto best = std::max_element(logits.begin(), logits.end());
    const row_scan scan = kernels.scan_row(logits.data(), v);
    out.holds("scan_row: maximum", scan.maximum == *best);
    out.holds("scan_row: the lowest id", scan.argmax == best - logits.begin());
    out.holds("scan_row: numbers", scan.is_finite);
    logits[static_cast<size_t>(v - 1)] = std::numeric_limits<float>::quiet_NaN();
    out.holds("scan_row: NaN", !kernels.scan_row(logits.data(), v).is_finite);
    logits[static_cast<size_t>(v - 1)] = std::numeric_limits<float>::infinity();
    out.holds("scan_row: infinity", !kernels.scan_row(logits.data(), v).is_finite);
    const std::vector<float> nothing(logits.size(), kNothing);
    out.holds("scan_row: nothing to choose", kernels.scan_row(nothing.data(), v).argmax == -1);
}

void check_sums(report& out, const kernel_table& kernels, const std::vector<float>& logits, float maximum) {
    const auto v = static_cast<int64_t>(logits.size());
    std::vector<float> weights(logits.size()), tempered = logits;
    std::vector<double> expected, divided;
    double sum = 0;
    for (const float logit : logits) {
        expected.push_back(std::exp(static_cast<double>(logit - maximum)));  // a difference in float32
        divided.push_back(static_cast<double>(logit) / static_cast<double>(0.7f));
        sum += expected.back();
    }
    kernels.weigh_row(logits.data(), v, maximum, weights.data());
    out.near("weigh_row", weights, expected, {1e-6, 1e-37});
    out.near("sum_exp", {kernels.sum_exp(logits.data(), v, maximum)}, {sum}, {1e-5, 0});
    out.near("log_sum_exp", {kernels.log_sum_exp(logits.data(), v, maximum)},
             {static_cast<double>(maximum) + std::log(sum)}, {1e-6, 1e-6});
    kernels.divide_row(tempered.data(), v, 0.7f);
    out.near("divide_row", tempered, divided, {1e-7, 0});
}

void check_ranks(report& out, const kernel_table& kernels, const std::vector<float>& logits) {
    const auto v = static_cast<int64_t>(logits.size());
    std::vector<float> maxima(static_cast<size_t>(ceil_div(v, kVocabGroup))), expected;
    kernels.group_maxima(logits.data(), v, maxima.data());
    for (int64_t start = 0; start < v; start += kVocabGroup) {
        const auto first = logits.begin() + start;
        expected.push_back(*std::max_element(first, first + std::min(kVocabGroup, v - start)));
    }
    out.same("group_maxima", maxima, expected);
    for (const float value : {logits.front(), logits.back(), 0.0f}) {
        const auto above = std::count_if(logits.begin(), logits.end(), [&](float logit) { return logit > value; });
        out.holds("count_above", kernels.count_above(logits.data(), v, value) == above);
    }
}

void check_mask(report& out, const kernel_table& kernels, const std::vector<float>& logits) {
    const auto v = static_cast<int64_t>(logits.size());
    std::vector<int32_t> bits;
    for (int64_t word = 0; word < ceil_div(v, 32); ++word) {
        const uint32_t pattern = word % 3 == 0 ? 0x80000001u : word % 3 == 1 ? 0xffffffffu : 0x5a5a5a5au;
        bits.push_back(static_cast<int32_t>(pattern));
    }
    std::vector<float> masked = logits, expected = logits;
    for (int64_t i = 0; i < v; ++i) {
        const auto word = static_cast<uint32_t>(bits[static_cast<size_t>(i / 32)]);
        if (!(word >> (i % 32) & 1)) expected[static_cast<size_t>(i)] = kNothing;
    }
    kernels.mask_row(bits.data(), v, masked.data());
    out.same("mask_row", masked, expected);
}

}  // namespace

void check_vocabulary(report& out, const kernel_table& kernels) {
    for (const int64_t v : {1, 3, 31, 64, 1000, 1025, 5003}) {
        std::vector<float> logits = draw(v, static_cast<unsigned>(v), 20.0f);
        // A tie of the best, and one that has no weight.
        const auto best = *std::max_element(logits.begin(), logits.end());
        logits[static_cast<size_t>(v / 2)] = logits[static_cast<size_t>(v - 1)] = best;
        if (v > 3) logits[2] = kNothing;
        check_scan(out, kernels, logits);
        check_sums(out, kernels, logits, best);
        check_ranks(out, kernels, logits);
        check_mask(out, kernels, logits);
    }
}

}  // namespace octavo::checks
