#include "octavo/probe.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>

namespace octavo {

namespace {

constexpr int64_t kChunkBytes = 256 << 10;

template <class Work>
double best_seconds(int num_passes, const Work& work) {
    double best = 1e30;
    for (int pass = 0; pass < num_passes; ++pass) {
        const auto start = std::chrono::steady_clock::now();
        work();
        const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
        best = std::min(best, taken.count());
    }
    return best;
}

}  // namespace

double probe_read(backend& ops, int64_t num_bytes, int num_passes, bool is_huge) {
    const int64_t num_chunks = ceil_div(num_bytes, kChunkBytes);
    const region memory(static_cast<size_t>(num_chunks * kChunkBytes));
    if (!is_huge) madvise(memory.data(), memory.num_bytes(), MADV_NOHUGEPAGE);
    std::memset(memory.data(), 0, memory.num_bytes());
    std::atomic<float> sink{0};
    const double seconds = best_seconds(num_passes, [&] {
        ops.pool().run(num_chunks, [&](int64_t chunk, int) {
            const auto* const data = reinterpret_cast<const float*>(memory.data() + chunk * kChunkBytes);
            sink = ops.kernels().read_memory(data, kChunkBytes / 4);
        });
    });
    return static_cast<double>(num_chunks * kChunkBytes) / seconds;
}

double probe_matrix(backend& ops, int num_passes) {
    // Two panels of 128 KB a thread: more than a first cache holds, less than a second.
    const int64_t k = (128 << 10) / (kPanelColumns * item_bytes(ops.type()));
    constexpr int64_t kNumPanels = 2, kNumTurns = 64;
    const int64_t rows = ops.kernels().max_tile_rows[static_cast<int>(ops.type())];
    slab memory;
    const packed_matrix weights(memory, ops.type(), kNumPanels * kPanelColumns, k);
    const region x(static_cast<size_t>(rows * k * item_bytes(ops.type())));
    const region out(static_cast<size_t>(ops.num_threads() * rows * weights.n * 4));
    linear_params p{};
    p.panels = weights.panels.data;
    p.x = x.data();
    p.rows = rows;
    p.k = k;
    p.n = weights.n;
    p.num_blocks = p.blocks_per_unit = 1;
    p.panels_per_unit = kNumPanels;
    const int64_t num_units = 16 * ops.num_threads();
    const double seconds = best_seconds(num_passes, [&] {
        ops.pool().run(num_units, [&](int64_t, int thread) {
            linear_params own = p;
            own.out = reinterpret_cast<float*>(out.data()) + thread * rows * weights.n;
            for (int64_t turn = 0; turn < kNumTurns; ++turn) {
                ops.kernels().linear[static_cast<int>(ops.type())](own, 0);
            }
        });
    });
    return static_cast<double>(num_units * kNumTurns * 2 * rows * weights.n * k) / seconds;
}

double probe_arithmetic(backend& ops, int num_passes) {
    constexpr int64_t kNumTurns = 20000;
    const int64_t num_units = 8 * ops.num_threads();
    const auto multiply = ops.kernels().multiply_in_registers[static_cast<int>(ops.type())];
    std::atomic<int64_t> num_operations{0};
    const double seconds = best_seconds(num_passes, [&] {
        num_operations = 0;
        ops.pool().run(num_units, [&](int64_t, int) {
            float value = 0;
            num_operations += multiply(kNumTurns, &value);
        });
    });
    return static_cast<double>(num_operations) / seconds;
}

}  // namespace octavo
