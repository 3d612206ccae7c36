// One struct a storage format: its block size and how a block is decoded. Source: the GGUF specification (ggml).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "octavo/bfloat16.h"

namespace octavo::gguf {

template <typename T>
inline T load(const uint8_t* data) {
    T value;
    std::memcpy(&value, data, sizeof value);
    return value;
}

// float16 -> float32, exact, without relying on the processor's treatment of subnormals.
inline float widen_half(uint16_t half) {
    const uint32_t body = half & 0x7fffu;
    const uint32_t exponent = body & 0x7c00u;
    const uint32_t normal = (body << 13) + (112u << 23);
    const uint32_t infinite = (body << 13) | 0x7f800000u;
    const float tiny = static_cast<float>(static_cast<int32_t>(body)) * 0x1p-24f;
    uint32_t tiny_bits;
    std::memcpy(&tiny_bits, &tiny, sizeof tiny_bits);
    uint32_t bits = exponent == 0x7c00u ? infinite : normal;
    bits = exponent == 0 ? tiny_bits : bits;
    bits |= static_cast<uint32_t>(half & 0x8000u) << 16;
    float out;
    std::memcpy(&out, &bits, sizeof out);
    return out;
}

inline float half_at(const uint8_t* data) {
    return widen_half(load<uint16_t>(data));
}

struct plain_float32 {
    static constexpr size_t size = 1, bytes = 4;
    static void decode(const uint8_t* block, float* out) { *out = load<float>(block); }
};

struct plain_float16 {
    static constexpr size_t size = 1, bytes = 2;
    static void decode(const uint8_t* block, float* out) { *out = half_at(block); }
};

struct plain_bfloat16 {
    static constexpr size_t size = 1, bytes = 2;
    static void decode(const uint8_t* block, float* out) { *out = widen_scalar(load<bfloat16>(block)); }
};

struct q4_0 {
    static constexpr size_t size = 32, bytes = 18;
    static void decode(const uint8_t* block, float* out) {
        const float step = half_at(block);
        for (int i = 0; i < 16; ++i) {
            out[i] = step * static_cast<float>((block[2 + i] & 15) - 8);
            out[i + 16] = step * static_cast<float>((block[2 + i] >> 4) - 8);
        }
    }
};

struct q4_1 {
    static constexpr size_t size = 32, bytes = 20;
    static void decode(const uint8_t* block, float* out) {
        const float step = half_at(block), base = half_at(block + 2);
        for (int i = 0; i < 16; ++i) {
            out[i] = step * static_cast<float>(block[4 + i] & 15) + base;
            out[i + 16] = step * static_cast<float>(block[4 + i] >> 4) + base;
        }
    }
};

struct q5_0 {
    static constexpr size_t size = 32, bytes = 22;
    static void decode(const uint8_t* block, float* out) {
        const float step = half_at(block);
        const uint32_t high = load<uint32_t>(block + 2);
        for (int i = 0; i < 16; ++i) {
            const int low_bit = static_cast<int>(high >> i & 1) << 4, high_bit = static_cast<int>(high >> (i + 16) & 1)
                                                                                 << 4;
            out[i] = step * static_cast<float>(((block[6 + i] & 15) | low_bit) - 16);
            out[i + 16] = step * static_cast<float>(((block[6 + i] >> 4) | high_bit) - 16);
        }
    }
};

struct q5_1 {
    static constexpr size_t size = 32, bytes = 24;
    static void decode(const uint8_t* block, float* out) {
        const float step = half_at(block), base = half_at(block + 2);
        const uint32_t high = load<uint32_t>(block + 4);
        for (int i = 0; i < 16; ++i) {
            const int low_bit = static_cast<int>(high >> i & 1) << 4, high_bit = static_cast<int>(high >> (i + 16) & 1)
                                                                                 << 4;
            out[i] = step * static_cast<float>((block[8 + i] & 15) | low_bit) + base;
            out[i + 16] = step * static_cast<float>((block[8 + i] >> 4) | high_bit) + base;
        }
    }
};

struct q8_0 {
    static constexpr size_t size = 32, bytes = 34;
    static void decode(const uint8_t* block, float* out) {
        const float step = half_at(block);
        for (int i = 0; i < 32; ++i) out[i] = step * static_cast<float>(static_cast<int8_t>(block[2 + i]));
    }
};

// Scale and minimum number j of a K block: six bits each in 12 bytes; the upper bits of the last four hide in the
// first.
struct scale_and_minimum {
    float scale, minimum;
    scale_and_minimum(const uint8_t* packed, int j) {
        const int s = j < 4 ? packed[j] & 63 : (packed[j + 4] & 15) | (packed[j - 4] >> 6 << 4);
        const int m = j < 4 ? packed[j + 4] & 63 : (packed[j + 4] >> 4) | (packed[j] >> 6 << 4);
        scale = static_cast<float>(s);
        minimum = static_cast<float>(m);
    }
};

struct q4_k {
    static constexpr size_t size = 256, bytes = 144;
    static void decode(const uint8_t* block, float* out) {
        const float d = half_at(block), dmin = half_at(block + 2);
        for (int j = 0; j < 8; ++j) {
            const scale_and_minimum pair(block + 4, j);
            const float step = d * pair.scale, base = dmin * pair.minimum;
            const uint8_t* quants = block + 16 + j / 2 * 32;
            const int shift = j % 2 * 4;
            for (int i = 0; i < 32; ++i) out[j * 32 + i] = step * static_cast<float>(quants[i] >> shift & 15) - base;
        }
    }
};

struct q5_k {
    static constexpr size_t size = 256, bytes = 176;
    static void decode(const uint8_t* block, float* out) {
        const float d = half_at(block), dmin = half_at(block + 2);
        for (int j = 0; j < 8; ++j) {
            const scale_and_minimum pair(block + 4, j);
            const float step = d * pair.scale, base = dmin * pair.minimum;
            const uint8_t *high = block + 16, *quants = block + 48 + j / 2 * 32;
            const int shift = j % 2 * 4;
            for (int i = 0; i < 32; ++i) {
                const int value = (quants[i] >> shift & 15) | (high[i] >> j & 1) << 4;
                out[j * 32 + i] = step * static_cast<float>(value) - base;
            }
        }
    }
};

struct q6_k {
    static constexpr size_t size = 256, bytes = 210;
    static void decode(const uint8_t* block, float* out) {
        const float d = half_at(block + 208);
        for (int j = 0; j < 16; ++j) {  // sixteen values a scale; eight scales a half of the block
            const int half = j / 8, quarter = j % 8 / 2, first = j % 2 * 16;
            const float step = d * static_cast<float>(static_cast<int8_t>(block[192 + j]));
            const uint8_t* low = block + half * 64 + quarter % 2 * 32 + first;
            const uint8_t* high = block + 128 + half * 32 + first;
            const int low_shift = quarter / 2 * 4, high_shift = quarter * 2;
            for (int i = 0; i < 16; ++i) {
                const int value = (low[i] >> low_shift & 15) | (high[i] >> high_shift & 3) << 4;
                out[j * 16 + i] = step * static_cast<float>(value - 32);
            }
        }
    }
};

}  // namespace octavo::gguf
