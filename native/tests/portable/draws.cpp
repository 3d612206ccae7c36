// draw: the noise of decision 0002, computed here number by number in double precision.
#include <algorithm>
#include <cmath>

#include "checks.h"

namespace octavo::checks {

namespace {

// Philox4x32-10 (Salmon et al., SC'11); the words' names are those of the paper.
struct philox {
    uint32_t x[4];

    philox(uint32_t counter, uint64_t position, uint64_t seed)
        : x{counter, static_cast<uint32_t>(position), static_cast<uint32_t>(position >> 32), 0} {
        auto key_0 = static_cast<uint32_t>(seed), key_1 = static_cast<uint32_t>(seed >> 32);
        for (int round = 0; round < 10; ++round) {
            const uint64_t left = uint64_t{0xd2511f53u} * x[0], right = uint64_t{0xcd9e8d57u} * x[2];
            const uint32_t next[4] = {static_cast<uint32_t>(right >> 32) ^ x[1] ^ key_0, static_cast<uint32_t>(right),
                                      static_cast<uint32_t>(left >> 32) ^ x[3] ^ key_1, static_cast<uint32_t>(left)};
            std::copy(next, next + 4, x);
            key_0 += 0x9e3779b9u;
            key_1 += 0xbb67ae85u;
        }
    }
};

double noise_of(int64_t id, uint64_t position, uint64_t seed) {
    const philox words(static_cast<uint32_t>(id >> 2), position, seed);
    const double u = (static_cast<double>(words.x[id & 3] >> 9) + 0.5) * 0x1p-23;
    return -std::log(-std::log(u));
}

// The drawn token must have the highest sum, or one that float32 cannot tell from it.
void check_one(report& out, const kernel_table& kernels, const std::vector<float>& logits,
               const std::vector<int32_t>& ids, uint64_t position, uint64_t seed) {
    const auto count = static_cast<int64_t>(logits.size());
    std::vector<double> sums;
    for (size_t i = 0; i < logits.size(); ++i) {
        sums.push_back(static_cast<double>(logits[i]) + noise_of(ids[i], position, seed));
    }
    const double highest = *std::max_element(sums.begin(), sums.end());
    const int64_t drawn = kernels.draw({logits.data(), ids.data(), count, seed, static_cast<int64_t>(position)});
    out.holds("draw", drawn >= 0 && drawn < count && sums[static_cast<size_t>(drawn)] >= highest - 1e-4);
    out.mark({static_cast<float>(drawn)});
    if (ids.back() == count - 1) {
        const int64_t of_all = kernels.draw({logits.data(), nullptr, count, seed, static_cast<int64_t>(position)});
        out.holds("draw of all is draw of the list of all", of_all == drawn);
    }
}

}  // namespace

void check_draws(report& out, const kernel_table& kernels) {
    for (const int64_t v : {1, 3, 17, 1000, 4099}) {
        const std::vector<float> logits = draw(v, 7, 3.0f);
        std::vector<int32_t> all, thirds;
        std::vector<float> own;
        for (int32_t id = 0; id < v; ++id) all.push_back(id);
        for (int32_t id = 2; id < v; id += 3) {
            thirds.push_back(id);
            own.push_back(logits[static_cast<size_t>(id)]);
        }
        for (uint64_t i = 0; i < 20; ++i) {
            const uint64_t seed = i * 0x9e3779b97f4a7c15u, position = i << (i % 40);
            check_one(out, kernels, logits, all, position, seed);
            if (!own.empty()) check_one(out, kernels, own, thirds, position, seed);
        }
    }
}

}  // namespace octavo::checks
