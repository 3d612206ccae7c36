// probe: reading memory as fast as this level can, the yardstick of kernels that stream.
#include "kernels.h"

namespace octavo::OCTAVO_LEVEL {

constexpr int64_t kAhead = 1024;  // floats; as far as linear asks ahead

// Sum of some kind over count floats, a multiple of 64; the result only keeps the reads from being dropped.
float read_memory(const float* data, int64_t count) {
    constexpr int kChains = 4;
    constexpr int64_t kStep = kChains * kLanes;
    vf sums[kChains];
    for (vf& sum : sums) sum = broadcast(0.0f);
    for (int64_t i = 0; i < count; i += kStep) {
        for (int64_t line = 0; line < kStep; line += 16) __builtin_prefetch(data + i + line + kAhead);
        for (int chain = 0; chain < kChains; ++chain) sums[chain] = sums[chain] + load(data + i + chain * kLanes);
    }
    return sum_lanes((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

}  // namespace octavo::OCTAVO_LEVEL
