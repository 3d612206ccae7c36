// Sampling and logprobs of rows. Order of processing: masks and biases, penalties, temperature, top-k, top-p, min-p,
// noise.
//
// A row is processed by itself, by one thread, so its token depends on nothing else in the batch. Greedy rows without
// masks or penalties cost one pass over the logits.
#include "octavo/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "ranking.h"

namespace octavo {

namespace {

constexpr float kNothing = -std::numeric_limits<float>::infinity();

void mask(const kernel_table& kernels, const sample_row& row, const float* logits, int64_t v, float* out) {
    if (row.has_allowed) {
        std::fill(out, out + v, kNothing);
        for (const int32_t id : row.allowed_ids) out[id] = logits[id];
    } else {
        std::copy(logits, logits + v, out);
    }
    if (row.allowed_bits) kernels.mask_row(row.allowed_bits, v, out);
    for (size_t i = 0; i < row.bias_ids.size(); ++i) out[row.bias_ids[i]] += row.bias_values[i];
}

void penalize(const sample_row& row, float* logits) {
    std::unordered_map<int32_t, int32_t> output_counts;  // 0: in the prompt only
    for (const int32_t id : row.output_ids) ++output_counts[id];
    if (row.repetition_penalty != 1) {
        for (const int32_t id : row.prompt_ids) output_counts.try_emplace(id, 0);
    }
    for (const auto& [id, count] : output_counts) {
        float& logit = logits[id];
        if (row.repetition_penalty != 1) {
            logit = logit > 0 ? logit / row.repetition_penalty : logit * row.repetition_penalty;
        }
        if (count > 0) logit -= row.frequency_penalty * static_cast<float>(count) + row.presence_penalty;
    }
}

double weight_of(const candidate& token, float maximum) {
    return std::exp(static_cast<double>(token.value - maximum));
}

// Cuts tokens, best first, to the smallest prefix whose weight reaches `wanted`. False: all of them do not.
bool try_keep_mass(std::vector<candidate>& tokens, float maximum, double wanted) {
    double reached = 0;
    size_t kept = 0;
    while (kept < tokens.size() && (kept == 0 || reached < wanted)) reached += weight_of(tokens[kept++], maximum);
    tokens.resize(kept);
    return reached >= wanted;
}

std::vector<candidate> keep_share_of_few(std::vector<candidate> tokens, float maximum, double share) {
    double total = 0;
    for (const candidate& token : tokens) total += weight_of(token, maximum);
    try_keep_mass(tokens, maximum, share * total);
    return tokens;
}

// The smallest set of best tokens of all V that holds `share` of the mass: among the few best if they hold it.
std::vector<candidate> keep_share_of_all(const kernel_table& kernels, const float* tempered, int64_t v, float maximum,
                                         double share) {
    const double wanted = share * static_cast<double>(kernels.sum_exp(tempered, v, maximum));
    for (const int64_t few : {64, 1024}) {
        if (few * 8 > v) break;
        std::vector<candidate> kept = find_best(kernels, tempered, v, few);
        if (try_keep_mass(kept, maximum, wanted)) return kept;
    }
    std::vector<float> weights(static_cast<size_t>(v));
    kernels.weigh_row(tempered, v, maximum, weights.data());
    return find_mass(tempered, weights.data(), v, share);
}

// The tokens that may be drawn under top-k, top-p and min-p, by ascending id. At least one of the three is on.
std::vector<candidate> filter(const kernel_table& kernels, const sample_row& row, const float* tempered, int64_t v,
                              float maximum) {
    std::vector<candidate> kept;
    if (row.top_k > 0 && row.top_k < v) {
        kept = find_best(kernels, tempered, v, row.top_k);
        if (row.top_p < 1) kept = keep_share_of_few(std::move(kept), maximum, row.top_p);
    } else if (row.top_p < 1) {
        kept = keep_share_of_all(kernels, tempered, v, maximum, row.top_p);
    } else {
        for (int64_t i = 0; i < v; ++i) {
            if (tempered[i] > kNothing) kept.push_back({tempered[i], static_cast<int32_t>(i)});
        }
    }
    const double least = std::max<double>(row.min_p, std::numeric_limits<double>::min());
    std::erase_if(kept, [&](const candidate& token) { return weight_of(token, maximum) < least; });
    std::sort(kept.begin(), kept.end(), [](const candidate& a, const candidate& b) { return a.id < b.id; });
    return kept;
}

// -1: nothing left to choose.
int64_t choose(const kernel_table& kernels, const sample_row& row, const float* logits, int64_t v, row_scan scan,
               std::vector<float>& scratch) {
    const bool is_edited = row.has_allowed || row.allowed_bits || !row.bias_ids.empty() || row.has_history;
    if (row.temperature == 0 && !is_edited) return scan.argmax;
    scratch.resize(static_cast<size_t>(v));
    float* const own = scratch.data();
    mask(kernels, row, logits, v, own);
    if (row.has_history) penalize(row, own);
    scan = kernels.scan_row(own, v);
    if (row.temperature == 0 || scan.argmax < 0) return scan.argmax;
    kernels.divide_row(own, v, row.temperature);
    const bool is_filtered = (row.top_k > 0 && row.top_k < v) || row.top_p < 1 || row.min_p > 0;
    if (!is_filtered) return kernels.draw({own, nullptr, v, row.seed, row.position});
    const std::vector<candidate> kept = filter(kernels, row, own, v, scan.maximum / row.temperature);
    std::vector<int32_t> ids;
    std::vector<float> values;
    for (const candidate& token : kept) {
        ids.push_back(token.id);
        values.push_back(token.value);
    }
    const auto count = static_cast<int64_t>(ids.size());
    const int64_t drawn = kernels.draw({values.data(), ids.data(), count, row.seed, row.position});
    return drawn < 0 ? -1 : ids[static_cast<size_t>(drawn)];
}

std::vector<described_token> describe(const kernel_table& kernels, const float* logits, int64_t v, float maximum,
                                      int32_t chosen, const std::vector<int32_t>& others, bool are_best) {
    const float normalizer = kernels.log_sum_exp(logits, v, maximum);
    std::vector<described_token> out;
    const auto add = [&](int32_t id, int64_t rank) {
        out.push_back({id, logits[id] - normalizer, static_cast<int32_t>(rank)});
    };
    const auto rank_of = [&](int32_t id) { return 1 + kernels.count_above(logits, v, logits[id]); };
    add(chosen, rank_of(chosen));
    int64_t rank = 1;
    for (size_t i = 0; i < others.size(); ++i) {
        // Best first: a token's rank is one more than the number before it, those of equal logit not counted.
        if (are_best && i > 0 && logits[others[i]] < logits[others[i - 1]]) rank = static_cast<int64_t>(i) + 1;
        add(others[i], are_best ? rank : rank_of(others[i]));
    }
    return out;
}

std::vector<int32_t> ids_of_best(const kernel_table& kernels, const float* logits, int64_t v, int64_t count) {
    std::vector<int32_t> ids;
    for (const candidate& token : find_best(kernels, logits, v, count)) ids.push_back(token.id);
    return ids;
}

}  // namespace

std::vector<sampled_row> sample_rows(backend& ops, const float* logits, int64_t v,
                                     const std::vector<sample_row>& rows) {
    const kernel_table& kernels = ops.kernels();
    std::vector<sampled_row> out(rows.size());
    std::vector<std::vector<float>> scratch(static_cast<size_t>(ops.num_threads()));
    ops.pool().run(static_cast<int64_t>(rows.size()), [&](int64_t r, int thread) {
        const sample_row& row = rows[static_cast<size_t>(r)];
        sampled_row& result = out[static_cast<size_t>(r)];
        const float* const own = logits + r * v;
        const row_scan scan = kernels.scan_row(own, v);
        if (!scan.is_finite) return;
        result.outcome = sample_outcome::exhausted;
        if (scan.argmax < 0) return;
        const int64_t token = choose(kernels, row, own, v, scan, scratch[static_cast<size_t>(thread)]);
        if (token < 0) return;
        result.token_id = static_cast<int32_t>(token);
        result.outcome = sample_outcome::sampled;
        if (row.has_logprob_ids) {
            const std::vector<int32_t> ids(row.logprob_ids.begin(), row.logprob_ids.end());
            result.described = describe(kernels, own, v, scan.maximum, result.token_id, ids, false);
        } else if (row.num_logprobs >= 0) {
            result.described = describe(kernels, own, v, scan.maximum, result.token_id,
                                        ids_of_best(kernels, own, v, row.num_logprobs), true);
        }
    });
    return out;
}

std::vector<std::vector<described_token>> describe_rows(backend& ops, const float* logits, int64_t v,
                                                        std::span<const int32_t> token_ids, int64_t num_top) {
    const kernel_table& kernels = ops.kernels();
    std::vector<std::vector<described_token>> out(token_ids.size());
    ops.pool().run(static_cast<int64_t>(token_ids.size()), [&](int64_t r, int) {
        const float* const own = logits + r * v;
        const row_scan scan = kernels.scan_row(own, v);
        out[static_cast<size_t>(r)] = describe(kernels, own, v, scan.maximum, token_ids[static_cast<size_t>(r)],
                                               ids_of_best(kernels, own, v, num_top), true);
    });
    return out;
}

}  // namespace octavo
