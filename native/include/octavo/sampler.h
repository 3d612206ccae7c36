// Choice of the next token, and logprobs, row by row over the vocabulary. Semantics: SampleBatch in kernels/ops.py.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "octavo/backend.h"

namespace octavo {

// What one row asks for. Absent lists are empty with has_* false.
struct sample_row {
    float temperature = 0, top_p = 1, min_p = 0;
    float repetition_penalty = 1, frequency_penalty = 0, presence_penalty = 0;
    int64_t top_k = 0;
    uint64_t seed = 0;
    int64_t position = 0;
    bool has_history = false, has_allowed = false, has_logprob_ids = false;
    const int32_t* allowed_bits = nullptr;  // words [ceil(V / 32)], the lowest bit first; null: all tokens
    std::span<const int32_t> prompt_ids, output_ids;
    std::span<const int32_t> bias_ids;
    std::span<const float> bias_values;
    std::span<const int32_t> allowed_ids;
    std::span<const int32_t> logprob_ids;
    int64_t num_logprobs = -1;
};

struct described_token {
    int32_t id;
    float logprob;
    int32_t rank;  // 1 + number of tokens strictly more likely
};

enum class sample_outcome : uint8_t {
    sampled,
    not_finite,  // a NaN or +inf among the logits
    exhausted,   // nothing left to choose
};

struct sampled_row {
    int32_t token_id = 0;
    sample_outcome outcome = sample_outcome::not_finite;
    std::vector<described_token> described;  // the sampled token first
};

// logits [rows.size(), v] are not changed. Rows are shared out among the pool's threads.
std::vector<sampled_row> sample_rows(backend& ops, const float* logits, int64_t v, const std::vector<sample_row>& rows);

// Per row r: token_ids[r] first, then the num_top best.
std::vector<std::vector<described_token>> describe_rows(backend& ops, const float* logits, int64_t v,
                                                        std::span<const int32_t> token_ids, int64_t num_top);

}  // namespace octavo
