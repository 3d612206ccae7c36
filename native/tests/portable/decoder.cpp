// All layers of a decoder in one call: the bits of its single ops, by rows and by columns, and of any other company.
#include <algorithm>
#include <deque>

#include "checks.h"
#include "steps.h"

namespace octavo::checks {

namespace {

constexpr int64_t kInner = 40, kHeads = 4, kKvHeads = 2, kHeadDim = 16,
                  kNumLayers = 3;  // 40: the last turn is not full
constexpr float kEps = 1e-5f;

class small_decoder {
  public:
    small_decoder(dtype type, const char* isa, int num_threads)
        : ops_(type, isa, num_threads),
          rope_(make_rope(kHeadDim)),
          cache_(type, kNumSequences * kMaxBlocks, kBlockSize, kKvHeads, kHeadDim, {{0, 1, 2}}) {
        for (int64_t i = 0; i < kNumLayers; ++i) add_layer(i);
    }

    // Behind all layers, of every token of the chunks, [T, kWidth].
    std::vector<float> decode(const std::vector<chunk>& chunks) {
        return run(chunks, [&](const tensor& x, const step_batch& batch) {
            const decoder_layers decoder(layers_);
            return ops_.decode(x, batch, cache_, decoder, nullptr, 0).first;
        });
    }

    std::vector<float> run_single_ops(const std::vector<chunk>& chunks) {
        return run(chunks, [&](const tensor& x, const step_batch& batch) {
            tensor residual = ops_.rms_norm(x, nullptr, norm_, kEps).second, added;
            for (int64_t i = 0; i < kNumLayers; ++i) {
                const attention_block& block = layers_[static_cast<size_t>(i)].attention;
                const feed_forward_block& behind = layers_[static_cast<size_t>(i)].feed_forward;
                auto [normed, own] = ops_.rms_norm(residual, i > 0 ? &added : nullptr, norm_, kEps);
                const tensor q = ops_.rotary_write(ops_.linear(normed, *block.qkv), batch, cache_, i, rope_,
                                                   block.options, nullptr, nullptr, kEps);
                added = ops_.linear(ops_.paged_attention(q, batch, cache_, i, block.options), *behind.out);
                auto [inner, sum] = ops_.rms_norm(own, &added, norm_, kEps);
                const tensor gate_up = ops_.linear(inner, gates_and_ups_[static_cast<size_t>(i)]);
                added = ops_.linear(ops_.gated_activation(gate_up, behind.kind), *behind.down);
                residual = std::move(sum);
            }
            return ops_.rms_norm(residual, &added, norm_, kEps).second;
        });
    }

  private:
    template <class Layers>
    std::vector<float> run(const std::vector<chunk>& chunks, const Layers& layers) {
        const step s(chunks);
        step_batch batch = s.batch();
        batch.check(cache_);
        tensor x(ops_.memory(), dtype::float32, {batch.num_tokens, kWidth});
        std::copy(s.x.begin(), s.x.end(), x.floats());
        const tensor out = layers(x, batch);
        return {out.floats(), out.floats() + out.num_elements()};
    }

    packed_matrix& pack(int64_t n, int64_t k, unsigned seed) {
        packed_matrix& out = matrices_.emplace_back(ops_.weight_memory(), ops_.type(), n, k);
        ops_.pack_columns(out, 0, draw(n * k, seed, 0.3f).data(), n, k);
        return out;
    }

    // Columns of gate and up in turns, and one behind the other.
    packed_matrix& pack_gated(unsigned seed) {
        const std::vector<float> gate = draw(kInner * kWidth, seed, 0.3f), up = draw(kInner * kWidth, seed + 1, 0.3f);
        packed_matrix& plain = gates_and_ups_.emplace_back(ops_.weight_memory(), ops_.type(), 2 * kInner, kWidth);
        ops_.pack_columns(plain, 0, gate.data(), kInner, kWidth);
        ops_.pack_columns(plain, kInner, up.data(), kInner, kWidth);
        const int64_t padded = ceil_div(kInner, kGateColumns) * kGateColumns;
        packed_matrix& out = matrices_.emplace_back(ops_.weight_memory(), ops_.type(), 2 * padded, kWidth, kInner);
        for (int64_t first = 0; first < kInner; first += kGateColumns) {
            const int64_t count = std::min(kGateColumns, kInner - first);
            ops_.pack_columns(out, 2 * first, gate.data() + first * kWidth, count, kWidth);
            ops_.pack_columns(out, 2 * first + kGateColumns, up.data() + first * kWidth, count, kWidth);
        }
        return out;
    }

    void add_layer(int64_t layer) {
        const auto seed = static_cast<unsigned>(100 + 10 * layer);
        const attention_options options{kHeads, kKvHeads, kHeadDim, 0.25f, layer == 1 ? 50 : 0, 0};
        const packed_matrix& qkv = pack((kHeads + 2 * kKvHeads) * kHeadDim, kWidth, seed);
        const packed_matrix& out = pack(kWidth, kHeads * kHeadDim, seed + 1);
        const packed_matrix& down = pack(kWidth, kInner, seed + 2);
        layers_.push_back({{layer, &norm_, &qkv, &rope_, options, nullptr, nullptr, kEps},
                           {&out, nullptr, &norm_, &pack_gated(seed + 3), activation::silu, &down, nullptr, kEps}});
    }

    backend ops_;
    const packed_vector norm_{draw(kWidth, 4)};
    const rope_table rope_;
    kv_cache cache_;
    std::deque<packed_matrix> matrices_, gates_and_ups_;
    std::vector<decoder_layer> layers_;
};

void compare_with_single_ops(report& out, dtype type, const char* isa, int num_threads) {
    small_decoder whole(type, isa, num_threads), single(type, isa, 1);
    const std::vector<chunk> steps[] = {
        {{0, 0, 20}},                                // by columns, but with one thread
        {{1, 0, 300}, {2, 0, 130}},                  // chunks of equal size
        {{0, 20, 21}, {1, 300, 360}, {2, 130, 170}}  // one chunk a thread
    };
    for (const std::vector<chunk>& chunks : steps) {
        const std::vector<float> found = whole.decode(chunks);
        out.same(std::string("all layers and their single ops, ") + name_of(type), found,
                 single.run_single_ops(chunks));
        if (num_threads == 1) out.mark(found);
    }
}

}  // namespace

void check_decoder(report& out, const char* isa) {
    for (const dtype type : kTypes) {
        for (const int num_threads : {1, 2, 3}) compare_with_single_ops(out, type, isa, num_threads);
    }
}

}  // namespace octavo::checks
