// The machine code of level "amx" against the emulated level: linear and attention, bit by bit.
//
// Prints `unit: real` or `unit: trapped`, how many results differ and by how much. Where there is a matrix unit, this
// is the self-check to run first; elsewhere its instructions are trapped (amx_trap.h), which shows that the compiler
// keeps what the unit reads: configurations, operands, and their order.
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <random>
#include <vector>

#include "amx_trap.h"
#include "octavo/cpu_features.h"
#include "octavo/kernel_table.h"

#define OCTAVO_DECLARE(level)                                                                                         \
    namespace octavo::level {                                                                                         \
    void pack_rows_by_tiles(const pack_rows_params&, int64_t block);                                                  \
    void linear_by_tiles(const linear_params&, int64_t unit);                                                         \
    size_t attention_scratch_bytes_by_tiles(const attention_params&, int64_t num_tokens);                             \
    void attend_by_tiles(const attention_params&, const attention_tile&, char* scratch);                              \
    void attend_partition_by_tiles(const attention_params&, const attention_tile&, int64_t partition, char* scratch); \
    void combine_partitions_by_tiles(const attention_params&, const attention_tile&, char* scratch);                  \
    }
OCTAVO_DECLARE(amx)
OCTAVO_DECLARE(amx_emulated)

using namespace octavo;

namespace {

// The functions of one level.
struct level {
    decltype(&amx::pack_rows_by_tiles) pack_rows;
    decltype(&amx::linear_by_tiles) linear;
    decltype(&amx::attention_scratch_bytes_by_tiles) scratch_bytes;
    decltype(&amx::attend_by_tiles) attend;
    decltype(&amx::attend_partition_by_tiles) attend_partition;
    decltype(&amx::combine_partitions_by_tiles) combine_partitions;
};
const level kReal{amx::pack_rows_by_tiles, amx::linear_by_tiles,           amx::attention_scratch_bytes_by_tiles,
                  amx::attend_by_tiles,    amx::attend_partition_by_tiles, amx::combine_partitions_by_tiles};
const level kEmulated{amx_emulated::pack_rows_by_tiles,
                      amx_emulated::linear_by_tiles,
                      amx_emulated::attention_scratch_bytes_by_tiles,
                      amx_emulated::attend_by_tiles,
                      amx_emulated::attend_partition_by_tiles,
                      amx_emulated::combine_partitions_by_tiles};

std::vector<bfloat16> draw(int64_t count, unsigned seed) {
    std::mt19937 generator(seed);
    std::normal_distribution<float> normal;
    std::vector<bfloat16> out(static_cast<size_t>(count));
    for (bfloat16& value : out) value = narrow_scalar(normal(generator));
    return out;
}

struct product {
    int64_t rows, k, n;
    bool has_bias;
    float softcap;
};

std::vector<float> multiply(const level& kernels, const product& shape) {
    const int64_t num_blocks = ceil_div(shape.rows, 32), num_panels = ceil_div(shape.n, kPanelColumns);
    const auto x = draw(shape.rows * shape.k, 1), panels = draw(num_panels * kPanelColumns * shape.k, 2);
    std::vector<bfloat16> packed(x.size());
    const std::vector<float> bias(static_cast<size_t>(shape.n), 0.25f);
    std::vector<float> out(static_cast<size_t>(shape.rows * shape.n));
    for (int64_t block = 0; block < num_blocks; ++block) {
        kernels.pack_rows({x.data(), nullptr, packed.data(), shape.rows, shape.k, num_blocks}, block);
    }
    linear_params p{};
    p.panels = panels.data();
    p.bias = shape.has_bias ? bias.data() : nullptr;
    p.x = packed.data();
    p.out = out.data();
    p.rows = shape.rows;
    p.k = shape.k;
    p.n = shape.n;
    p.num_blocks = p.blocks_per_unit = num_blocks;
    p.panels_per_unit = num_panels;
    p.softcap = shape.softcap;
    kernels.linear(p, 0);
    return out;
}

struct attention_case {
    int64_t num_tokens, first_position, num_heads, head_dim, block_size, window;
    bool is_split;
};

std::vector<float> attend(const level& kernels, const attention_case& c) {
    constexpr int64_t kNumKvHeads = 2;
    cache_layout l{};
    l.block_size = c.block_size;
    l.num_kv_heads = kNumKvHeads;
    l.head_dim = c.head_dim;
    l.head_dim_padded = ceil_div(c.head_dim, 32) * 32;
    l.num_layers = 1;
    l.k_head_bytes = c.block_size * c.head_dim * 2;
    l.v_head_bytes = c.block_size * l.head_dim_padded * 2;
    l.k_bytes = kNumKvHeads * l.k_head_bytes;
    l.layer_bytes = l.block_bytes = l.k_bytes + kNumKvHeads * l.v_head_bytes;
    const int64_t num_keys = c.first_position + c.num_tokens, num_blocks = ceil_div(num_keys, c.block_size);
    std::vector<int32_t> table;
    for (int64_t i = 0; i < num_blocks; ++i) table.push_back(static_cast<int32_t>(num_blocks - 1 - i));
    const auto cache = draw(num_blocks * l.block_bytes / 2, 3), q = draw(c.num_tokens * c.num_heads * c.head_dim, 4);
    std::vector<bfloat16> out(q.size());
    const attention_params p{q.data(), out.data(), reinterpret_cast<const char*>(cache.data()), l, c.num_heads, 0.2f,
                             0,        c.window};
    const int64_t first_key = c.window > 0 ? std::max<int64_t>(0, c.first_position - c.window + 1) : 0;
    const int64_t first = first_key / kPartition, count = ceil_div(num_keys, kPartition) - first;
    const int64_t rows = c.num_tokens * c.num_heads / kNumKvHeads;
    std::vector<float> partials(static_cast<size_t>(count * rows * (l.head_dim_padded + 2)));
    std::vector<char> memory(kernels.scratch_bytes(p, c.num_tokens) + 64);
    char* const scratch = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) % 64;
    for (int64_t head = 0; head < kNumKvHeads; ++head) {
        const attention_tile tile{table.data(), 0, c.first_position, c.num_tokens, head, first, count, partials.data()};
        if (!c.is_split) {
            kernels.attend(p, tile, scratch);
            continue;
        }
        for (int64_t i = 0; i < count; ++i) kernels.attend_partition(p, tile, i, scratch);
        kernels.combine_partitions(p, tile, scratch);
    }
    std::vector<float> values;
    for (bfloat16 value : out) values.push_back(widen_scalar(value));
    return values;
}

int64_t num_values = 0, num_different = 0;
double largest = 0;

void compare(const std::vector<float>& found, const std::vector<float>& expected) {
    for (size_t i = 0; i < expected.size(); ++i) {
        ++num_values;
        num_different += std::memcmp(&found[i], &expected[i], sizeof(float)) != 0;
        const double difference = std::fabs(static_cast<double>(found[i]) - static_cast<double>(expected[i]));
        if (!(difference <= largest)) largest = difference;
    }
}

}  // namespace

int main() {
    const bool is_real = detect_cpu_features().amx_bf16;
    if (!is_real) amx_trap::install();
    for (const product& shape :
         {product{1, 64, 32, false, 0}, product{3, 576, 40, true, 0}, product{16, 90, 65, false, 0},
          product{17, 2, 32, false, 5}, product{33, 256, 33, true, 0}, product{70, 96, 64, false, 0}}) {
        compare(multiply(kReal, shape), multiply(kEmulated, shape));
    }
    for (const attention_case& c :
         {attention_case{1, 200, 6, 64, 32, 0, false}, attention_case{1, 300, 14, 80, 64, 0, true},
          attention_case{30, 100, 6, 16, 32, 40, false}, attention_case{11, 130, 8, 6, 16, 33, false},
          attention_case{40, 0, 2, 128, 96, 0, true}}) {
        compare(attend(kReal, c), attend(kEmulated, c));
    }
    std::printf("unit: %s\n%lld of %lld results differ, at most by %g\n", is_real ? "real" : "trapped",
                static_cast<long long>(num_different), static_cast<long long>(num_values), largest);
    if (!is_real) std::printf("%lld instructions\n", static_cast<long long>(amx_trap::unit.num_instructions));
    return is_real || amx_trap::unit.num_instructions > 0 ? 0 : 1;
}
