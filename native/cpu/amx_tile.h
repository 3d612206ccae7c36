// The matrix unit: eight tiles of up to 16 rows of 64 bytes, and products of two of them added to a third.
//
// The only file that names the unit's instructions. Tests build the same kernels around amx_tile_emulated.h instead
// (OCTAVO_EMULATED_TILES), so that their logic runs where there is no such unit.
//
// A thread's tiles exist while a tile_unit does. It is one kernel call long: threads that wait hold no tile state,
// which the system would otherwise save and load (8 KB) at each switch, and which keeps a core from deeper sleep.
//
// The instructions are written out because the compiler's own wrappers tell it too little: GCC 12's
// `_tile_loadconfig` declares 8 of the 64 bytes of a configuration as read, and its `_tile_loadd` none of a tile's, so
// that at -O2 the stores which fill them may go. Source: Intel 64 Software Developer's Manual, volume 2, "Intel AMX".
#pragma once

#include "simd.h"

namespace octavo::OCTAVO_LEVEL {

constexpr int64_t kTileRows = 16;
constexpr int64_t kTileRowBytes = 64;  // 32 bfloat16 of a row of A, 16 columns of pairs of B, 16 sums of C

// Rows and bytes a row of each tile, as LDTILECFG reads them. Tiles that are not set cannot be used.
struct alignas(64) tile_config {
    uint8_t palette = 1;
    uint8_t start_row = 0;
    uint8_t reserved[14] = {};
    uint16_t row_bytes[16] = {};
    uint8_t num_rows[16] = {};

    void set(int tile, int64_t rows) {
        num_rows[tile] = static_cast<uint8_t>(rows);
        row_bytes[tile] = kTileRowBytes;
    }
};
static_assert(sizeof(tile_config) == 64);

#if !defined(OCTAVO_EMULATED_TILES)

class tile_unit {
  public:
    explicit tile_unit(const tile_config& config) { __asm__ volatile("ldtilecfg %0" ::"m"(config) : "memory"); }
    ~tile_unit() { __asm__ volatile("tilerelease" ::: "memory"); }
    tile_unit(const tile_unit&) = delete;
    tile_unit& operator=(const tile_unit&) = delete;

    template <int kTile>
    __attribute__((always_inline)) void zero() {
        __asm__ volatile("tilezero %%tmm%c0" ::"i"(kTile));
    }
    // Rows of 64 bytes, `stride` bytes apart. "memory": what was written there before is in place.
    template <int kTile>
    __attribute__((always_inline)) void load(const void* source, int64_t stride) {
        __asm__ volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(source), "r"(stride), "i"(kTile) : "memory");
    }
    template <int kTile>
    __attribute__((always_inline)) void store(void* target, int64_t stride) {
        __asm__ volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(target), "r"(stride), "i"(kTile) : "memory");
    }
    // Sums += A * B: rows of A are pairs of bfloat16 along K, rows of B one pair of each of 16 columns.
    template <int kSums, int kA, int kB>
    __attribute__((always_inline)) void multiply_add() {
        __asm__ volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSums), "i"(kA), "i"(kB));
    }
};

#endif

}  // namespace octavo::OCTAVO_LEVEL

#if defined(OCTAVO_EMULATED_TILES)
#include "amx_tile_emulated.h"
#endif
