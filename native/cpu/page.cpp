// page: one block of the cache to and from the canonical page [layer][K|V][P][K heads][D] float32.
//
// The canonical page is what tests, tiers and peers hold; the cache's own layout is decision 0003.
#include "kernels.h"
#include "tile.h"

namespace octavo::OCTAVO_LEVEL {

// Calls visit(element of the block, element of the page) for every element.
template <class Element, class Visit>
static void visit_page(const page_params& p, Visit visit) {
    constexpr int64_t kElements = unit_of<Element>::kElements;
    const cache_layout& l = p.layout;
    float* page = p.page;
    for (int64_t layer = 0; layer < l.num_layers; ++layer) {
        for (int64_t kind = 0; kind < 2; ++kind) {
            char* const states = p.block + layer * l.layer_bytes + kind * l.k_bytes;
            for (int64_t slot = 0; slot < l.block_size; ++slot) {
                for (int64_t head = 0; head < l.num_kv_heads; ++head) {
                    auto* const own =
                        reinterpret_cast<Element*>(states + head * (kind == 0 ? l.k_head_bytes : l.v_head_bytes));
                    for (int64_t i = 0; i < l.head_dim; ++i) {
                        const int64_t at =
                            kind == 0 ? (i / kElements * l.block_size + slot) * kElements + i % kElements
                                      : (slot / kElements * l.head_dim_padded + i) * kElements + slot % kElements;
                        visit(own[at], *page++);
                    }
                }
            }
        }
    }
}

template <class Element>
void read_page(const page_params& p) {
    visit_page<Element>(p, [](const Element& own, float& out) { out = widen_scalar(own); });
}

template <class Element>
void write_page(const page_params& p) {
    visit_page<Element>(p, [](Element& own, const float& value) { narrow_into(own, value); });
}

template void read_page<float>(const page_params&);
template void read_page<bfloat16>(const page_params&);
template void write_page<float>(const page_params&);
template void write_page<bfloat16>(const page_params&);

}  // namespace octavo::OCTAVO_LEVEL
