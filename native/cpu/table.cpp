// The kernels of this level, gathered.
#include "kernels.h"
#if defined(OCTAVO_TILES)
#include "amx_product.h"
#endif

namespace octavo::OCTAVO_LEVEL {

#define OCTAVO_STRING_OF(x) #x
#define OCTAVO_STRING(x) OCTAVO_STRING_OF(x)
#define OCTAVO_BOTH(kernel) {kernel<float>, kernel<bfloat16>}
#if defined(OCTAVO_TILES)
constexpr int64_t kMatrixRows = kAmxRows;
#define OCTAVO_MATRIX(kernel) {kernel<float>, kernel##_by_tiles}
#else
constexpr int64_t kMatrixRows = kMaxTileRows;
#define OCTAVO_MATRIX(kernel) OCTAVO_BOTH(kernel)
#endif

const kernel_table& table() {
    static const kernel_table kTable = {
        OCTAVO_STRING(OCTAVO_LEVEL),
        {kMaxTileRows, kMatrixRows},
        OCTAVO_BOTH(pack_weights),
        OCTAVO_MATRIX(pack_rows),
        OCTAVO_MATRIX(linear),
        OCTAVO_BOTH(embedding),
        OCTAVO_BOTH(norm),
        OCTAVO_BOTH(gated),
        OCTAVO_BOTH(rotary),
        OCTAVO_BOTH(read_page),
        OCTAVO_BOTH(write_page),
        OCTAVO_MATRIX(attention_scratch_bytes),
        OCTAVO_MATRIX(attend),
        OCTAVO_MATRIX(attend_partition),
        OCTAVO_MATRIX(combine_partitions),
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
        OCTAVO_MATRIX(multiply_in_registers),
    };
    return kTable;
}

}  // namespace octavo::OCTAVO_LEVEL
