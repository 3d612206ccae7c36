// draw: which token has the highest (tempered logit + Gumbel noise).
//
// Noise of a token: Philox4x32-10, key = halves of the seed, counter = (id >> 2, position low, position high, 0), lane
// = id & 3; u = ((x >> 9) + 1/2) 2^-23; noise = -log(-log(u)). Decision 0002; Salmon et al., SC'11; arXiv 1411.0030.
#include "kernels.h"
#include "math.h"

namespace octavo::OCTAVO_LEVEL {

constexpr float kHighestNoise = 16.7f;  // -log(-log(1 - 2^-24)) is 16.64

struct words {
    vi lane[4];
};

static words philox(vi counter, int64_t position, uint64_t seed) {
    const vi multiplier_0 = broadcast(static_cast<int32_t>(0xd2511f53u));
    const vi multiplier_1 = broadcast(static_cast<int32_t>(0xcd9e8d57u));
    const auto place = static_cast<uint64_t>(position);
    words w{{counter, broadcast(static_cast<int32_t>(static_cast<uint32_t>(place))),
             broadcast(static_cast<int32_t>(static_cast<uint32_t>(place >> 32))), broadcast(0)}};
    auto key_0 = static_cast<uint32_t>(seed), key_1 = static_cast<uint32_t>(seed >> 32);
    for (int round = 0; round < 10; ++round) {
        vi high_0, low_0, high_1, low_1;
        multiply_wide(multiplier_0, w.lane[0], high_0, low_0);
        multiply_wide(multiplier_1, w.lane[2], high_1, low_1);
        w.lane[0] = bit_xor(bit_xor(high_1, w.lane[1]), broadcast(static_cast<int32_t>(key_0)));
        w.lane[1] = low_1;
        w.lane[2] = bit_xor(bit_xor(high_0, w.lane[3]), broadcast(static_cast<int32_t>(key_1)));
        w.lane[3] = low_0;
        key_0 += 0x9e3779b9u;
        key_1 += 0xbb67ae85u;
    }
    return w;
}

static vf gumbel(vi word) {
    const vf u = (to_float(shift_right<9>(word)) + broadcast(0.5f)) * broadcast(0x1p-23f);
    const vf zero = broadcast(0.0f);
    return zero - log_of(zero - log_of(u));
}

// The best so far; of equal values the one met first, which has the lower id.
struct best_of {
    float value = -__builtin_inff();
    int64_t index = -1;

    void take(float found, int64_t at) {
        if (found > value) {
            value = found;
            index = at;
        }
    }
};

static int64_t draw_listed(const draw_params& p) {
    best_of best;
    for (int64_t i = 0; i < p.count; i += kLanes) {
        const int64_t count = min_of(kLanes, p.count - i);
        int32_t counters[kLanes] = {}, picked[kLanes] = {}, lanes[4][kLanes];
        for (int64_t j = 0; j < count; ++j) counters[j] = p.ids[i + j] >> 2;
        const words w = philox(load(counters), p.position, p.seed);
        for (int lane = 0; lane < 4; ++lane) store(lanes[lane], w.lane[lane]);
        for (int64_t j = 0; j < count; ++j) picked[j] = lanes[p.ids[i + j] & 3][j];
        float noise[kLanes];
        store(noise, gumbel(load(picked)));
        for (int64_t j = 0; j < count; ++j) best.take(p.logits[i + j] + noise[j], i + j);
    }
    return best.index;
}

static float max_of_row(const float* x, int64_t count) {
    float best = -__builtin_inff();
    vf highest = broadcast(best);
    int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes) highest = maximum(highest, load(x + i));
    best = max_lane(highest);
    for (; i < count; ++i) best = x[i] > best ? x[i] : best;
    return best;
}

// All tokens in turn, kBlock at a time; a block that even the highest noise cannot lift over the best is passed over.
static int64_t draw_all(const draw_params& p) {
    constexpr int64_t kBlock = 4 * kLanes;
    best_of best;
    for (int64_t start = 0; start < p.count; start += kBlock) {
        const int64_t count = min_of(kBlock, p.count - start);
        if (max_of_row(p.logits + start, count) + kHighestNoise < best.value) continue;
        const vi counters = add(lane_numbers(), broadcast(static_cast<int32_t>(start / 4)));
        const words w = philox(counters, p.position, p.seed);
        float noise[4][kLanes], sums[kBlock];
        for (int lane = 0; lane < 4; ++lane) store(noise[lane], gumbel(w.lane[lane]));
        for (int64_t i = 0; i < kLanes; ++i) {
            for (int64_t lane = 0; lane < 4; ++lane) sums[4 * i + lane] = noise[lane][i];
        }
        if (count == kBlock) {
            for (int64_t i = 0; i < kBlock; i += kLanes) store(sums + i, load(p.logits + start + i) + load(sums + i));
        } else {
            for (int64_t i = 0; i < count; ++i) sums[i] = p.logits[start + i] + sums[i];
        }
        if (max_of_row(sums, count) <= best.value) continue;
        for (int64_t i = 0; i < count; ++i) best.take(sums[i], start + i);
    }
    return best.index;
}

int64_t draw(const draw_params& p) {
    return p.ids ? draw_listed(p) : draw_all(p);
}

}  // namespace octavo::OCTAVO_LEVEL
