// A layer of a decoder in two calls, before and behind its attention.
//
// With many rows each thread takes a chunk of them through all ops of the call: what passes from op to op stays in its
// second cache, and threads meet only at the end. With few rows the matrices are what costs, so ops follow each other
// and each is shared out by columns. Both ways, and the ops of backend.h one by one, give the same bits.
#include <algorithm>
#include <cstring>

#include "octavo/backend.h"
#include "run_rows.h"

namespace octavo {

namespace {

constexpr int64_t kMaxChunkRows = 72;  // with inputs and outputs of a feed-forward block in a second cache of 1 MB
constexpr int64_t kMinChunkRows = 24;  // fewer a thread: reading the matrices costs more than multiplying

// Parts of a thread's scratch for one chunk, each 64-byte aligned.
class cutter {
  public:
    explicit cutter(char* scratch) : next_(scratch) {}
    char* take(int64_t num_bytes) {
        char* const out = next_;
        next_ += ceil_div(num_bytes, 64) * 64;
        return out;
    }

  private:
    char* next_;
};

}  // namespace

bool backend::takes_rows(int64_t num_rows) const {
    return pool_.num_threads() == 1 || num_rows >= kMinChunkRows * pool_.num_threads();
}

// work(first_row, num_rows, scratch): one chunk of equal size a thread, or many of whole row blocks.
template <class Work>
void backend::run_chunks(int64_t num_rows, int64_t scratch_bytes_per_row, const Work& work) {
    if (num_rows == 0) return;
    const int64_t threads = pool_.num_threads();
    const bool is_one_each = num_rows <= threads * kMaxChunkRows;
    const int64_t step = is_one_each ? 1 : kernels_.max_tile_rows[index()];
    const int64_t num_steps = ceil_div(num_rows, step);
    const int64_t num_chunks = std::min(num_steps, ceil_div(ceil_div(num_rows, kMaxChunkRows), threads) * threads);
    const auto start = [&](int64_t chunk) {
        return std::min(block_start(num_steps, num_chunks, chunk) * step, num_rows);
    };
    constexpr int64_t kAlignments = 4 * 64;
    const int64_t most_rows = ceil_div(num_steps, num_chunks) * step;
    const int64_t scratch_bytes = ceil_div(most_rows * scratch_bytes_per_row + kAlignments, 64) * 64;
    const arena::buffer scratch = arena_->take(static_cast<size_t>(scratch_bytes * threads));
    pool_.run(num_chunks, [&](int64_t chunk, int thread) {
        work(start(chunk), start(chunk + 1) - start(chunk), scratch.get() + thread * scratch_bytes);
    });
}

tensor backend::project_qkv(const tensor& residual, const step_batch& batch, kv_cache& cache,
                            const attention_block& block) {
    shape_check check("project_qkv");
    rotary_params rotary = prepare_rotary(check, batch, cache, block);
    check.check(residual, "residual", dtype::float32, {"T", "E"});
    check.bind("E", static_cast<int64_t>(block.norm->values.size()), "norm");
    check.bind("E", block.qkv->k, "qkv");
    check.bind("(H + 2K) * D", block.qkv->n, "qkv");
    check.require(block.qkv->type == type_, "the matrix is of another dtype");
    const int64_t rows = residual.size(0), e = residual.size(1), width = block.qkv->n;
    const int64_t q_width = block.options.num_heads * block.options.head_dim, item = item_bytes(type_);
    if (!takes_rows(rows)) {
        const tensor normed = rms_norm(residual, nullptr, *block.norm, block.eps).first;
        return rotary_write(linear(normed, *block.qkv), batch, cache, block.layer, *block.rope, block.options,
                            block.q_norm, block.k_norm, block.eps);
    }
    tensor q(*arena_, type_, {rows, block.options.num_heads, block.options.head_dim});
    const auto work = [&](int64_t first, int64_t count, char* scratch) {
        cutter parts(scratch);
        char* const normed = parts.take(count * e * item);
        char* const packed = parts.take(count * e * item);
        auto* const qkv = reinterpret_cast<float*>(parts.take(count * width * 4));
        kernels_.norm[index()](
            {residual.floats() + first * e, nullptr, block.norm->values.data(), nullptr, normed, e, block.eps}, 0,
            count);
        multiply_here({normed, nullptr, count, *block.qkv, 0.0f, activation::none, qkv}, packed);
        rotary_params own = rotary;
        own.qkv = qkv;
        own.positions += first;
        own.slots += first;
        own.q = static_cast<char*>(q.data()) + first * q_width * item;
        kernels_.rotary[index()](own, 0, count);
    };
    run_chunks(rows, 2 * e * item + width * 4, work);
    return q;
}

namespace {

// One call of feed_forward: what it reads and writes, and what lies between its products.
class feed_forward_pass {
  public:
    feed_forward_pass(const backend& ops, const tensor& attended, const tensor& residual, const int32_t* rows,
                      int64_t num_rows, const feed_forward_block& block)
        : ops_(ops), attended_(attended), residual_(residual), rows_(rows), block_(block) {
        shape_check check("feed_forward");
        check.check(attended, "attended", ops.type(), {"T", "H * D"});
        check.check(residual, "residual", dtype::float32, {"T", "E"});
        check.bind("H * D", block.out->k, "out");
        check.bind("E", block.out->n, "out");
        check.bind("E", static_cast<int64_t>(block.norm->values.size()), "norm");
        check.bind("E", block.gate_up->k, "gate_up");
        check.bind("F", block.gate_up->gate_width, "gate_up");
        check.bind("F", block.down->k, "down");
        check.bind("E", block.down->n, "down");
        for (const packed_vector* norm : {block.attention_post_norm, block.post_norm}) {
            if (norm) check.bind("E", static_cast<int64_t>(norm->values.size()), "post-norms");
        }
        for (const packed_matrix* weights : {block.out, block.gate_up, block.down}) {
            check.require(weights->type == ops.type(), "a matrix is of another dtype");
        }
        for (int64_t i = 0; rows && i < num_rows; ++i) {
            check.require(rows[i] >= 0 && rows[i] < residual.size(0),
                          "row " + std::to_string(rows[i]) + " is not below T = " + std::to_string(residual.size(0)));
        }
        num_rows_ = rows ? num_rows : residual.size(0);
        result_ = tensor(ops.memory(), dtype::float32, {num_rows_, residual.size(1)});
    }

    int64_t num_rows() const { return num_rows_; }
    tensor take_result() { return std::move(result_); }

    product out(int64_t first, int64_t count, float* sums) const {
        const char* const x = static_cast<const char*>(attended_.data());
        const int64_t row_bytes = attended_.size(1) * item_bytes(attended_.type());
        return {rows_ ? x : x + first * row_bytes,
                rows_ ? rows_ + first : nullptr,
                count,
                *block_.out,
                0.0f,
                activation::none,
                sums};
    }
    product gate_up(const void* normed, int64_t count, void* gated) const {
        return {normed, nullptr, count, *block_.gate_up, 0.0f, block_.kind, gated};
    }
    product down(const void* gated, int64_t count, float* sums) const {
        return {gated, nullptr, count, *block_.down, 0.0f, activation::none, sums};
    }

    // sums [count, E] of `out` join the residual of rows [first, first + count), which is normed.
    void join_attention(int64_t first, int64_t count, float* sums, void* normed) const {
        norm_in_place(block_.attention_post_norm, sums, count);
        const int64_t e = residual_.size(1);
        float* const own = result_.floats() + first * e;
        const float* x = residual_.floats() + first * e;
        if (rows_) {
            for (int64_t i = 0; i < count; ++i) {
                std::memcpy(own + i * e, residual_.floats() + rows_[first + i] * e, static_cast<size_t>(e) * 4);
            }
            x = own;
        }
        norm(ops_.type(), {x, sums, block_.norm->values.data(), own, normed, e, block_.eps}, count);
    }
    // sums [count, E] of `down` join it too.
    void join_feed_forward(int64_t first, int64_t count, float* sums) const {
        norm_in_place(block_.post_norm, sums, count);
        const int64_t e = residual_.size(1);
        float* const own = result_.floats() + first * e;
        for (int64_t i = 0; i < count * e; ++i) own[i] += sums[i];
    }

  private:
    void norm(dtype type, const norm_params& params, int64_t count) const {
        ops_.kernels().norm[static_cast<int>(type)](params, 0, count);
    }
    void norm_in_place(const packed_vector* weight, float* x, int64_t count) const {
        if (!weight) return;
        norm(dtype::float32, {x, nullptr, weight->values.data(), nullptr, x, residual_.size(1), block_.eps}, count);
    }

    const backend& ops_;
    const tensor &attended_, &residual_;
    const int32_t* rows_;
    const feed_forward_block& block_;
    int64_t num_rows_ = 0;
    tensor result_;
};

}  // namespace

tensor backend::feed_forward(const tensor& attended, const tensor& residual, const int32_t* rows, int64_t num_rows,
                             const feed_forward_block& block) {
    feed_forward_pass pass(*this, attended, residual, rows, num_rows, block);
    const int64_t count = pass.num_rows(), e = block.out->n, f = block.down->k, item = item_bytes(type_);
    if (!takes_rows(count)) {
        const tensor sums(*arena_, dtype::float32, {count, e}), normed(*arena_, type_, {count, e});
        const tensor gated(*arena_, type_, {count, f});
        multiply(pass.out(0, count, sums.floats()));
        run_rows(count, e, [&](int64_t first, int64_t last) {
            pass.join_attention(first, last - first, sums.floats() + first * e,
                                static_cast<char*>(normed.data()) + first * e * item);
        });
        multiply(pass.gate_up(normed.data(), count, gated.data()));
        multiply(pass.down(gated.data(), count, sums.floats()));
        run_rows(count, e, [&](int64_t first, int64_t last) {
            pass.join_feed_forward(first, last - first, sums.floats() + first * e);
        });
        return pass.take_result();
    }
    const int64_t widest = std::max({block.out->k, e, f});
    run_chunks(count, (widest + e + f) * item + e * 4, [&](int64_t first, int64_t n, char* scratch) {
        cutter parts(scratch);
        char* const packed = parts.take(n * widest * item);
        auto* const sums = reinterpret_cast<float*>(parts.take(n * e * 4));
        char* const normed = parts.take(n * e * item);
        char* const gated = parts.take(n * f * item);
        multiply_here(pass.out(first, n, sums), packed);
        pass.join_attention(first, n, sums, normed);
        multiply_here(pass.gate_up(normed, n, gated), packed);
        multiply_here(pass.down(gated, n, sums), packed);
        pass.join_feed_forward(first, n, sums);
    });
    return pass.take_result();
}

}  // namespace octavo
