// What the tests of this folder share: numbers to compute with, comparisons, and the tests' names.
//
// Every result that is compared with a reference joins a fingerprint of all results' bits. Machines of one level do the
// same IEEE operations in the same order, so their fingerprints are equal.
#pragma once

#include <string>
#include <vector>

#include "octavo/kernel_table.h"

namespace octavo::checks {

struct tolerance {
    double relative, absolute;
};
// Of float32 sums over some hundred terms near 1; of results that are rounded to bfloat16.
constexpr tolerance kSums{1e-5, 3e-5};
constexpr tolerance kRounded{1.0 / 256, 3e-5};

class report {
  public:
    // |found - expected| <= absolute + relative * |expected|, number by number; NaN equals NaN.
    void near(const std::string& what, const std::vector<float>& found, const std::vector<double>& expected,
              tolerance allowed);
    // Bit by bit.
    void same(const std::string& what, const std::vector<float>& found, const std::vector<float>& expected);
    void holds(const std::string& what, bool is_true);
    void mark(const std::vector<float>& found);  // for the fingerprint

    int64_t num_failures() const { return num_failures_; }
    int64_t num_compared() const { return num_compared_; }
    uint64_t fingerprint() const { return fingerprint_; }

  private:
    void fail(const std::string& what);

    int64_t num_failures_ = 0, num_compared_ = 0;
    uint64_t fingerprint_ = 0xcbf29ce484222325u;
};

// Numbers in an element type, as kernels take and leave them.
class numbers {
  public:
    numbers(dtype type, int64_t count) : type_(type), bytes_(static_cast<size_t>(count * item_bytes(type))) {}
    numbers(dtype type, const std::vector<float>& values);  // rounded

    void* data() { return bytes_.data(); }
    const void* data() const { return bytes_.data(); }
    std::vector<float> values() const;

  private:
    dtype type_;
    std::vector<char> bytes_;
};

// Numbers between -2 and 2, most of them near 0, the same on every machine.
std::vector<float> draw(int64_t count, unsigned seed, float scale = 1.0f);
std::vector<float> rounded(dtype type, const std::vector<float>& values);
std::vector<float> part(const std::vector<float>& values, int64_t first, int64_t count);
double activate(activation kind, double x);
const char* name_of(dtype type);

constexpr dtype kTypes[] = {dtype::float32, dtype::bfloat16};

void check_linear(report& out, const kernel_table& kernels);
void check_rows(report& out, const kernel_table& kernels);
void check_rotary(report& out, const kernel_table& kernels);
void check_attention(report& out, const kernel_table& kernels);
void check_vocabulary(report& out, const kernel_table& kernels);
void check_draws(report& out, const kernel_table& kernels);
void check_backend(report& out, const char* isa);
void check_decoder(report& out, const char* isa);
void check_storage(report& out);

}  // namespace octavo::checks
