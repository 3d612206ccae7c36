// rotary: q and k of qkv [T, (H + 2K) * D] are normed (if asked) and rotated; q is returned, K and V go to the cache.
//
// Half-split convention: element i of a head turns with element i + D/2. K lies in the cache with tokens side by side
// [D units][P], V with features side by side [P units][Dp]; both are scattered here, once per token.
// Sources: RoFormer, arXiv 2104.09864; q/k norm as in Qwen3 and Gemma 3 (RMSNorm over each head).
#include "kernels.h"
#include "tile.h"

namespace octavo::OCTAVO_LEVEL {

// x [D] -> the factor that norms it.
static float norm_factor(const float* x, int64_t d, float eps) {
    const int64_t whole = d / kLanes * kLanes;
    vf squares = broadcast(0.0f);
    for (int64_t i = 0; i < whole; i += kLanes) squares = multiply_add(load(x + i), load(x + i), squares);
    if (whole < d) {
        const vf value = load_first(x + whole, static_cast<int>(d - whole));
        squares = multiply_add(value, value, squares);
    }
    return 1.0f / __builtin_sqrtf(sum_lanes(squares) / static_cast<float>(d) + eps);
}

// One head: x [D] -> out [D].
template <class Element>
static void rotate_head(const rotary_params& p, const float* x, const float* weight, int64_t position, Element* out) {
    const int64_t half = p.layout.head_dim / 2;
    const float* const cos = p.cos + position * half;
    const float* const sin = p.sin + position * half;
    const vf factor = broadcast(weight ? norm_factor(x, 2 * half, p.eps) : 1.0f);
    for (int64_t i = 0; i < half; i += kLanes) {
        const int count = static_cast<int>(min_of(kLanes, half - i));
        vf first = load_first(x + i, count);
        vf second = load_first(x + half + i, count);
        if (weight) {
            first = first * factor * load_first(weight + i, count);
            second = second * factor * load_first(weight + half + i, count);
        }
        const vf c = load_first(cos + i, count);
        const vf s = load_first(sin + i, count);
        store_elements(out + i, first * c - second * s, count);
        store_elements(out + half + i, second * c + first * s, count);
    }
}

constexpr int64_t kMaxHeadDim = 1024;

template <class Element>
void rotary(const rotary_params& p, int64_t first_row, int64_t last_row) {
    constexpr int64_t kElements = unit_of<Element>::kElements;
    const cache_layout& layout = p.layout;
    const int64_t d = layout.head_dim, padded = layout.head_dim_padded, size = layout.block_size;
    const int64_t width = (p.num_heads + 2 * layout.num_kv_heads) * d;
    Element key[kMaxHeadDim];
    for (int64_t t = first_row; t < last_row; ++t) {
        const float* const row = p.qkv + t * width;
        auto* const q = static_cast<Element*>(p.q) + t * p.num_heads * d;
        for (int64_t head = 0; head < p.num_heads; ++head) {
            rotate_head(p, row + head * d, p.q_norm, p.positions[t], q + head * d);
        }
        const int64_t slot = p.slots[t] % size;
        char* const block = p.cache + p.slots[t] / size * layout.block_bytes;
        for (int64_t head = 0; head < layout.num_kv_heads; ++head) {
            const float* const k = row + (p.num_heads + head) * d;
            const float* const v = k + layout.num_kv_heads * d;
            rotate_head(p, k, p.k_norm, p.positions[t], key);
            auto* const keys = reinterpret_cast<Element*>(block + head * layout.k_head_bytes) + slot * kElements;
            for (int64_t i = 0; i < d; ++i) keys[i / kElements * size * kElements + i % kElements] = key[i];
            auto* const values = reinterpret_cast<Element*>(block + layout.k_bytes + head * layout.v_head_bytes) +
                                 slot / kElements * padded * kElements + slot % kElements;
            for (int64_t i = 0; i < d; ++i) narrow_into(values[i * kElements], v[i]);
        }
    }
}

template void rotary<float>(const rotary_params&, int64_t, int64_t);
template void rotary<bfloat16>(const rotary_params&, int64_t, int64_t);

}  // namespace octavo::OCTAVO_LEVEL
