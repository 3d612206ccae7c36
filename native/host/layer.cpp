// The layers of a decoder: what must fit, and the way through one layer when rows are few: ops follow each other, and
// each is shared out by columns. With many rows threads take rows through the layers instead (decoder.cpp).
#include <algorithm>
#include <cstring>
#include <set>

#include "octavo/backend.h"
#include "run_rows.h"

namespace octavo {

namespace {

int64_t length(const packed_vector& values) {
    return static_cast<int64_t>(values.values.size());
}

void check_attention(shape_check& check, const attention_block& block) {
    const attention_options& options = block.options;
    check.bind_heads(options.num_heads, options.num_kv_heads, options.head_dim, "params");
    check.require(block.qkv->gate_width == 0, "qkv is gated");
    check.bind("E", length(*block.norm), "norm");
    check.bind("E", block.qkv->k, "qkv");
    check.bind("(H + 2K) * D", (options.num_heads + 2 * options.num_kv_heads) * options.head_dim, "params");
    check.bind("(H + 2K) * D", block.qkv->n, "qkv");
    check.bind("D", 2 * block.rope->half, "the rope table");
    for (const packed_vector* norm : {block.q_norm, block.k_norm}) {
        if (norm) check.bind("D", length(*norm), "q_norm, k_norm");
    }
}

void check_feed_forward(shape_check& check, const feed_forward_block& block) {
    check.bind("H * D", block.out->k, "out");
    check.bind("E", block.out->n, "out");
    check.bind("E", length(*block.norm), "norm");
    check.bind("E", block.gate_up->k, "gate_up");
    check.require(block.gate_up->gate_width > 0 && block.gate_up->gate_width == block.down->k,
                  "F is " + std::to_string(block.gate_up->gate_width) + " in gate_up and " +
                      std::to_string(block.down->k) + " in down");
    check.bind("E", block.down->n, "down");
    check.require(block.out->gate_width == 0 && block.down->gate_width == 0, "out or down is gated");
    for (const packed_vector* norm : {block.attention_post_norm, block.post_norm}) {
        if (norm) check.bind("E", length(*norm), "post-norms");
    }
}

}  // namespace

decoder_layers::decoder_layers(std::vector<decoder_layer> in_order)
    : layers(std::move(in_order)), widest(0), widest_gated(0), operations_per_row(0) {
    shape_check check("decoder_layers");
    check.require(!layers.empty(), "there are no layers");
    std::set<int64_t> seen;
    for (const auto& [attention, feed_forward] : layers) {
        // One chunk of rows may write a layer's keys and values while another still reads those of the layer before.
        check.require(seen.insert(attention.layer).second, "layer " + std::to_string(attention.layer) + " comes twice");
        check_attention(check, attention);
        check.bind("H * D", attention.options.num_heads * attention.options.head_dim, "params");
        check_feed_forward(check, feed_forward);
        for (const packed_matrix* m : {attention.qkv, feed_forward.out, feed_forward.gate_up, feed_forward.down}) {
            check.require(m->type == layers.front().attention.qkv->type, "matrices are of different dtypes");
            widest = std::max(widest, m->k);
            operations_per_row += 2 * m->n * m->k;
        }
        widest_gated = std::max(widest_gated, feed_forward.down->k);
    }
}

void backend::norm_here(dtype out, const norm_params& params, int64_t count) const {
    kernels_.norm[static_cast<int>(out)](params, 0, count);
}

tensor backend::project_qkv(const tensor& residual, const step_batch& batch, kv_cache& cache,
                            const attention_block& block) {
    const tensor normed = rms_norm(residual, nullptr, *block.norm, block.eps).first;
    return rotary_write(linear(normed, *block.qkv), batch, cache, block.layer, *block.rope, block.options, block.q_norm,
                        block.k_norm, block.eps);
}

tensor backend::feed_forward(const tensor& attended, const tensor& residual, const int32_t* rows, int64_t num_rows,
                             const feed_forward_block& block) {
    const int64_t e = block.out->n, count = rows ? num_rows : residual.size(0);
    const tensor sums(*arena_, dtype::float32, {count, e}), normed(*arena_, type_, {count, e});
    const tensor gated(*arena_, type_, {count, block.down->k});
    tensor out(*arena_, dtype::float32, {count, e});
    const auto post_norm = [&](const packed_vector* weight, float* x, int64_t n) {
        if (weight) {
            norm_here(dtype::float32, {x, nullptr, weight->values.data(), nullptr, x, e, block.eps}, n);
        }
    };
    multiply({attended.data(), rows, count, *block.out, 0.0f, activation::none, sums.data()});
    run_rows(count, e, [&](int64_t first, int64_t last) {
        float *const own = out.floats() + first * e, *const added = sums.floats() + first * e;
        for (int64_t i = first; i < last; ++i) {
            std::memcpy(own + (i - first) * e, residual.floats() + (rows ? rows[i] : i) * e,
                        static_cast<size_t>(e) * sizeof(float));
        }
        post_norm(block.attention_post_norm, added, last - first);
        char* const place = static_cast<char*>(normed.data()) + first * e * item_bytes(type_);
        norm_here(type_, {own, added, block.norm->values.data(), own, place, e, block.eps}, last - first);
    });
    multiply({normed.data(), nullptr, count, *block.gate_up, 0.0f, block.kind, gated.data()});
    multiply({gated.data(), nullptr, count, *block.down, 0.0f, activation::none, sums.data()});
    run_rows(count, e, [&](int64_t first, int64_t last) {
        float *const own = out.floats() + first * e, *const added = sums.floats() + first * e;
        post_norm(block.post_norm, added, last - first);
        for (int64_t i = 0; i < (last - first) * e; ++i) own[i] += added[i];
    });
    return out;
}

}  // namespace octavo
