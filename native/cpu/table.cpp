// The kernels of this level, gathered.
#include "kernels.h"

namespace octavo::OCTAVO_LEVEL {

#define OCTAVO_STRING_OF(x) #x
#define OCTAVO_STRING(x) OCTAVO_STRING_OF(x)
#define OCTAVO_BOTH(kernel) {kernel<float>, kernel<bfloat16>}

const kernel_table& table() {
    static const kernel_table kTable = {
        OCTAVO_STRING(OCTAVO_LEVEL),
        kMaxTileRows,
        OCTAVO_BOTH(pack_weights),
        OCTAVO_BOTH(pack_rows),
        OCTAVO_BOTH(linear),
        OCTAVO_BOTH(embedding),
        OCTAVO_BOTH(norm),
        OCTAVO_BOTH(gated),
        OCTAVO_BOTH(rotary),
        OCTAVO_BOTH(read_page),
        OCTAVO_BOTH(write_page),
        OCTAVO_BOTH(attention_scratch_bytes),
        OCTAVO_BOTH(attend),
        OCTAVO_BOTH(attend_partition),
        OCTAVO_BOTH(combine_partitions),
        scan_row,
        sum_exp,
        log_sum_exp,
        group_maxima,
        count_above,
        divide_row,
        mask_row,
        weigh_row,
        draw,
        read_memory,
    };
    return kTable;
}

}  // namespace octavo::OCTAVO_LEVEL
