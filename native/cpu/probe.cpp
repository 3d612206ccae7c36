// probe: reading memory, and multiplying in registers, as fast as this level can: the yardsticks of the other kernels.
#include "kernels.h"
#include "tile.h"

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

// As many chains of sums as linear keeps, from operands that stay in registers. Returns the operations done.
template <class Element>
int64_t multiply_in_registers(int64_t num_turns, float* in_out) {
    using unit = typename unit_of<Element>::scalar;
    vf acc[kMaxTileRows][2];
    for (auto& row : acc) row[0] = row[1] = broadcast(0.0f);
    unit x;
    std::memcpy(&x, in_out, sizeof x);  // not a constant, or the products would be
    const auto w = broadcast(x);
    for (int64_t turn = 0; turn < num_turns; ++turn) {
        for (auto& row : acc) {
            row[0] = accumulate(row[0], w, x);
            row[1] = accumulate(row[1], w, x);
        }
    }
    vf sum = broadcast(0.0f);
    for (const auto& row : acc) sum = sum + (row[0] + row[1]);
    *in_out = sum_lanes(sum);
    return num_turns * kMaxTileRows * 2 * kLanes * unit_of<Element>::kElements * 2;
}

template int64_t multiply_in_registers<float>(int64_t, float*);
template int64_t multiply_in_registers<bfloat16>(int64_t, float*);

}  // namespace octavo::OCTAVO_LEVEL
