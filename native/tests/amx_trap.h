// The matrix unit's instructions where there is no such unit: each is undefined there, and the signal handler does what
// it would have done. So the machine code of level "amx" can run, slowly, on any x86-64 with AVX-512 BF16.
//
// Decodes the VEX encodings of LDTILECFG, TILERELEASE, TILEZERO, TILELOADD, TILESTORED and TDPBF16PS; anything else
// ends the program as before. Arithmetic: cpu/amx_tile_emulated.h, written out again, one number at a time.
#pragma once

#include <signal.h>
#include <ucontext.h>
#include <xmmintrin.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace amx_trap {

struct machine {
    uint8_t config[64] = {};
    uint8_t tiles[8][16][64] = {};
    int64_t num_instructions = 0;

    int rows(int tile) const { return config[48 + tile]; }
    int row_bytes(int tile) const { return config[16 + 2 * tile] | config[17 + 2 * tile] << 8; }
};

inline machine unit;

inline void require(bool condition) {
    if (!condition) std::abort();
}

inline float element(const uint8_t* pair, int half) {
    const uint32_t bits = static_cast<uint32_t>(pair[2 * half] | pair[2 * half + 1] << 8) << 16;
    float out;
    std::memcpy(&out, &bits, sizeof out);
    return out;
}

inline void multiply_add(int sums, int a, int b) {
    require(unit.rows(sums) > 0 && unit.rows(sums) == unit.rows(a) && unit.row_bytes(sums) == unit.row_bytes(b));
    require(unit.rows(b) == unit.row_bytes(a) / 4);
    const unsigned before = _mm_getcsr();
    _mm_setcsr(0x9fc0);  // denormals are zero on both sides, to nearest even, no exceptions
    for (int row = 0; row < unit.rows(a); ++row) {
        for (int column = 0; column < unit.row_bytes(b) / 4; ++column) {
            volatile float half[2] = {0, 0};
            for (int k = 0; k < unit.row_bytes(a) / 4; ++k) {
                for (int i = 0; i < 2; ++i) {
                    half[i] = __builtin_fmaf(element(unit.tiles[a][row] + 4 * k, i),
                                             element(unit.tiles[b][k] + 4 * column, i), half[i]);
                }
            }
            float* const sum = reinterpret_cast<float*>(unit.tiles[sums][row]) + column;
            volatile float both = half[0] + half[1];
            *sum = *sum + both;
        }
    }
    _mm_setcsr(before);
}

inline void configure(const uint8_t* config) {
    std::memcpy(unit.config, config, sizeof unit.config);
    std::memset(unit.tiles, 0, sizeof unit.tiles);
    require(config[0] == 1 && config[1] == 0);
    for (int i = 2; i < 16; ++i) require(config[i] == 0);
    for (int tile = 0; tile < 16; ++tile) {
        const int rows = unit.rows(tile), bytes = unit.row_bytes(tile);
        require((rows == 0) == (bytes == 0) && rows <= (tile < 8 ? 16 : 0) && bytes <= 64 && bytes % 4 == 0);
    }
}

// Registers in the order of their numbers in an encoding.
inline int64_t value_of(const ucontext_t& context, int number) {
    static const int kOrder[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                   REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
    return context.uc_mcontext.gregs[kOrder[number]];
}

// A memory operand at `at` (ModRM): base + displacement, and index * scale, which is the stride of a tile.
struct operand {
    uint8_t* base;
    int64_t stride;
    int num_bytes;  // of the encoding, ModRM included
};

inline operand read_operand(const ucontext_t& context, const uint8_t* at, int index_bit, int base_bit) {
    const int mode = at[0] >> 6, low = at[0] & 7;
    operand out{nullptr, 0, 1};
    int base = low;
    if (low == 4) {
        const int index = (at[1] >> 3 & 7) | index_bit;
        base = at[1] & 7;
        if (index != 4) out.stride = value_of(context, index) << (at[1] >> 6);
        out.num_bytes = 2;
    }
    require(mode != 3 && !(mode == 0 && base == 5));
    int32_t displacement = 0;
    if (mode == 1) displacement = static_cast<int8_t>(at[out.num_bytes]);
    if (mode == 2) std::memcpy(&displacement, at + out.num_bytes, 4);
    out.num_bytes += mode == 1 ? 1 : mode == 2 ? 4 : 0;
    out.base = reinterpret_cast<uint8_t*>(value_of(context, base | base_bit)) + displacement;
    return out;
}

inline void on_undefined(int, siginfo_t*, void* state) {
    auto& context = *static_cast<ucontext_t*>(state);
    const auto* const code = reinterpret_cast<const uint8_t*>(context.uc_mcontext.gregs[REG_RIP]);
    // C4, then R X B inverted and the map (2: 0F 38), then W vvvv (inverted) L and the prefix.
    require(code[0] == 0xc4 && (code[1] & 0x1f) == 2 && (code[2] & 0x84) == 0);
    const int prefix = code[2] & 3, opcode = code[3], tile = code[4] >> 3 & 7;
    const bool is_register = code[4] >> 6 == 3;
    const int index_bit = code[1] & 0x40 ? 0 : 8, base_bit = code[1] & 0x20 ? 0 : 8;
    int num_bytes = 5;
    if (opcode == 0x5c && prefix == 2 && is_register) {
        multiply_add(tile, code[4] & 7, ~(code[2] >> 3) & 7);
    } else if (opcode == 0x49 && prefix == 3 && is_register) {
        require(unit.rows(tile) > 0);
        std::memset(unit.tiles[tile], 0, sizeof unit.tiles[tile]);
    } else if (opcode == 0x49 && prefix == 0 && code[4] == 0xc0) {
        std::memset(unit.config, 0, sizeof unit.config);
    } else {
        require(!is_register && (opcode == 0x49 || opcode == 0x4b));
        const operand memory = read_operand(context, code + 4, index_bit, base_bit);
        num_bytes = 4 + memory.num_bytes;
        if (opcode == 0x49) {
            require(prefix == 0 && tile == 0);
            configure(memory.base);
        } else {
            require((prefix == 3 || prefix == 2) && unit.rows(tile) > 0);
            if (prefix == 3) std::memset(unit.tiles[tile], 0, sizeof unit.tiles[tile]);
            for (int row = 0; row < unit.rows(tile); ++row) {
                uint8_t* const place = memory.base + row * memory.stride;
                uint8_t* const own = unit.tiles[tile][row];
                const auto size = static_cast<size_t>(unit.row_bytes(tile));
                prefix == 3 ? std::memcpy(own, place, size) : std::memcpy(place, own, size);
            }
        }
    }
    context.uc_mcontext.gregs[REG_RIP] += num_bytes;
    ++unit.num_instructions;
}

inline void install() {
    struct sigaction action = {};
    action.sa_sigaction = on_undefined;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGILL, &action, nullptr);
}

}  // namespace amx_trap
