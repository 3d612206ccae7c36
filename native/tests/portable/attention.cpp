// attention over pages: windows, soft caps, grouped heads, and every way to cut queries and keys.
#include <algorithm>
#include <cmath>
#include <limits>

#include "pages.h"

namespace octavo::checks {

namespace {

constexpr int64_t kLayer = 1;
constexpr float kScale = 0.3f;
// Weights are rounded to bfloat16 before they meet the values.
constexpr tolerance kRoundedWeights{1.0 / 64, 1.0 / 64};

struct attention_case {
    int64_t num_tokens, first_position, num_heads, num_kv_heads, head_dim, block_size, window;
    float softcap;

    int64_t num_keys() const { return first_position + num_tokens; }
    int64_t heads_per_kv() const { return num_heads / num_kv_heads; }
    page_shape shape() const { return {block_size, num_kv_heads, head_dim, 2}; }
};

// One sequence: its queries, and its keys and values in blocks that are not in order.
class sequence {
  public:
    sequence(const kernel_table& kernels, dtype type, const attention_case& c)
        : kernels_(kernels),
          type_(static_cast<int>(type)),
          c_(c),
          element_(type),
          q_(rounded(type, draw(c.num_tokens * c.num_heads * c.head_dim, 1))),
          states_(rounded(type, draw(c.num_keys() * 2 * c.num_kv_heads * c.head_dim, 2))),
          given_(type, q_),
          cache_(kernels, type, c.shape(), ceil_div(c.num_keys(), c.block_size)) {
        const int64_t num_blocks = ceil_div(c.num_keys(), c.block_size);
        for (int64_t i = 0; i < num_blocks; ++i) table_.push_back(static_cast<int32_t>(num_blocks - 1 - i));
        for (int64_t i = 0; i < num_blocks; ++i) cache_.write(num_blocks - 1 - i, page_of(i));
    }

    // Queries in tiles of `tokens_per_tile`; is_split: partitions by themselves, then their combination.
    std::vector<float> attend(int64_t tokens_per_tile, bool is_split) {
        numbers out(element_, c_.num_tokens * c_.num_heads * c_.head_dim);
        const attention_params p{given_.data(), out.data(), cache_.layer(kLayer), cache_.layout(),
                                 c_.num_heads,  kScale,     c_.softcap,           c_.window};
        std::vector<char> memory(kernels_.attention_scratch_bytes[type_](p, tokens_per_tile) + 64);
        char* const scratch = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) % 64;
        for (int64_t first = 0; first < c_.num_tokens; first += tokens_per_tile) {
            const int64_t count = std::min(tokens_per_tile, c_.num_tokens - first);
            const int64_t position = c_.first_position + first;
            const int64_t first_partition = first_key(position) / kPartition;
            const int64_t num_partitions = ceil_div(position + count, kPartition) - first_partition;
            std::vector<float> partials(static_cast<size_t>(num_partitions * count * c_.heads_per_kv() *
                                                            (cache_.layout().head_dim_padded + 2)));
            for (int64_t head = 0; head < c_.num_kv_heads; ++head) {
                attention_tile tile{};
                tile.block_table = table_.data();
                tile.first_token = first;
                tile.first_position = position;
                tile.num_tokens = count;
                tile.kv_head = head;
                tile.first_partition = first_partition;
                tile.num_partitions = num_partitions;
                tile.partials = partials.data();
                if (!is_split) {
                    kernels_.attend[type_](p, tile, scratch);
                    continue;
                }
                for (int64_t i = num_partitions - 1; i >= 0; --i) kernels_.attend_partition[type_](p, tile, i, scratch);
                kernels_.combine_partitions[type_](p, tile, scratch);
            }
        }
        return out.values();
    }

    std::vector<double> expect() const {
        std::vector<double> out;
        for (int64_t t = 0; t < c_.num_tokens; ++t) {
            for (int64_t head = 0; head < c_.num_heads; ++head) {
                const std::vector<double> row = expect_row(t, head);
                out.insert(out.end(), row.begin(), row.end());
            }
        }
        return out;
    }

  private:
    int64_t first_key(int64_t position) const {
        return c_.window > 0 ? std::max<int64_t>(0, position - c_.window + 1) : 0;
    }
    const float* state(int64_t kind, int64_t token, int64_t head) const {
        return states_.data() + ((token * 2 + kind) * c_.num_kv_heads + head) * c_.head_dim;
    }

    // What is not this sequence's, or not this layer's, is no number.
    std::vector<float> page_of(int64_t block) const {
        const page_shape shape = c_.shape();
        std::vector<float> page(static_cast<size_t>(shape.page_floats()), std::numeric_limits<float>::quiet_NaN());
        for (int64_t slot = 0; slot < c_.block_size && block * c_.block_size + slot < c_.num_keys(); ++slot) {
            for (int64_t kind = 0; kind < 2; ++kind) {
                for (int64_t head = 0; head < c_.num_kv_heads; ++head) {
                    const float* const from = state(kind, block * c_.block_size + slot, head);
                    std::copy(from, from + c_.head_dim, page.begin() + shape.place_of(kLayer, kind, slot, head));
                }
            }
        }
        return page;
    }

    std::vector<double> expect_row(int64_t t, int64_t head) const {
        const int64_t position = c_.first_position + t, kv_head = head / c_.heads_per_kv();
        const float* const q = q_.data() + (t * c_.num_heads + head) * c_.head_dim;
        std::vector<double> scores, out(static_cast<size_t>(c_.head_dim));
        double highest = -1e300, total = 0;
        for (int64_t key = first_key(position); key <= position; ++key) {
            const float* const k = state(0, key, kv_head);
            double score = 0;
            for (int64_t i = 0; i < c_.head_dim; ++i) score += static_cast<double>(q[i]) * static_cast<double>(k[i]);
            score *= kScale;
            if (c_.softcap > 0) score = c_.softcap * std::tanh(score / c_.softcap);
            scores.push_back(score);
            highest = std::max(highest, score);
        }
        for (size_t i = 0; i < scores.size(); ++i) {
            const double weight = std::exp(scores[i] - highest);
            const float* const v = state(1, first_key(position) + static_cast<int64_t>(i), kv_head);
            total += weight;
            for (size_t j = 0; j < out.size(); ++j) out[j] += weight * static_cast<double>(v[j]);
        }
        for (double& value : out) value /= total;
        return out;
    }

    const kernel_table& kernels_;
    const int type_;
    const attention_case c_;
    const dtype element_;
    const std::vector<float> q_, states_;
    const numbers given_;
    pages cache_;
    std::vector<int32_t> table_;
};

}  // namespace

void check_attention(report& out, const kernel_table& kernels) {
    const attention_case cases[] = {
        {1, 0, 1, 1, 2, 16, 0, 0},       {1, 300, 6, 2, 16, 32, 0, 0},  {30, 101, 6, 2, 16, 32, 40, 0},
        {11, 130, 8, 2, 6, 16, 33, 5},   {21, 0, 4, 4, 80, 96, 0, 0},   {3, 255, 3, 1, 128, 16, 0, 8},
        {5, 126, 10, 2, 64, 64, 129, 0}, {40, 250, 2, 2, 34, 32, 1, 0},
    };
    for (const dtype type : kTypes) {
        for (const attention_case& c : cases) {
            const std::string what = std::string("attention ") + name_of(type) + ", D " + std::to_string(c.head_dim) +
                                     ", " + std::to_string(c.num_tokens) + " behind " +
                                     std::to_string(c.first_position);
            sequence one(kernels, type, c);
            const std::vector<float> found = one.attend(c.num_tokens, false);
            out.near(what, found, one.expect(), type == dtype::bfloat16 ? kRoundedWeights : kSums);
            out.same(what + ", by partitions", one.attend(c.num_tokens, true), found);
            for (const int64_t tokens_per_tile : {1, 7}) {
                const std::string cut = what + ", in tiles of " + std::to_string(tokens_per_tile);
                out.same(cut, one.attend(tokens_per_tile, false), found);
                out.same(cut + ", by partitions", one.attend(tokens_per_tile, true), found);
            }
        }
    }
}

}  // namespace octavo::checks
