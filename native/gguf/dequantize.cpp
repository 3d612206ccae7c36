#include "octavo/dequantize.h"

#include <stdexcept>
#include <string>

#include "block_formats.h"

namespace octavo {
namespace {

template <typename Format>
void expand(const uint8_t* data, size_t num_blocks, float* out) {
    for (size_t i = 0; i < num_blocks; ++i) Format::decode(data + i * Format::bytes, out + i * Format::size);
}

template <typename Format>
void check_and_expand(std::string_view format, const uint8_t* data, size_t num_bytes, float* out, size_t num_elements) {
    const size_t num_blocks = num_bytes / Format::bytes;
    if (num_bytes % Format::bytes != 0)
        throw std::invalid_argument(std::string(format) + ": " + std::to_string(num_bytes) +
                                    " bytes are no whole blocks of " + std::to_string(Format::bytes));
    if (num_elements != num_blocks * Format::size)
        throw std::invalid_argument(std::string(format) + ": the output has " + std::to_string(num_elements) +
                                    " elements, the blocks hold " + std::to_string(num_blocks * Format::size));
    expand<Format>(data, num_blocks, out);
}

}  // namespace

void dequantize(std::string_view format, const uint8_t* data, size_t num_bytes, float* out, size_t num_elements) {
    using expander = void (*)(std::string_view, const uint8_t*, size_t, float*, size_t);
    struct entry {
        std::string_view name;
        expander run;
    };
    static constexpr entry table[] = {
        {"float32", check_and_expand<gguf::plain_float32>},
        {"float16", check_and_expand<gguf::plain_float16>},
        {"bfloat16", check_and_expand<gguf::plain_bfloat16>},
        {"q4_0", check_and_expand<gguf::q4_0>},
        {"q4_1", check_and_expand<gguf::q4_1>},
        {"q5_0", check_and_expand<gguf::q5_0>},
        {"q5_1", check_and_expand<gguf::q5_1>},
        {"q8_0", check_and_expand<gguf::q8_0>},
        {"q4_k", check_and_expand<gguf::q4_k>},
        {"q5_k", check_and_expand<gguf::q5_k>},
        {"q6_k", check_and_expand<gguf::q6_k>},
    };
    for (const entry& candidate : table)
        if (candidate.name == format) return candidate.run(format, data, num_bytes, out, num_elements);
    throw std::invalid_argument("unknown storage format " + std::string(format));
}

}  // namespace octavo
