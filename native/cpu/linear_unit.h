// Which row blocks and panels a unit of work of a product covers; the host cuts them (host/linear.cpp).
#pragma once

#include "octavo/kernel_table.h"
#include "simd.h"

namespace octavo::OCTAVO_LEVEL {

struct linear_unit {
    int64_t first_panel, last_panel;
    int64_t first_block, last_block;
};

static inline linear_unit unit_of_product(const linear_params& p, int64_t unit) {
    const int64_t num_panels = ceil_div(p.n, kPanelColumns);
    const int64_t panel_groups = ceil_div(num_panels, p.panels_per_unit);
    const int64_t first_panel = unit % panel_groups * p.panels_per_unit;
    const int64_t first_block = unit / panel_groups * p.blocks_per_unit;
    return {first_panel, min_of(first_panel + p.panels_per_unit, num_panels), first_block,
            min_of(first_block + p.blocks_per_unit, p.num_blocks)};
}

}  // namespace octavo::OCTAVO_LEVEL
