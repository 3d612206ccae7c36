// embedding: tokens [T] -> rows of a packed table [V, E], times a factor -> out [T, E] float32.
//
// The table is packed as the head is, so that a tied model holds it once: a row's units lie 32 units apart.
#include "kernels.h"
#include "tile.h"

namespace octavo::OCTAVO_LEVEL {

template <class Element>
void embedding(const embedding_params& p, int64_t first_row, int64_t last_row) {
    constexpr int64_t kElements = unit_of<Element>::kElements;
    const int64_t units = p.e / kElements;
    for (int64_t t = first_row; t < last_row; ++t) {
        const int64_t token = p.tokens[t];
        const auto* const source = static_cast<const Element*>(p.panels) +
                                   (token / kPanelColumns * units * kPanelColumns + token % kPanelColumns) * kElements;
        float* const out = p.out + t * p.e;
        for (int64_t unit = 0; unit < units; ++unit) {
            for (int64_t i = 0; i < kElements; ++i) {
                out[unit * kElements + i] = widen_scalar(source[unit * kPanelColumns * kElements + i]) * p.scale;
            }
        }
    }
}

template void embedding<float>(const embedding_params&, int64_t, int64_t);
template void embedding<bfloat16>(const embedding_params&, int64_t, int64_t);

}  // namespace octavo::OCTAVO_LEVEL
