// attention on the matrix unit, bfloat16; what it computes is written in attention_partitions.h.
#include "amx_attention.h"
#include "attention_partitions.h"
#include "kernels.h"

namespace octavo::OCTAVO_LEVEL {

size_t attention_scratch_bytes_by_tiles(const attention_params& p, int64_t num_tokens) {
    return scratch_bytes_of<tile_rows>(p, num_tokens);
}

void attend_by_tiles(const attention_params& p, const attention_tile& tile, char* scratch) {
    attend_whole<tile_rows>(p, tile, scratch);
}

void attend_partition_by_tiles(const attention_params& p, const attention_tile& tile, int64_t partition,
                               char* scratch) {
    attend_one_partition<tile_rows>(p, tile, partition, scratch);
}

void combine_partitions_by_tiles(const attention_params& p, const attention_tile& tile, char* scratch) {
    combine<tile_rows>(p, tile, scratch);
}

}  // namespace octavo::OCTAVO_LEVEL
