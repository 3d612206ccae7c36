// The native back end: one level of kernels, one pool of threads, one arena. Its methods are the ops of kernels/ops.py.
//
// Every method checks its arguments first (shape_error names the symbol), then trusts. Results are in arena memory and
// live as long as their owner. Methods may be called from any thread; calls take turns in the pool.
#pragma once

#include <memory>
#include <vector>

#include "octavo/kernel_table.h"
#include "octavo/memory.h"
#include "octavo/shape_check.h"
#include "octavo/tensor.h"
#include "octavo/thread_pool.h"

namespace octavo {

// A linear layer's matrix, [N, K] packed (kernel_table.h), with its bias.
struct packed_matrix {
    packed_matrix(slab& memory, dtype type, int64_t n, int64_t k, int64_t gate_width = 0);

    dtype type;
    int64_t n, k;
    int64_t gate_width;  // F of a gated pair, whose columns lie in turns; 0: not gated
    slab::slice panels;
    std::vector<float> bias;  // [N], empty: none
};

// float32 [N], such as a norm's weight.
struct packed_vector {
    std::vector<float> values;
};

struct rope_table {
    std::vector<float> cos, sin;  // [max_position, half]
    int64_t max_position, half;
};

// KV memory of all blocks; which place in a block's page, and which group, each model layer has.
struct kv_cache {
    struct place {
        int32_t group = -1, index = -1;
    };
    kv_cache(dtype type, int64_t num_blocks, int64_t block_size, int64_t num_kv_heads, int64_t head_dim,
             const std::vector<std::vector<int>>& layers_of_groups);

    place place_of(const shape_check& check, int64_t layer) const;
    char* block(int64_t block_id) const { return memory.data() + block_id * layout.block_bytes; }

    dtype type;
    int64_t num_blocks, num_groups;
    cache_layout layout;
    std::vector<place> places;  // by model layer
    region memory;
};

// Inputs of one forward pass, checked once; arrays belong to the caller and outlive this.
struct step_batch {
    struct group {
        const int32_t* slots;        // [T]
        const int32_t* block_table;  // [S, max_blocks]
        int64_t max_blocks;
    };
    int64_t num_tokens, num_seqs;
    const int32_t* positions;    // [T]
    const int32_t* query_start;  // [S + 1]
    const int32_t* seq_lens;     // [S]
    std::vector<group> groups;
    int64_t max_position;  // highest of positions

    void check(const kv_cache& cache);
};

struct attention_options {
    int64_t num_heads, num_kv_heads, head_dim;
    float scale;
    int64_t window;  // 0: none
    float softcap;   // 0: none
};

// What comes before the attention of a layer. Referenced objects outlive it.
struct attention_block {
    int64_t layer;
    const packed_vector* norm;
    const packed_matrix* qkv;
    const rope_table* rope;
    attention_options options;
    const packed_vector *q_norm, *k_norm;  // null: none
    float eps;
};

// What comes behind the attention of a layer. Referenced objects outlive it.
struct feed_forward_block {
    const packed_matrix* out;
    const packed_vector* attention_post_norm;  // null: none
    const packed_vector* norm;
    const packed_matrix* gate_up;  // gated
    activation kind;
    const packed_matrix* down;
    const packed_vector* post_norm;  // null: none
    float eps;
};

struct decoder_layer {
    attention_block attention;
    feed_forward_block feed_forward;
};

// All layers of a decoder, which agree in E, H, K and D. Referenced objects outlive it.
struct decoder_layers {
    explicit decoder_layers(std::vector<decoder_layer> in_order);  // shape_error: parts that do not fit each other

    std::vector<decoder_layer> layers;  // one at least
    int64_t widest;                     // input of any product
    int64_t widest_gated;               // F of any layer
    int64_t operations_per_row;         // of the products of all layers
};

// Rows [first, first + count) of T.
struct row_span {
    int64_t first, count;
};

// x times weights: rows `indices` of x (null: all, in order) into out.
struct product {
    const void* x;
    const int32_t* indices;
    int64_t rows;
    const packed_matrix& weights;
    float softcap;
    activation gate;
    void* out;
};

class backend {
  public:
    backend(dtype type, const char* isa, int num_threads);

    dtype type() const { return type_; }
    const char* isa() const { return kernels_.name; }
    int num_threads() const { return pool_.num_threads(); }
    size_t arena_bytes() const { return arena_->num_bytes_held(); }
    arena& memory() const { return *arena_; }
    slab& weight_memory() { return weight_memory_; }
    thread_pool& pool() { return pool_; }
    const kernel_table& kernels() const { return kernels_; }

    void pack_columns(packed_matrix& matrix, int64_t first_column, const float* rows, int64_t num_rows, int64_t k);

    tensor embedding(const int32_t* tokens, int64_t num_tokens, const packed_matrix& table, float scale);
    // Returns (normed in the linear input type, residual).
    std::pair<tensor, tensor> rms_norm(const tensor& x, const tensor* addend, const packed_vector& weight, float eps);
    tensor norm_only(const tensor& x, const packed_vector& weight, float eps);
    tensor linear(const tensor& x, const packed_matrix& weights);
    tensor logits(const tensor& x, const int32_t* rows, int64_t num_rows, const packed_matrix& head, float softcap);
    tensor gated_activation(const tensor& gate_up, activation kind);
    tensor rotary_write(const tensor& qkv, const step_batch& batch, kv_cache& cache, int64_t layer,
                        const rope_table& rope, const attention_options& options, const packed_vector* q_norm,
                        const packed_vector* k_norm, float eps);
    tensor paged_attention(const tensor& q, const step_batch& batch, const kv_cache& cache, int64_t layer,
                           const attention_options& options);

    // All ops of all layers in one call, to the same bits (host/decoder.cpp). rows [R]: the rows wanted, ascending;
    // null: all. Returns the residual of the rows wanted behind the last layer, and what the heads of the last layer
    // found, for all T.
    std::pair<tensor, tensor> decode(const tensor& residual, const step_batch& batch, kv_cache& cache,
                                     const decoder_layers& decoder, const int32_t* rows, int64_t num_rows);

    void read_block(const kv_cache& cache, int64_t block_id, float* page) const;
    void write_block(kv_cache& cache, int64_t block_id, const float* page) const;
    void copy_blocks(kv_cache& cache, const int64_t* pairs, int64_t num_pairs);

  private:
    int index() const { return static_cast<int>(type_); }
    // work(first_row, last_row) over rows of `row_elements` each; few elements are done here and now.
    template <class Work>
    void run_rows(int64_t num_rows, int64_t row_elements, const Work& work);
    void multiply(const product& p);  // by all threads
    rotary_params prepare_rotary(shape_check& check, const step_batch& batch, kv_cache& cache,
                                 const attention_block& block) const;
    bool takes_rows(int64_t num_rows) const;
    tensor project_qkv(const tensor& residual, const step_batch& batch, kv_cache& cache, const attention_block& block);
    tensor feed_forward(const tensor& attended, const tensor& residual, const int32_t* rows, int64_t num_rows,
                        const feed_forward_block& block);
    // Parts of ops, by the calling thread alone.
    friend class decoder_pass;
    void norm_here(dtype out, const norm_params& params, int64_t count) const;
    // packed: room for the rows of x; ahead: what to ask the memory for meanwhile, null: nothing
    void multiply_here(const product& p, char* packed, memory_ahead* ahead) const;
    size_t attention_scratch_bytes(const attention_options& options, const kv_cache& cache) const;
    // q [T, H, D], out [T, H * D], of which `rows` are read and written
    void attend_here(const row_span& rows, const void* q, void* out, const step_batch& batch, const kv_cache& cache,
                     const kv_cache::place& place, const attention_options& options, char* scratch) const;

    const dtype type_;
    const kernel_table& kernels_;
    const int64_t third_cache_bytes_;
    std::shared_ptr<arena> arena_;
    slab weight_memory_;
    thread_pool pool_;
};

}  // namespace octavo
