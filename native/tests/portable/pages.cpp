#include "pages.h"

namespace octavo::checks {

pages::pages(const kernel_table& kernels, dtype type, const page_shape& shape, int64_t num_blocks)
    : kernels_(kernels), type_(static_cast<int>(type)), shape_(shape) {
    cache_layout& l = layout_;
    l.block_size = shape.block_size;
    l.num_kv_heads = shape.num_kv_heads;
    l.head_dim = shape.head_dim;
    l.head_dim_padded = ceil_div(shape.head_dim, 32) * 32;
    l.num_layers = shape.num_layers;
    l.k_head_bytes = shape.block_size * shape.head_dim * item_bytes(type);
    l.v_head_bytes = shape.block_size * l.head_dim_padded * item_bytes(type);
    l.k_bytes = shape.num_kv_heads * l.k_head_bytes;
    l.layer_bytes = l.k_bytes + shape.num_kv_heads * l.v_head_bytes;
    l.block_bytes = shape.num_layers * l.layer_bytes;
    memory_.resize(static_cast<size_t>(num_blocks * l.block_bytes));
}

std::vector<float> pages::read(int64_t block) {
    std::vector<float> page(static_cast<size_t>(shape_.page_floats()));
    kernels_.read_page[type_]({memory_.data() + block * layout_.block_bytes, page.data(), layout_});
    return page;
}

void pages::write(int64_t block, std::vector<float> page) {
    kernels_.write_page[type_]({memory_.data() + block * layout_.block_bytes, page.data(), layout_});
}

}  // namespace octavo::checks
