// For tests: tile_unit of amx_tile.h without the unit. Built as level "amx_emulated", which no option can select.
//
// Arithmetic of TDPBF16PS as the manual writes it, for each row and column: two sums, of the products of the lower and
// of the upper elements of the pairs, each a chain of fused multiply-adds over ascending k that begins at 0; their sum
// is added to C. Rounded to nearest even at each step, denormal operands and results are 0, MXCSR does not count.
// What the unit faults on (a tile that is not configured, shapes that do not fit) is a trap here.
#pragma once

#include <immintrin.h>

namespace octavo::OCTAVO_LEVEL {

static_assert(kLanes == kTileRows, "a row of sums is one vector");

struct alignas(64) emulated_tile {
    int32_t rows[kTileRows][kTileRowBytes / 4];
};

// Not inline: no operation may move across the switch of the rounding mode.
__attribute__((noinline)) static void add_product(int num_rows, const emulated_tile& a, const emulated_tile& b,
                                                  emulated_tile& sums) {
    const vi upper = broadcast(static_cast<int32_t>(0xffff0000u));
    for (int row = 0; row < num_rows; ++row) {
        vf lower_sum = broadcast(0.0f), upper_sum = broadcast(0.0f);
        for (int k = 0; k < kTileRows; ++k) {
            const vi x = broadcast(a.rows[row][k]), w = load(b.rows[k]);
            lower_sum = multiply_add(from_bits(shift_left<16>(x)), from_bits(shift_left<16>(w)), lower_sum);
            upper_sum = multiply_add(from_bits(bit_and(x, upper)), from_bits(bit_and(w, upper)), upper_sum);
        }
        auto* const out = reinterpret_cast<float*>(sums.rows[row]);
        store(out, load(out) + (lower_sum + upper_sum));
    }
}

class tile_unit {
  public:
    explicit tile_unit(const tile_config& config) : config_(config) {
        require(config.palette == 1 && config.start_row == 0);
        for (int i = 0; i < 16; ++i) {
            require(config.num_rows[i] <= (i < kNumTiles ? kTileRows : 0));
            require(config.row_bytes[i] == (config.num_rows[i] > 0 ? kTileRowBytes : 0));
        }
    }
    tile_unit(const tile_unit&) = delete;
    tile_unit& operator=(const tile_unit&) = delete;

    template <int kTile>
    void zero() {
        require(config_.num_rows[kTile] > 0);
        tiles_[kTile] = {};
    }
    template <int kTile>
    void load(const void* source, int64_t stride) {
        zero<kTile>();
        for (int row = 0; row < config_.num_rows[kTile]; ++row) {
            std::memcpy(tiles_[kTile].rows[row], static_cast<const char*>(source) + row * stride, kTileRowBytes);
        }
    }
    template <int kTile>
    void store(void* target, int64_t stride) {
        require(config_.num_rows[kTile] > 0);
        for (int row = 0; row < config_.num_rows[kTile]; ++row) {
            std::memcpy(static_cast<char*>(target) + row * stride, tiles_[kTile].rows[row], kTileRowBytes);
        }
    }
    template <int kSums, int kA, int kB>
    void multiply_add() {
        static_assert(kSums != kA && kSums != kB && kA != kB);
        require(config_.num_rows[kSums] > 0 && config_.num_rows[kSums] == config_.num_rows[kA]);
        require(config_.num_rows[kB] == config_.row_bytes[kA] / 4);
        const unsigned before = _mm_getcsr();
        _mm_setcsr(kFlushDenormals);
        add_product(config_.num_rows[kA], tiles_[kA], tiles_[kB], tiles_[kSums]);
        _mm_setcsr(before);
    }

  private:
    static constexpr int kNumTiles = 8;
    static constexpr unsigned kFlushDenormals = 0x9fc0;  // results and operands; no exceptions; to nearest even

    static void require(bool condition) {
        if (!condition) __builtin_trap();
    }

    tile_config config_;
    emulated_tile tiles_[kNumTiles] = {};
};

}  // namespace octavo::OCTAVO_LEVEL
