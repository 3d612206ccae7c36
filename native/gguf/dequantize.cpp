#include "octavo/dequantize.h"

#include <stdexcept>
#include <string>

#include "block_formats.h"

namespace octavo {
namespace {

// Elements decoded at a time: the float32 values stay in the first cache level until they are rounded.
constexpr size_t chunk_size = 256;

template <typename Format>
void expand(const uint8_t* data, size_t num_blocks, float* out) {
    for (size_t i = 0; i < num_blocks; ++i) Format::decode(data + i * Format::bytes, out + i * Format::size);
}

template <typename Format>
void expand(const uint8_t* data, size_t num_blocks, bfloat16* out) {
    constexpr size_t blocks_per_chunk = chunk_size / Format::size;
    float chunk[chunk_size];
    for (size_t i = 0; i < num_blocks; i += blocks_per_chunk) {
        const size_t count = num_blocks - i < blocks_per_chunk ? num_blocks - i : blocks_per_chunk;
        expand<Format>(data + i * Format::bytes, count, chunk);
        for (size_t j = 0; j < count * Format::size; ++j) out[i * Format::size + j] = narrow_scalar(chunk[j]);
    }
}

template <typename Format, typename Out>
void check_and_expand(std::string_view format, const uint8_t* data, size_t num_bytes, Out* out, size_t num_elements) {
    const size_t num_blocks = num_bytes / Format::bytes;
    if (num_bytes % Format::bytes != 0)
        throw std::invalid_argument(std::string(format) + ": " + std::to_string(num_bytes) +
                                    " bytes are no whole blocks of " + std::to_string(Format::bytes));
    if (num_elements != num_blocks * Format::size)
        throw std::invalid_argument(std::string(format) + ": the output has " + std::to_string(num_elements) +
                                    " elements, the blocks hold " + std::to_string(num_blocks * Format::size));
    expand<Format>(data, num_blocks, out);
}

template <typename Out>
void dispatch(std::string_view format, const uint8_t* data, size_t num_bytes, Out* out, size_t num_elements) {
    using expander = void (*)(std::string_view, const uint8_t*, size_t, Out*, size_t);
    struct entry {
        std::string_view name;
        expander run;
    };
    static constexpr entry table[] = {
        {"float32", check_and_expand<gguf::plain_float32, Out>},
        {"float16", check_and_expand<gguf::plain_float16, Out>},
        {"bfloat16", check_and_expand<gguf::plain_bfloat16, Out>},
        {"q4_0", check_and_expand<gguf::q4_0, Out>},
        {"q4_1", check_and_expand<gguf::q4_1, Out>},
        {"q5_0", check_and_expand<gguf::q5_0, Out>},
        {"q5_1", check_and_expand<gguf::q5_1, Out>},
        {"q8_0", check_and_expand<gguf::q8_0, Out>},
        {"q4_k", check_and_expand<gguf::q4_k, Out>},
        {"q5_k", check_and_expand<gguf::q5_k, Out>},
        {"q6_k", check_and_expand<gguf::q6_k, Out>},
    };
    for (const entry& candidate : table)
        if (candidate.name == format) return candidate.run(format, data, num_bytes, out, num_elements);
    throw std::invalid_argument("unknown storage format " + std::string(format));
}

}  // namespace

void dequantize(std::string_view format, const uint8_t* data, size_t num_bytes, float* out, size_t num_elements) {
    dispatch(format, data, num_bytes, out, num_elements);
}

void dequantize(std::string_view format, const uint8_t* data, size_t num_bytes, bfloat16* out, size_t num_elements) {
    dispatch(format, data, num_bytes, out, num_elements);
}

}  // namespace octavo
