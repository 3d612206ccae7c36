// probe of the matrix unit: products of tiles that stay where they are.
#include "amx_product.h"
#include "kernels.h"

namespace octavo::OCTAVO_LEVEL {

// Returns the operations done.
int64_t multiply_in_registers_by_tiles(int64_t num_turns, float* in_out) {
    alignas(64) static const char kZeros[kTileRows * kTileRowBytes] = {};
    tile_unit unit(config_for(kAmxRows));
    clear_sums<2, 2>(unit);
    unit.load<kTileA>(kZeros, kTileRowBytes);
    unit.load<kTileA + 1>(kZeros, kTileRowBytes);
    unit.load<kTileB>(kZeros, kTileRowBytes);
    unit.load<kTileB + 1>(kZeros, kTileRowBytes);
    for (int64_t turn = 0; turn < num_turns; ++turn) {
        unit.multiply_add<0, kTileA, kTileB>();
        unit.multiply_add<1, kTileA, kTileB + 1>();
        unit.multiply_add<2, kTileA + 1, kTileB>();
        unit.multiply_add<3, kTileA + 1, kTileB + 1>();
    }
    alignas(64) float sums[kAmxRows][kPanelColumns];
    store_sums<2, 2>(unit, sums[0], kPanelColumns);
    *in_out = sums[0][0];
    return num_turns * kAmxRows * kPanelColumns * kStepElements * 2;
}

}  // namespace octavo::OCTAVO_LEVEL
