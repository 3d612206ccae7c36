// The best of many logits without sorting them all.
//
// Order everywhere: higher value first, then lower id. A few best are found through the maxima of groups of logits: the
// count-th highest maximum is a bound that at least `count` logits reach, and groups below it are passed over. Many
// best are found through a histogram of the upper bits of the values; only the bucket that the border falls into is
// sorted.
#pragma once

#include <cstdint>
#include <vector>

#include "octavo/kernel_table.h"

namespace octavo {

struct candidate {
    float value;
    int32_t id;
};

static inline bool is_before(const candidate& a, const candidate& b) {
    return a.value > b.value || (a.value == b.value && a.id < b.id);
}

// The `count` best of values [v], best first. -inf ranks like any other value.
std::vector<candidate> find_best(const kernel_table& kernels, const float* values, int64_t v, int64_t count);

// The smallest set of best tokens whose weights reach `share` of the sum of all, in no particular order. weights [v] >=
// 0 must fall with the values; tokens of weight 0 are never taken.
std::vector<candidate> find_mass(const float* values, const float* weights, int64_t v, double share);

}  // namespace octavo
