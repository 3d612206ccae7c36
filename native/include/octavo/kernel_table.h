// What a level of kernels offers: plain functions over plain parameters.
//
// A kernel does one unit of work (some rows, some panels, one attention tile); the host hands units to threads. Kernels
// allocate nothing, throw nothing and take shapes on trust. Structs here hold data only, and functions shared with the
// host are `static`: these headers are compiled for every level (see cpu/simd.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "octavo/bfloat16.h"
#include "octavo/dtype.h"

namespace octavo {

constexpr int64_t kPanelColumns = 32;  // columns of a packed matrix that lie side by side

// ---- linear --------------------------------------------------------------------------------------------------------
// A *unit* is what one multiplication step of a column consumes: one float, or a pair of bfloat16 (`unit_elements`).
// Packed matrix: [N / 32][K units][32].  Packed x: blocks of rows, block b of r rows: [K units][r].

static inline int64_t unit_elements(dtype type) {
    return type == dtype::bfloat16 ? 2 : 1;
}
static inline int64_t ceil_div(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}
// First row of block `block` when `rows` are cut into `num_blocks` blocks whose sizes differ by one at most.
static inline int64_t block_start(int64_t rows, int64_t num_blocks, int64_t block) {
    return rows * block / num_blocks;
}

struct pack_weights_params {
    const float* source;  // [num_columns, K] rows of the checkpoint's matrix
    void* panels;         // the whole packed matrix
    int64_t k;
    int64_t first_column, num_columns;  // where the source goes
};

struct pack_rows_params {
    const void* x;           // [*, K]
    const int32_t* indices;  // [rows] which rows of x; null: all, in order
    void* packed;
    int64_t rows, k, num_blocks;
};

enum class activation : int32_t { none, silu, gelu_tanh };

// Columns of a gated pair lie in turns of kGateColumns in a packed matrix: so many gates, then their ups.
constexpr int64_t kGateColumns = kPanelColumns / 2;

// Memory that will be wanted behind some products, asked for a line at a time while they run. One thread's.
struct memory_ahead {
    const char* const* regions;  // beginnings of what is left, [num_regions]
    int64_t num_regions;
    int64_t region_bytes;  // of each, whole lines
    int64_t next_byte;     // of the first region
};

constexpr int64_t kLineBytes = 64;

struct linear_params {
    const void* panels;
    const float* bias;  // [N], null: none
    const void* x;      // packed
    void* out;          // [rows, N] float32; gated: act(gate) * up, [rows, gate_width] of the element type
    int64_t rows, k, n;
    int64_t num_blocks;       // of rows
    int64_t blocks_per_unit;  // row blocks and panels that one unit of work covers
    int64_t panels_per_unit;
    float softcap;        // 0: none
    activation gate;      // none: not gated
    int64_t gate_width;   // F, of which N / 2 is the padded number
    memory_ahead* ahead;  // a hint; null: none. The matrix unit does without
};

struct embedding_params {
    const int32_t* tokens;  // [T]
    const void* panels;
    float* out;  // [T, E]
    int64_t e;
    float scale;
};

// ---- rows ----------------------------------------------------------------------------------------------------------

struct norm_params {
    const float* x;       // [T, E]
    const float* addend;  // [T, E], null: none
    const float* weight;  // [E]
    float* residual;      // [T, E], null: not wanted
    void* out;            // [T, E], of the dtype the kernel is chosen by
    int64_t e;
    float eps;
};

struct gated_params {
    const float* gate_up;  // [T, 2F]
    void* out;             // [T, F]
    int64_t f;
    activation kind;
};

// ---- cache ---------------------------------------------------------------------------------------------------------
// Block: [layer place][K and V].  K: [head][D units][P][unit].  V: [head][P units][Dp][unit].
// P is 16 or a multiple of 32; Dp is D rounded up to 32. Decision 0003.

struct cache_layout {
    int64_t block_size, num_kv_heads, head_dim, head_dim_padded, num_layers;
    int64_t k_head_bytes, v_head_bytes, k_bytes, layer_bytes, block_bytes;
};

struct page_params {
    char* block;
    float* page;  // canonical [layer][K|V][P][K heads][D]
    cache_layout layout;
};

struct rotary_params {
    const float* qkv;          // [T, (H + 2K) * D]
    const int32_t* positions;  // [T]
    const int32_t* slots;      // [T]
    const float* cos;          // [max_position, D / 2]
    const float* sin;
    const float* q_norm;  // [D], null: none
    const float* k_norm;
    void* q;      // [T, H, D]
    char* cache;  // block 0, at the layer's place
    cache_layout layout;
    int64_t num_heads;
    float eps;
};

// ---- attention -----------------------------------------------------------------------------------------------------

constexpr int64_t kPartition = 128;  // tokens whose softmax is summed by itself, cut from absolute position 0

struct attention_params {
    const void* q;      // [T, H, D]
    void* out;          // [T, H * D]
    const char* cache;  // block 0, at the layer's place
    cache_layout layout;
    int64_t num_heads;
    float scale, softcap;  // softcap 0: none
    int64_t window;        // tokens a query sees; 0: all
};

// Queries of one sequence and one kv head that run through the keys together.
struct attention_tile {
    const int32_t* block_table;  // of the sequence
    int64_t first_token;         // index into T
    int64_t first_position;      // absolute
    int64_t num_tokens;
    int64_t kv_head;
    int64_t first_partition, num_partitions;
    float* partials;             // [num_partitions][rows][Dp + 2]: unnormalised values, maximum, sum; null: not split
    const attention_tile* next;  // whose turn comes after this on the same thread; null: nobody knows
};

// ---- sampling ------------------------------------------------------------------------------------------------------

constexpr int64_t kVocabPartition = 1024;  // logits whose exponentials are summed by themselves
constexpr int64_t kVocabGroup = 64;        // logits that are passed over together when all are too low

struct row_scan {
    float maximum;
    int64_t argmax;  // lowest id of the maximum; -1: no number above -inf
    bool is_finite;  // no NaN, no +inf
};

struct draw_params {
    const float* logits;  // [count] tempered; -inf: not to be drawn
    const int32_t* ids;   // [count] their token ids, ascending; null: 0, 1, 2, ...
    int64_t count;
    uint64_t seed;
    int64_t position;
};

// ---- the table -----------------------------------------------------------------------------------------------------

struct kernel_table {
    const char* name;
    int64_t max_tile_rows[2];  // indexed by dtype, as the functions are

    void (*pack_weights[2])(const pack_weights_params&, int64_t panel);
    void (*pack_rows[2])(const pack_rows_params&, int64_t block);
    void (*linear[2])(const linear_params&, int64_t unit);
    void (*embedding[2])(const embedding_params&, int64_t first_row, int64_t last_row);

    void (*norm[2])(const norm_params&, int64_t first_row, int64_t last_row);
    void (*gated[2])(const gated_params&, int64_t first_row, int64_t last_row);

    void (*rotary[2])(const rotary_params&, int64_t first_row, int64_t last_row);
    void (*read_page[2])(const page_params&);
    void (*write_page[2])(const page_params&);

    size_t (*attention_scratch_bytes[2])(const attention_params&, int64_t num_tokens);
    void (*attend[2])(const attention_params&, const attention_tile&, char* scratch);
    // One partition of a split tile, and the combination of all of them.
    void (*attend_partition[2])(const attention_params&, const attention_tile&, int64_t partition, char* scratch);
    void (*combine_partitions[2])(const attention_params&, const attention_tile&, char* scratch);

    row_scan (*scan_row)(const float* logits, int64_t v);
    float (*sum_exp)(const float* logits, int64_t v, float maximum);  // of exp(logit - maximum)
    float (*log_sum_exp)(const float* logits, int64_t v, float maximum);
    void (*group_maxima)(const float* logits, int64_t v, float* maxima);  // of each kVocabGroup logits
    int64_t (*count_above)(const float* logits, int64_t v, float value);
    void (*divide_row)(float* logits, int64_t v, float divisor);
    // logits[i] = -inf where bit i % 32 of bits[i / 32] is 0
    void (*mask_row)(const int32_t* bits, int64_t v, float* logits);
    // weights[i] = exp(logits[i] - maximum)
    void (*weigh_row)(const float* logits, int64_t v, float maximum, float* weights);
    int64_t (*draw)(const draw_params&);  // index of the highest logit + noise

    float (*read_memory)(const float* data, int64_t count);
    int64_t (*multiply_in_registers[2])(int64_t num_turns, float* in_out);  // operations done
};

}  // namespace octavo
