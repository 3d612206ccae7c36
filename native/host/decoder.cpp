// All layers of a decoder in one call.
//
// With many rows each thread takes chunks of rows through the layers: what passes from op to op stays in its second
// cache, and it waits for others only where its rows read keys and values that they write. With few rows the matrices
// are what costs, so ops follow each other and each is shared out by columns (layer.cpp). Both ways, and the ops of
// backend.h one by one, give the same bits.
#include <algorithm>

#include "chunk_walk.h"
#include "octavo/backend.h"
#include "row_chunks.h"

namespace octavo {

namespace {

constexpr int64_t kMinChunkRows = 24;  // fewer a thread: reading the matrices costs more than multiplying

// Parts of a thread's scratch for one chunk, each 64-byte aligned.
class cutter {
  public:
    explicit cutter(char* scratch) : next_(scratch) {}
    template <class T = char>
    T* take(int64_t num_bytes) {
        char* const out = next_;
        next_ += ceil_div(num_bytes, 64) * 64;
        return reinterpret_cast<T*>(out);
    }

  private:
    char* next_;
};

}  // namespace

// One call of decode by rows. Stage s of a chunk is the end of layer s - 1, from its attention on, and the beginning of
// layer s, up to its keys and values.
class decoder_pass {
  public:
    decoder_pass(const backend& ops, const tensor& residual, const step_batch& batch, kv_cache& cache,
                 const decoder_layers& decoder, const int32_t* rows, int64_t num_rows, int64_t num_threads)
        : ops_(ops),
          input_(residual),
          batch_(batch),
          cache_(cache),
          decoder_(decoder),
          rows_(rows),
          num_rows_(num_rows) {
        const attention_options& options = decoder.layers.front().attention.options;
        const int64_t t = residual.size(0);
        residual_ = tensor(ops.memory(), dtype::float32, {t, residual.size(1)});
        q_ = tensor(ops.memory(), ops.type(), {t, options.num_heads, options.head_dim});
        attended_ = tensor(ops.memory(), ops.type(), {t, options.num_heads * options.head_dim});
        if (rows) behind_ = tensor(ops.memory(), dtype::float32, {num_rows, residual.size(1)});
        // With the matrices that all threads read, half of a third cache is enough for what each asks for beside.
        ahead_bytes_ = ops.third_cache_bytes_ / (2 * num_threads);
        for (const decoder_layer& layer : decoder.layers) {
            shape_check check("decode");
            rotary_.push_back(ops.prepare_rotary(check, batch, cache, layer.attention));
            places_.push_back(cache.place_of(check, layer.attention.layer));
        }
    }

    int64_t num_stages() const { return static_cast<int64_t>(decoder_.layers.size()) + 1; }

    int64_t scratch_bytes(int64_t most_rows) const {
        const int64_t row = (decoder_.widest + e() + decoder_.widest_gated) * item() + (e() + qkv_width()) * 4;
        const attention_options& options = decoder_.layers.front().attention.options;
        constexpr int64_t kAlignments = 6 * 64;
        return ceil_div(most_rows * row + kAlignments, 64) * 64 +
               static_cast<int64_t>(ops_.attention_scratch_bytes(options, cache_) + 63) / 64 * 64;
    }

    void run_stage(const row_span& rows, int64_t stage, char* scratch) const {
        cutter parts(scratch);
        chunk own{};
        own.rows = rows;
        own.packed = parts.take(rows.count * decoder_.widest * item());
        own.normed = parts.take(rows.count * e() * item());
        own.gated = parts.take(rows.count * decoder_.widest_gated * item());
        own.sums = parts.take<float>(rows.count * e() * 4);
        own.qkv = parts.take<float>(rows.count * qkv_width() * 4);
        own.attention = parts.take(0);
        const bool is_first = stage == 0, is_last = stage + 1 == num_stages();
        // A single query reads the keys and values of its whole sequence, while products leave the memory idle.
        std::vector<const char*> regions;
        if (!is_last) regions = read_by_single_queries(rows, stage);
        memory_ahead ahead{regions.data(), static_cast<int64_t>(regions.size()), cache_.layout.layer_bytes, 0};
        own.ahead = &ahead;
        if (is_first) {
            const float* const x = input_.floats() + rows.first * e();
            ops_.norm_here(ops_.type(), norm_into(own, x, nullptr, decoder_.layers.front().attention), rows.count);
        } else {
            attend(own, stage - 1);
            if (is_last && rows_) return leave_some(own);
            leave(own, stage - 1);
        }
        if (!is_last) enter(own, stage);
    }

    std::pair<tensor, tensor> take_result() { return {std::move(rows_ ? behind_ : residual_), std::move(attended_)}; }

  private:
    struct chunk {
        row_span rows;
        char *packed, *normed, *gated;
        float *sums, *qkv;
        char* attention;
        memory_ahead* ahead;
    };

    int64_t e() const { return input_.size(1); }
    int64_t item() const { return item_bytes(ops_.type()); }
    int64_t qkv_width() const { return decoder_.layers.front().attention.qkv->n; }
    const decoder_layer& layer(int64_t i) const { return decoder_.layers[static_cast<size_t>(i)]; }
    float* residual_of(const chunk& own) const { return residual_.floats() + own.rows.first * e(); }

    // Where the keys and values lie that single queries of `rows` read in a layer's attention.
    std::vector<const char*> read_by_single_queries(const row_span& rows, int64_t index) const {
        const kv_cache::place place = places_[static_cast<size_t>(index)];
        const step_batch::group& group = batch_.groups[static_cast<size_t>(place.group)];
        const int64_t window = layer(index).attention.options.window, size = cache_.layout.block_size;
        const int32_t* const starts = batch_.query_start;
        const auto most = static_cast<size_t>(ahead_bytes_ / cache_.layout.layer_bytes);
        std::vector<const char*> out;
        int64_t s = std::upper_bound(starts, starts + batch_.num_seqs, rows.first) - starts - 1;
        for (; s < batch_.num_seqs && starts[s] < rows.first + rows.count; ++s) {
            if (starts[s + 1] - starts[s] != 1) continue;
            const int64_t position = batch_.positions[starts[s]];
            const int64_t first_key = window > 0 ? std::max<int64_t>(0, position - window + 1) : 0;
            for (int64_t i = first_key / size; i <= position / size && out.size() < most; ++i) {
                const char* const block = cache_.block(group.block_table[s * group.max_blocks + i]);
                out.push_back(block + place.index * cache_.layout.layer_bytes);
            }
        }
        return out;
    }

    // residual = x + addend, which is normed for what follows.
    template <class Block>
    norm_params norm_into(const chunk& own, const float* x, const float* addend, const Block& block) const {
        return {x, addend, block.norm->values.data(), residual_of(own), own.normed, e(), block.eps};
    }
    void post_norm(const packed_vector* weight, float* x, float eps, int64_t count) const {
        if (!weight) return;
        ops_.norm_here(dtype::float32, {x, nullptr, weight->values.data(), nullptr, x, e(), eps}, count);
    }

    // From the normed rows to q, K and V.
    void enter(const chunk& own, int64_t index) const {
        const attention_block& block = layer(index).attention;
        ops_.multiply_here({own.normed, nullptr, own.rows.count, *block.qkv, 0.0f, activation::none, own.qkv},
                           own.packed, own.ahead);
        rotary_params rotary = rotary_[static_cast<size_t>(index)];
        rotary.qkv = own.qkv;
        rotary.positions += own.rows.first;
        rotary.slots += own.rows.first;
        rotary.q =
            static_cast<char*>(q_.data()) + own.rows.first * block.options.num_heads * block.options.head_dim * item();
        ops_.kernels().rotary[static_cast<int>(ops_.type())](rotary, 0, own.rows.count);
    }
    void attend(const chunk& own, int64_t index) const {
        ops_.attend_here(own.rows, q_.data(), attended_.data(), batch_, cache_, places_[static_cast<size_t>(index)],
                         layer(index).attention.options, own.attention);
    }
    // From what the heads found to the residual behind the layer, normed for the next where there is one.
    void leave(const chunk& own, int64_t index) const {
        const feed_forward_block& block = layer(index).feed_forward;
        const char* const x = static_cast<const char*>(attended_.data()) + own.rows.first * attended_.size(1) * item();
        feed_forward(own, block, {x, nullptr, own.rows.count, *block.out, 0.0f, activation::none, own.sums},
                     residual_of(own));
        float* const residual = residual_of(own);
        if (index + 2 < num_stages()) {
            const attention_block& next = layer(index + 1).attention;
            ops_.norm_here(ops_.type(), norm_into(own, residual, own.sums, next), own.rows.count);
        } else {
            for (int64_t i = 0; i < own.rows.count * e(); ++i) residual[i] += own.sums[i];
        }
    }
    // The same behind the last layer, for the rows wanted.
    void leave_some(const chunk& own) const {
        const int32_t* const first = std::lower_bound(rows_, rows_ + num_rows_, own.rows.first);
        const int32_t* const last = std::lower_bound(first, rows_ + num_rows_, own.rows.first + own.rows.count);
        const int64_t count = last - first;
        if (count == 0) return;
        const feed_forward_block& block = decoder_.layers.back().feed_forward;
        float* const residual = behind_.floats() + (first - rows_) * e();
        for (int64_t i = 0; i < count; ++i) {
            std::copy_n(residual_.floats() + first[i] * e(), e(), residual + i * e());
        }
        feed_forward(own, block, {attended_.data(), first, count, *block.out, 0.0f, activation::none, own.sums},
                     residual);
        for (int64_t i = 0; i < count * e(); ++i) residual[i] += own.sums[i];
    }
    // `out` joins the residual; sums: what the feed-forward block adds to it.
    void feed_forward(const chunk& own, const feed_forward_block& block, const product& out, float* residual) const {
        const int64_t count = out.rows;
        ops_.multiply_here(out, own.packed, own.ahead);
        post_norm(block.attention_post_norm, own.sums, block.eps, count);
        ops_.norm_here(ops_.type(),
                       {residual, own.sums, block.norm->values.data(), residual, own.normed, e(), block.eps}, count);
        ops_.multiply_here({own.normed, nullptr, count, *block.gate_up, 0.0f, block.kind, own.gated}, own.packed,
                           own.ahead);
        ops_.multiply_here({own.gated, nullptr, count, *block.down, 0.0f, activation::none, own.sums}, own.packed,
                           own.ahead);
        post_norm(block.post_norm, own.sums, block.eps, count);
    }

    const backend& ops_;
    const tensor& input_;
    const step_batch& batch_;
    kv_cache& cache_;
    const decoder_layers& decoder_;
    const int32_t* rows_;
    int64_t num_rows_;
    int64_t ahead_bytes_;
    tensor residual_, q_, attended_, behind_;
    std::vector<rotary_params> rotary_;
    std::vector<kv_cache::place> places_;
};

bool backend::takes_rows(int64_t num_rows) const {
    return pool_.num_threads() == 1 || num_rows >= kMinChunkRows * pool_.num_threads();
}

std::pair<tensor, tensor> backend::decode(const tensor& residual, const step_batch& batch, kv_cache& cache,
                                          const decoder_layers& decoder, const int32_t* rows, int64_t num_rows) {
    shape_check check("decode");
    check.check(residual, "residual", dtype::float32, {"T", "E"});
    check.bind("T", batch.num_tokens, "batch");
    check.bind("E", decoder.layers.front().attention.qkv->k, "the layers");
    check.require(decoder.layers.front().attention.qkv->type == type_, "the layers are of another dtype");
    for (int64_t i = 0; rows && i < num_rows; ++i) {
        check.require(rows[i] >= 0 && rows[i] < residual.size(0),
                      "row " + std::to_string(rows[i]) + " is not below T = " + std::to_string(residual.size(0)));
        check.require(i == 0 || rows[i - 1] < rows[i], "rows must ascend");
    }
    if (num_rows == residual.size(0)) rows = nullptr;  // since they ascend, these are all
    const int64_t threads = pool_.num_threads(), count = residual.size(0);
    if (takes_rows(count) && count > 0) {
        const std::vector<double> costs = costs_of_rows(batch, cache.type, decoder.layers, decoder.operations_per_row);
        const std::vector<row_span> chunks = cut_rows(costs, threads, kernels_.max_tile_rows[index()]);
        if (is_balanced(chunks, costs, threads)) {
            decoder_pass pass(*this, residual, batch, cache, decoder, rows, num_rows, threads);
            chunk_walk walk(static_cast<int64_t>(chunks.size()), pass.num_stages());
            for (const step_batch::group& group : batch.groups) {
                add_needs(walk, chunks, batch, group, cache.layout.block_size);
            }
            int64_t most_rows = 0;
            for (const row_span& chunk : chunks) most_rows = std::max(most_rows, chunk.count);
            const int64_t scratch_bytes = pass.scratch_bytes(most_rows);
            const arena::buffer scratch = arena_->take(static_cast<size_t>(scratch_bytes * threads));
            pool_.run(threads, [&](int64_t, int thread) {
                walk.run([&](int64_t chunk, int64_t stage) {
                    pass.run_stage(chunks[static_cast<size_t>(chunk)], stage, scratch.get() + thread * scratch_bytes);
                });
            });
            return pass.take_result();
        }
    }
    tensor behind, attended;
    const tensor* before = &residual;
    for (const decoder_layer& layer : decoder.layers) {
        const tensor q = project_qkv(*before, batch, cache, layer.attention);
        attended = paged_attention(q, batch, cache, layer.attention.layer, layer.attention.options);
        const bool is_last = &layer == &decoder.layers.back();
        behind = feed_forward(attended, *before, is_last ? rows : nullptr, num_rows, layer.feed_forward);
        before = &behind;
    }
    return {std::move(behind), std::move(attended)};
}

}  // namespace octavo
