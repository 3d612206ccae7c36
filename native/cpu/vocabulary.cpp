// Passes over one row of logits [V]: maximum, log-sum-exp, ranks, masks, tempering, weights, maxima of groups.
//
// Ties go to the lowest id. The log-sum-exp adds exponentials within partitions of kVocabPartition, then the partitions
// in ascending order, so that it does not depend on how a row is shared out.
#include "kernels.h"
#include "math.h"

namespace octavo::OCTAVO_LEVEL {

constexpr float kLargest = 3.40282347e38f;

row_scan scan_row(const float* logits, int64_t v) {
    const float nothing = -__builtin_inff();
    vf best = broadcast(nothing);
    vi best_id = broadcast(0);
    vm is_bad = is_less(best, best);
    vi ids = lane_numbers();
    int64_t i = 0;
    for (; i + kLanes <= v; i += kLanes) {
        const vf value = load(logits + i);
        is_bad = either(is_bad, either(is_nan(value), is_less(broadcast(kLargest), value)));
        const vm is_better = is_less(best, value);
        best = select(is_better, value, best);
        best_id = select(is_better, ids, best_id);
        ids = add(ids, broadcast(kLanes));
    }
    float values[kLanes];
    int32_t value_ids[kLanes];
    store(values, best);
    store(value_ids, best_id);
    row_scan out{nothing, -1, !any(is_bad)};
    for (int lane = 0; lane < kLanes; ++lane) {
        if (values[lane] > out.maximum || (values[lane] == out.maximum && out.argmax > value_ids[lane])) {
            out.maximum = values[lane];
            out.argmax = value_ids[lane];
        }
    }
    for (; i < v; ++i) {
        if (!(logits[i] <= kLargest)) out.is_finite = false;
        if (logits[i] > out.maximum) {
            out.maximum = logits[i];
            out.argmax = i;
        }
    }
    return out;
}

float sum_exp(const float* logits, int64_t v, float maximum) {
    const vf highest = broadcast(maximum);
    float total = 0.0f;
    for (int64_t start = 0; start < v; start += kVocabPartition) {
        const int64_t stop = min_of(start + kVocabPartition, v);
        vf sum = broadcast(0.0f);
        int64_t i = start;
        for (; i + kLanes <= stop; i += kLanes) sum = sum + exp_of(load(logits + i) - highest);
        if (i < stop) {
            float rest[kLanes];
            store(rest, broadcast(-__builtin_inff()));
            std::memcpy(rest, logits + i, sizeof(float) * static_cast<size_t>(stop - i));
            sum = sum + exp_of(load(rest) - highest);
        }
        total += sum_lanes(sum);
    }
    return total;
}

float log_sum_exp(const float* logits, int64_t v, float maximum) {
    float lanes[kLanes];
    store(lanes, log_of(broadcast(sum_exp(logits, v, maximum))));
    return maximum + lanes[0];
}

void group_maxima(const float* logits, int64_t v, float* maxima) {
    for (int64_t start = 0; start < v; start += kVocabGroup) {
        const int64_t count = min_of(kVocabGroup, v - start);
        vf highest = broadcast(-__builtin_inff());
        int64_t i = 0;
        for (; i + kLanes <= count; i += kLanes) highest = maximum(highest, load(logits + start + i));
        float best = max_lane(highest);
        for (; i < count; ++i) best = logits[start + i] > best ? logits[start + i] : best;
        maxima[start / kVocabGroup] = best;
    }
}

int64_t count_above(const float* logits, int64_t v, float value) {
    const vf limit = broadcast(value);
    vi counts = broadcast(0);
    int64_t i = 0;
    for (; i + kLanes <= v; i += kLanes) {
        counts = add(counts, select(is_less(limit, load(logits + i)), broadcast(1), broadcast(0)));
    }
    int32_t lanes[kLanes];
    store(lanes, counts);
    int64_t total = 0;
    for (int lane = 0; lane < kLanes; ++lane) total += lanes[lane];
    for (; i < v; ++i) total += logits[i] > value;
    return total;
}

void divide_row(float* logits, int64_t v, float divisor) {
    int64_t i = 0;
    for (; i + kLanes <= v; i += kLanes) store(logits + i, load(logits + i) / broadcast(divisor));
    for (; i < v; ++i) logits[i] /= divisor;
}

void mask_row(const int32_t* bits, int64_t v, float* logits) {
    const float nothing = -__builtin_inff();
    const vi zero = broadcast(0);
    int32_t lane_bits[kLanes];  // bit j for lane j
    for (int lane = 0; lane < kLanes; ++lane) lane_bits[lane] = 1 << lane;
    const vi own_bit = load(lane_bits);
    for (int64_t start = 0; start < v; start += 32) {
        const auto word = static_cast<uint32_t>(bits[start / 32]);
        const int64_t stop = min_of(start + 32, v);
        if (word == 0xffffffffu) continue;
        int64_t i = start;
        for (; i + kLanes <= stop; i += kLanes) {
            const vi part = broadcast(static_cast<int32_t>(word >> (i - start)));
            const vm is_allowed = is_less(zero, bit_and(part, own_bit));
            store(logits + i, select(is_allowed, load(logits + i), broadcast(nothing)));
        }
        for (; i < stop; ++i) {
            if (!(word >> (i - start) & 1)) logits[i] = nothing;
        }
    }
}

void weigh_row(const float* logits, int64_t v, float maximum, float* weights) {
    for (int64_t i = 0; i < v; i += kLanes) {
        const int count = static_cast<int>(min_of(kLanes, v - i));
        store_first(weights + i, exp_of(load_first(logits + i, count) - broadcast(maximum)), count);
    }
}

}  // namespace octavo::OCTAVO_LEVEL
