// A cache of some blocks for one sequence, its layout as decision 0003 says, written and read page by page.
#pragma once

#include "checks.h"

namespace octavo::checks {

struct page_shape {
    int64_t block_size, num_kv_heads, head_dim, num_layers;

    // Of canonical pages [layer][K|V][P][K heads][D].
    int64_t page_floats() const { return num_layers * 2 * block_size * num_kv_heads * head_dim; }
    int64_t place_of(int64_t layer, int64_t kind, int64_t slot, int64_t head) const {
        return (((layer * 2 + kind) * block_size + slot) * num_kv_heads + head) * head_dim;
    }
};

class pages {
  public:
    pages(const kernel_table& kernels, dtype type, const page_shape& shape, int64_t num_blocks);

    const cache_layout& layout() const { return layout_; }
    char* layer(int64_t index) { return memory_.data() + index * layout_.layer_bytes; }
    std::vector<float> read(int64_t block);
    void write(int64_t block, std::vector<float> page);

  private:
    const kernel_table& kernels_;
    const int type_;
    const page_shape shape_;
    cache_layout layout_;
    std::vector<char> memory_;
};

}  // namespace octavo::checks
