// Which functions this level defines, each in the file of its op; table.cpp gathers them.
#pragma once

#include "octavo/kernel_table.h"
#include "simd.h"

namespace octavo::OCTAVO_LEVEL {

template <class Element>
void pack_weights(const pack_weights_params&, int64_t panel);
template <class Element>
void pack_rows(const pack_rows_params&, int64_t block);
template <class Element>
void linear(const linear_params&, int64_t unit);
template <class Element>
void embedding(const embedding_params&, int64_t first_row, int64_t last_row);

template <class Element>
void norm(const norm_params&, int64_t first_row, int64_t last_row);
template <class Element>
void gated(const gated_params&, int64_t first_row, int64_t last_row);

template <class Element>
void rotary(const rotary_params&, int64_t first_row, int64_t last_row);
template <class Element>
void read_page(const page_params&);
template <class Element>
void write_page(const page_params&);

template <class Element>
size_t attention_scratch_bytes(const attention_params&, int64_t num_tokens);
template <class Element>
void attend(const attention_params&, const attention_tile&, char* scratch);
template <class Element>
void attend_partition(const attention_params&, const attention_tile&, int64_t partition, char* scratch);
template <class Element>
void combine_partitions(const attention_params&, const attention_tile&, char* scratch);

// bfloat16 on the matrix unit, at levels that have one (amx_*.cpp).
void pack_rows_by_tiles(const pack_rows_params&, int64_t block);
void linear_by_tiles(const linear_params&, int64_t unit);
size_t attention_scratch_bytes_by_tiles(const attention_params&, int64_t num_tokens);
void attend_by_tiles(const attention_params&, const attention_tile&, char* scratch);
void attend_partition_by_tiles(const attention_params&, const attention_tile&, int64_t partition, char* scratch);
void combine_partitions_by_tiles(const attention_params&, const attention_tile&, char* scratch);
int64_t multiply_in_registers_by_tiles(int64_t num_turns, float* in_out);

row_scan scan_row(const float* logits, int64_t v);
float sum_exp(const float* logits, int64_t v, float maximum);
float log_sum_exp(const float* logits, int64_t v, float maximum);
void group_maxima(const float* logits, int64_t v, float* maxima);
int64_t count_above(const float* logits, int64_t v, float value);
void divide_row(float* logits, int64_t v, float divisor);
void mask_row(const int32_t* bits, int64_t v, float* logits);
void weigh_row(const float* logits, int64_t v, float maximum, float* weights);
int64_t draw(const draw_params&);

float read_memory(const float* data, int64_t count);
template <class Element>
int64_t multiply_in_registers(int64_t num_turns, float* in_out);

const kernel_table& table();

}  // namespace octavo::OCTAVO_LEVEL
