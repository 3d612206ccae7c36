// Cutting the rows of a step into chunks that threads take through the layers of a decoder.
#pragma once

#include <vector>

#include "chunk_walk.h"
#include "octavo/backend.h"

namespace octavo {

// What each row of the step costs, in operations of a product; operations_per_row: of the products of all layers.
std::vector<double> costs_of_rows(const step_batch& batch, dtype cache_type, const std::vector<decoder_layer>& layers,
                                  int64_t operations_per_row);

// One chunk a thread of equal cost; or, with more rows, chunks of equal size in whole blocks of rows.
std::vector<row_span> cut_rows(const std::vector<double>& costs, int64_t num_threads, int64_t block_rows);

// Whether no chunk takes so long that the others would wait for it.
bool is_balanced(const std::vector<row_span>& chunks, const std::vector<double>& costs, int64_t num_threads);

// Rows read keys and values that other rows of the step write: of their own sequence, or of a prefix that they share.
void add_needs(chunk_walk& walk, const std::vector<row_span>& chunks, const step_batch& batch,
               const step_batch::group& group, int64_t block_size);

}  // namespace octavo
