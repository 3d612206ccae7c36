#include "checks.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>

namespace octavo::checks {

void report::fail(const std::string& what) {
    if (++num_failures_ <= 20) std::fprintf(stderr, "failed: %s\n", what.c_str());
}

void report::holds(const std::string& what, bool is_true) {
    ++num_compared_;
    if (!is_true) fail(what);
}

void report::mark(const std::vector<float>& found) {
    for (const float value : found) {
        uint32_t bits;
        std::memcpy(&bits, &value, sizeof bits);
        if (std::isnan(value)) bits = 0x7fc00000u;  // which NaN it is, is the machine's choice
        fingerprint_ = (fingerprint_ ^ bits) * 0x100000001b3u;
    }
}

void report::near(const std::string& what, const std::vector<float>& found, const std::vector<double>& expected,
                  tolerance allowed) {
    mark(found);
    if (found.size() != expected.size()) return fail(what + ": another number of results");
    for (size_t i = 0; i < found.size(); ++i) {
        ++num_compared_;
        const double value = found[i], wanted = expected[i];
        if (value == wanted || (std::isnan(value) && std::isnan(wanted))) continue;
        if (std::fabs(value - wanted) <= allowed.absolute + allowed.relative * std::fabs(wanted)) continue;
        char numbers[100];
        std::snprintf(numbers, sizeof numbers, ": result %zu is %.9g, not %.9g", i, value, wanted);
        fail(what + numbers);
    }
}

void report::same(const std::string& what, const std::vector<float>& found, const std::vector<float>& expected) {
    if (found.size() != expected.size()) return fail(what + ": another number of results");
    for (size_t i = 0; i < found.size(); ++i) {
        ++num_compared_;
        if (std::memcmp(&found[i], &expected[i], sizeof(float)) != 0) {
            fail(what + ": bits of result " + std::to_string(i) + " differ");
        }
    }
}

numbers::numbers(dtype type, const std::vector<float>& values) : numbers(type, static_cast<int64_t>(values.size())) {
    for (size_t i = 0; i < values.size(); ++i) {
        if (type == dtype::float32) {
            std::memcpy(bytes_.data() + 4 * i, &values[i], 4);
        } else {
            const bfloat16 value = narrow_scalar(values[i]);
            std::memcpy(bytes_.data() + 2 * i, &value, 2);
        }
    }
}

std::vector<float> numbers::values() const {
    const auto size = static_cast<size_t>(item_bytes(type_));
    std::vector<float> out(bytes_.size() / size);
    for (size_t i = 0; i < out.size(); ++i) {
        if (type_ == dtype::float32) {
            std::memcpy(&out[i], bytes_.data() + 4 * i, 4);
        } else {
            bfloat16 value;
            std::memcpy(&value, bytes_.data() + 2 * i, 2);
            out[i] = widen_scalar(value);
        }
    }
    return out;
}

// The library's distributions differ from machine to machine; sums of the generator's integers do not.
std::vector<float> draw(int64_t count, unsigned seed, float scale) {
    std::mt19937 generator(seed);
    std::vector<float> out(static_cast<size_t>(count));
    for (float& value : out) {
        int64_t sum = 0;
        for (int i = 0; i < 4; ++i) sum += static_cast<int64_t>(generator() >> 8);
        value = static_cast<float>(sum - (int64_t{1} << 25)) * 0x1p-24f * scale;
    }
    return out;
}

std::vector<float> rounded(dtype type, const std::vector<float>& values) {
    return numbers(type, values).values();
}

std::vector<float> part(const std::vector<float>& values, int64_t first, int64_t count) {
    return {values.begin() + first, values.begin() + first + count};
}

double activate(activation kind, double x) {
    if (kind == activation::silu) return x / (1 + std::exp(-x));
    return x / 2 * (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
}

const char* name_of(dtype type) {
    return type == dtype::float32 ? "float32" : "bfloat16";
}

}  // namespace octavo::checks
