// Products of up to 32 rows of A with 32 columns of B on the matrix unit: 2 x 2 tiles of sums, fed by two of A and two
// of B.
//
// One text: an element of the result is a chain of TDPBF16PS over ascending steps of 32 elements of K that begins at 0.
// Within the unit a row knows nothing of the other rows of its tile (measured on a Xeon: a tile of one row gives the
// bits of the same row in a tile of 16), so one row and many run through the same instructions.
#pragma once

#include "amx_tile.h"
#include "octavo/kernel_table.h"

namespace octavo::OCTAVO_LEVEL {

constexpr int64_t kAmxRows = 2 * kTileRows;            // of A
constexpr int64_t kStepElements = kTileRowBytes / 2;   // of K
constexpr int64_t kStepUnits = kTileRowBytes / 4;      // pairs
constexpr int64_t kPanelRowBytes = 4 * kPanelColumns;  // of B: one pair of each of 32 columns
constexpr int kTileA = 4, kTileB = 6;                  // sums of row tile r and column tile c: tile 2 * r + c

// Where the tiles of an operand lie. A's second tile begins 16 rows behind the first, B's 64 bytes behind.
struct tile_operand {
    const char* data;
    int64_t row_bytes;   // from one row to the next
    int64_t step_bytes;  // from one step of K to the next
};

static inline int64_t rows_of_tile(int64_t rows, int tile) {
    return max_of(0, min_of(kTileRows, rows - tile * kTileRows));
}

static inline tile_config config_for(int64_t rows) {
    tile_config config;
    for (int tile = 0; tile < 2; ++tile) {
        config.set(kTileB + tile, kTileRows);
        const int64_t count = rows_of_tile(rows, tile);
        if (count == 0) continue;
        config.set(kTileA + tile, count);
        config.set(2 * tile, count);
        config.set(2 * tile + 1, count);
    }
    return config;
}

template <int kRowTiles, int kColumnTiles>
__attribute__((always_inline)) static inline void clear_sums(tile_unit& unit) {
    unit.zero<0>();
    if constexpr (kColumnTiles > 1) unit.zero<1>();
    if constexpr (kRowTiles > 1) unit.zero<2>();
    if constexpr (kRowTiles > 1 && kColumnTiles > 1) unit.zero<3>();
}

// kPrefetchBytes: of B to ask the memory for ahead of use; 0: none.
template <int kRowTiles, int kColumnTiles, int kPrefetchBytes = 0>
__attribute__((always_inline)) static inline void multiply_steps(tile_unit& unit, tile_operand a, tile_operand b,
                                                                 int64_t steps) {
    for (int64_t step = 0; step < steps; ++step) {
        if constexpr (kPrefetchBytes > 0) {
            for (int64_t row = 0; row < kTileRows; ++row) {
                __builtin_prefetch(b.data + row * b.row_bytes + kPrefetchBytes);
                __builtin_prefetch(b.data + row * b.row_bytes + kTileRowBytes + kPrefetchBytes);
            }
        }
        unit.load<kTileB>(b.data, b.row_bytes);
        unit.load<kTileA>(a.data, a.row_bytes);
        unit.multiply_add<0, kTileA, kTileB>();
        if constexpr (kColumnTiles > 1) {
            unit.load<kTileB + 1>(b.data + kTileRowBytes, b.row_bytes);
            unit.multiply_add<1, kTileA, kTileB + 1>();
        }
        if constexpr (kRowTiles > 1) {
            unit.load<kTileA + 1>(a.data + kTileRows * a.row_bytes, a.row_bytes);
            unit.multiply_add<2, kTileA + 1, kTileB>();
            if constexpr (kColumnTiles > 1) unit.multiply_add<3, kTileA + 1, kTileB + 1>();
        }
        a.data += a.step_bytes;
        b.data += b.step_bytes;
    }
}

// out [rows][row_floats]: the first 16 or 32 columns.
template <int kRowTiles, int kColumnTiles>
__attribute__((always_inline)) static inline void store_sums(tile_unit& unit, float* out, int64_t row_floats) {
    const int64_t stride = row_floats * static_cast<int64_t>(sizeof(float));
    unit.store<0>(out, stride);
    if constexpr (kColumnTiles > 1) unit.store<1>(out + kTileRows, stride);
    if constexpr (kRowTiles > 1) unit.store<2>(out + kTileRows * row_floats, stride);
    if constexpr (kRowTiles > 1 && kColumnTiles > 1) unit.store<3>(out + kTileRows * row_floats + kTileRows, stride);
}

// A step of K that is not full: zeros behind its units, so that the unit adds nothing for them.
struct alignas(64) padded_step {
    char a[kAmxRows][kTileRowBytes];
    char b[kTileRows][kPanelRowBytes];
};

}  // namespace octavo::OCTAVO_LEVEL
