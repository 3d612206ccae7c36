// Expand stored tensors (plain and GGUF block formats) to float32.
// Shapes: any number of whole blocks; elements of a block are consecutive. Scalar loops that compilers vectorize.
// Numerics: float32, product first, then sum or difference; equal bit for bit to loading/dequantize_reference.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace octavo {

// `format` is the name of a storage format (loading/storage.py). Throws std::invalid_argument when it is unknown, when
// `num_bytes` is not a whole number of blocks, or when `num_elements` is not what those blocks hold.
void dequantize(std::string_view format, const uint8_t* data, size_t num_bytes, float* out, size_t num_elements);

}  // namespace octavo
