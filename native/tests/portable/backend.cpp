// The host: a small model of one layer, whose sequences must find the same bits together as alone, and its sampler.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "checks.h"
#include "octavo/sampler.h"
#include "steps.h"

namespace octavo::checks {

namespace {

constexpr int64_t kHeads = 4, kKvHeads = 2, kHeadDim = 16, kVocab = 1090, kLayer = 1;
constexpr float kEps = 1e-5f;

class small_model {
  public:
    small_model(dtype type, const char* isa, int num_threads)
        : ops_(type, isa, num_threads),
          qkv_(pack((kHeads + 2 * kKvHeads) * kHeadDim, kWidth, 1)),
          out_(pack(kWidth, kHeads * kHeadDim, 2)),
          head_(pack(kVocab, kWidth, 3)),
          norm_{draw(kWidth, 4)},
          rope_(make_rope(kHeadDim)),
          cache_(type, kNumSequences * kMaxBlocks, kBlockSize, kKvHeads, kHeadDim, {{0, kLayer}}) {
        qkv_.bias = draw(qkv_.n, 5);
    }

    backend& ops() { return ops_; }

    // Logits of every token of the chunks, which are one step.
    std::vector<float> run(const std::vector<chunk>& chunks) {
        const step s(chunks);
        step_batch batch = s.batch();
        batch.check(cache_);
        tensor x(ops_.memory(), dtype::float32, {batch.num_tokens, kWidth});
        std::copy(s.x.begin(), s.x.end(), x.floats());
        const attention_options options{kHeads, kKvHeads, kHeadDim, 0.25f, 200, 0};
        auto [normed, residual] = ops_.rms_norm(x, nullptr, norm_, kEps);
        const tensor q =
            ops_.rotary_write(ops_.linear(normed, qkv_), batch, cache_, kLayer, rope_, options, nullptr, nullptr, kEps);
        const tensor sums = ops_.linear(ops_.paged_attention(q, batch, cache_, kLayer, options), out_);
        const tensor hidden = ops_.rms_norm(residual, &sums, norm_, kEps).first;
        const tensor logits = ops_.logits(hidden, s.rows.data(), batch.num_tokens, head_, 30.0f);
        return {logits.floats(), logits.floats() + logits.num_elements()};
    }

  private:
    packed_matrix pack(int64_t n, int64_t k, unsigned seed) {
        packed_matrix out(ops_.weight_memory(), ops_.type(), n, k);
        ops_.pack_columns(out, 0, draw(n * k, seed, 0.3f).data(), n, k);
        return out;
    }

    backend ops_;
    packed_matrix qkv_, out_, head_;
    const packed_vector norm_;
    const rope_table rope_;
    kv_cache cache_;
};

void check_company(report& out, dtype type, const char* isa) {
    small_model together(type, isa, 3), alone(type, isa, 1);
    together.run({{1, 0, 300}, {2, 0, 130}});
    const std::vector<float> found = together.run({{0, 0, 20}, {1, 300, 301}, {2, 130, 150}});
    for (int64_t at = 0; at < 300; at += 50) alone.run({{1, at, at + 50}});
    for (int64_t at = 0; at < 130; at += 13) alone.run({{2, at, at + 13}});
    std::vector<float> expected;
    for (const auto& [sequence, first, last] : {chunk{0, 0, 20}, chunk{1, 300, 301}, chunk{2, 130, 150}}) {
        for (int64_t at = first; at < last; ++at) {
            const std::vector<float> row = alone.run({{sequence, at, at + 1}});
            expected.insert(expected.end(), row.begin(), row.end());
        }
    }
    out.same(std::string("sequences together and alone, ") + name_of(type), found, expected);
    out.holds("logits are numbers", std::all_of(found.begin(), found.end(), [](float x) { return std::isfinite(x); }));
    out.mark(found);
}

void check_sampler(report& out, const char* isa) {
    small_model model(dtype::float32, isa, 2);
    const std::vector<float> logits = model.run({{0, 0, 4}});
    const auto best = std::max_element(logits.begin(), logits.begin() + kVocab) - logits.begin();
    const std::vector<int32_t> allowed{7, 1000};
    std::vector<sample_row> rows(4);
    rows[0].num_logprobs = 3;
    rows[1].temperature = 0.7f;
    rows[1].top_p = 0.8f;
    rows[1].seed = 42;
    rows[2].temperature = 1.3f;
    rows[2].top_k = 5;
    rows[2].seed = 43;
    rows[3].has_allowed = true;
    rows[3].allowed_ids = allowed;
    const std::vector<sampled_row> found = sample_rows(model.ops(), logits.data(), kVocab, rows);
    for (const sampled_row& row : found) {
        out.holds("a row is sampled", row.outcome == sample_outcome::sampled);
        out.mark({static_cast<float>(row.token_id)});
    }
    out.holds("a greedy row takes the best", found[0].token_id == best);
    out.holds("as many are described as asked for", found[0].described.size() == 4);
    const float* const last = logits.data() + 3 * kVocab;
    out.holds("only what is allowed", found[3].token_id == (last[7] >= last[1000] ? 7 : 1000));
    double sum = 0;
    for (int64_t i = 0; i < kVocab; ++i) sum += std::exp(static_cast<double>(logits[static_cast<size_t>(i)]));
    int32_t rank = 1;
    for (size_t i = 1; i < found[0].described.size(); ++i) {
        const described_token& token = found[0].described[i];
        const double logit = logits[static_cast<size_t>(token.id)];
        out.holds("ranks ascend", token.rank == rank++);
        out.near("logprob", {token.logprob}, {logit - std::log(sum)}, kSums);
    }
}

}  // namespace

void check_backend(report& out, const char* isa) {
    for (const dtype type : kTypes) check_company(out, type, isa);
    check_sampler(out, isa);
}

}  // namespace octavo::checks
