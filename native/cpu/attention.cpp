// attention by vectors, of both element types; what it computes is written in attention_partitions.h.
#include "attention_partitions.h"
#include "attention_rows.h"
#include "kernels.h"

namespace octavo::OCTAVO_LEVEL {

template <class Element>
size_t attention_scratch_bytes(const attention_params& p, int64_t num_tokens) {
    return scratch_bytes_of<vector_rows<Element>>(p, num_tokens);
}

template <class Element>
void attend(const attention_params& p, const attention_tile& tile, char* scratch) {
    attend_whole<vector_rows<Element>>(p, tile, scratch);
}

template <class Element>
void attend_partition(const attention_params& p, const attention_tile& tile, int64_t partition, char* scratch) {
    attend_one_partition<vector_rows<Element>>(p, tile, partition, scratch);
}

template <class Element>
void combine_partitions(const attention_params& p, const attention_tile& tile, char* scratch) {
    combine<vector_rows<Element>>(p, tile, scratch);
}

template size_t attention_scratch_bytes<float>(const attention_params&, int64_t);
template size_t attention_scratch_bytes<bfloat16>(const attention_params&, int64_t);
template void attend<float>(const attention_params&, const attention_tile&, char*);
template void attend<bfloat16>(const attention_params&, const attention_tile&, char*);
template void attend_partition<float>(const attention_params&, const attention_tile&, int64_t, char*);
template void attend_partition<bfloat16>(const attention_params&, const attention_tile&, int64_t, char*);
template void combine_partitions<float>(const attention_params&, const attention_tile&, char*);
template void combine_partitions<bfloat16>(const attention_params&, const attention_tile&, char*);

}  // namespace octavo::OCTAVO_LEVEL
