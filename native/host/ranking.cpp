#include "ranking.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>

namespace octavo {

namespace {

constexpr int kBucketBits = 12;
constexpr size_t kNumBuckets = size_t{1} << kBucketBits;

// Ascending with the value; sign, exponent and three bits of mantissa. -0 counts as 0.
uint32_t bucket_of(float value) {
    const auto bits = std::bit_cast<uint32_t>(value + 0.0f);
    const uint32_t ordered = (bits & 0x80000000u) ? ~bits : bits | 0x80000000u;
    return ordered >> (32 - kBucketBits);
}

// Tokens in buckets above `border`, then those in it, best first.
struct split {
    std::vector<candidate> above, border;
};

split split_at(const float* values, int64_t v, uint32_t border) {
    split out;
    for (int64_t i = 0; i < v; ++i) {
        const uint32_t bucket = bucket_of(values[i]);
        if (bucket < border) continue;
        (bucket > border ? out.above : out.border).push_back({values[i], static_cast<int32_t>(i)});
    }
    std::sort(out.border.begin(), out.border.end(), is_before);
    return out;
}

// Few: with more, the bound is low and most groups have a logit above it.
bool is_few(int64_t count, int64_t num_groups) {
    return count * 4 <= num_groups;
}

std::vector<candidate> find_few(const kernel_table& kernels, const float* values, int64_t v, int64_t count) {
    const int64_t num_groups = ceil_div(v, kVocabGroup);
    std::vector<float> maxima(static_cast<size_t>(num_groups));
    kernels.group_maxima(values, v, maxima.data());
    std::vector<float> ordered = maxima;
    std::nth_element(ordered.begin(), ordered.begin() + (count - 1), ordered.end(), std::greater<>());
    const float bound = ordered[static_cast<size_t>(count - 1)];
    std::vector<candidate> found;
    for (int64_t group = 0; group < num_groups; ++group) {
        if (maxima[static_cast<size_t>(group)] < bound) continue;
        const int64_t last = std::min((group + 1) * kVocabGroup, v);
        for (int64_t i = group * kVocabGroup; i < last; ++i) {
            if (values[i] >= bound) found.push_back({values[i], static_cast<int32_t>(i)});
        }
    }
    std::partial_sort(found.begin(), found.begin() + count, found.end(), is_before);
    found.resize(static_cast<size_t>(count));
    return found;
}

}  // namespace

std::vector<candidate> find_best(const kernel_table& kernels, const float* values, int64_t v, int64_t count) {
    count = std::min(count, v);
    if (count <= 0) return {};
    if (is_few(count, ceil_div(v, kVocabGroup))) return find_few(kernels, values, v, count);
    std::array<int32_t, kNumBuckets> histogram{};
    for (int64_t i = 0; i < v; ++i) ++histogram[bucket_of(values[i])];
    auto border = static_cast<uint32_t>(kNumBuckets - 1);
    for (int64_t seen = histogram[border]; seen < count; seen += histogram[border]) --border;
    split found = split_at(values, v, border);
    std::sort(found.above.begin(), found.above.end(), is_before);
    found.border.resize(static_cast<size_t>(count) - found.above.size());
    found.above.insert(found.above.end(), found.border.begin(), found.border.end());
    return std::move(found.above);
}

std::vector<candidate> find_mass(const float* values, const float* weights, int64_t v, double share) {
    std::array<double, kNumBuckets> mass{};
    for (int64_t i = 0; i < v; ++i) mass[bucket_of(values[i])] += static_cast<double>(weights[i]);
    double total = 0;
    for (const double m : mass) total += m;
    const double wanted = share * total;
    auto border = static_cast<uint32_t>(kNumBuckets - 1);
    double above = 0;
    while (border > 0 && above + mass[border] < wanted) above += mass[border--];
    split found = split_at(values, v, border);
    double reached = above;
    for (const candidate& token : found.border) {
        const auto weight = static_cast<double>(weights[token.id]);
        if (weight == 0 || (reached >= wanted && !found.above.empty())) break;
        reached += weight;
        found.above.push_back(token);
    }
    return std::move(found.above);
}

}  // namespace octavo
