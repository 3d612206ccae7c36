// The KV memory: its layout, its pages, and the ops that write to it.
#include <algorithm>
#include <cstring>

#include "octavo/backend.h"
#include "run_rows.h"

namespace octavo {

namespace {

constexpr int64_t kMaxHeadDim = 1024;

cache_layout make_layout(dtype type, int64_t block_size, int64_t num_kv_heads, int64_t head_dim, int64_t num_layers) {
    const shape_check check("allocate_kv");
    check.require(block_size == 16 || (block_size > 0 && block_size % 32 == 0),
                  "P is " + std::to_string(block_size) + "; the cpu back end takes 16 or a multiple of 32");
    check.require(num_kv_heads > 0 && num_layers > 0, "K and the number of layers must be positive");
    check.require(head_dim > 0 && head_dim % 2 == 0 && head_dim <= kMaxHeadDim,
                  "D is " + std::to_string(head_dim) + "; it must be even and at most " + std::to_string(kMaxHeadDim));
    cache_layout l{};
    l.block_size = block_size;
    l.num_kv_heads = num_kv_heads;
    l.head_dim = head_dim;
    l.head_dim_padded = ceil_div(head_dim, 32) * 32;
    l.num_layers = num_layers;
    l.k_head_bytes = block_size * head_dim * item_bytes(type);
    l.v_head_bytes = block_size * l.head_dim_padded * item_bytes(type);
    l.k_bytes = num_kv_heads * l.k_head_bytes;
    l.layer_bytes = l.k_bytes + num_kv_heads * l.v_head_bytes;
    l.block_bytes = num_layers * l.layer_bytes;
    return l;
}

int64_t longest(const std::vector<std::vector<int>>& lists) {
    size_t most = 0;
    for (const auto& list : lists) most = std::max(most, list.size());
    return static_cast<int64_t>(most);
}

}  // namespace

kv_cache::kv_cache(dtype element, int64_t blocks, int64_t block_size, int64_t num_kv_heads, int64_t head_dim,
                   const std::vector<std::vector<int>>& layers_of_groups)
    : type(element),
      num_blocks(blocks),
      num_groups(static_cast<int64_t>(layers_of_groups.size())),
      layout(make_layout(element, block_size, num_kv_heads, head_dim, longest(layers_of_groups))),
      memory(static_cast<size_t>(blocks * layout.block_bytes)) {
    for (size_t group = 0; group < layers_of_groups.size(); ++group) {
        for (size_t i = 0; i < layers_of_groups[group].size(); ++i) {
            const auto layer = static_cast<size_t>(layers_of_groups[group][i]);
            if (places.size() <= layer) places.resize(layer + 1);
            places[layer] = {static_cast<int32_t>(group), static_cast<int32_t>(i)};
        }
    }
}

kv_cache::place kv_cache::place_of(const shape_check& check, int64_t layer) const {
    const bool is_known =
        layer >= 0 && layer < static_cast<int64_t>(places.size()) && places[static_cast<size_t>(layer)].group >= 0;
    check.require(is_known, "layer " + std::to_string(layer) + " has no place in the cache");
    return places[static_cast<size_t>(layer)];
}

void step_batch::check(const kv_cache& cache) {
    shape_check check("step_batch");
    check.bind("G", cache.num_groups, "the cache");
    check.bind("G", static_cast<int64_t>(groups.size()), "batch.groups");
    check.require(query_start[0] == 0 && query_start[num_seqs] == num_tokens, "query_start must go from 0 to T");
    max_position = -1;
    for (int64_t s = 0; s < num_seqs; ++s) {
        const int64_t first = query_start[s], last = query_start[s + 1];
        check.require(first <= last && last <= num_tokens, "query_start must not descend");
        check.require(last - first <= seq_lens[s], "sequence " + std::to_string(s) + " has more queries than seq_lens");
        for (int64_t t = first; t < last; ++t) {
            check.require(positions[t] == seq_lens[s] - (last - t),
                          "positions of sequence " + std::to_string(s) + " must end at seq_lens - 1");
        }
        max_position = std::max<int64_t>(max_position, seq_lens[s] - 1);
    }
    for (const group& g : groups) {
        for (int64_t t = 0; t < num_tokens; ++t) {
            check.require(g.slots[t] >= 0 && g.slots[t] < cache.num_blocks * cache.layout.block_size,
                          "slot " + std::to_string(g.slots[t]) + " is not below B * P");
        }
        for (int64_t s = 0; s < num_seqs; ++s) {
            const int64_t blocks = ceil_div(seq_lens[s], cache.layout.block_size);
            check.require(blocks <= g.max_blocks,
                          "block_table has fewer columns than sequence " + std::to_string(s) + " has blocks");
            for (int64_t i = 0; i < blocks; ++i) {
                const int32_t id = g.block_table[s * g.max_blocks + i];
                check.require(id >= 0 && id < cache.num_blocks, "block " + std::to_string(id) + " is not below B");
            }
        }
    }
}

rotary_params backend::prepare_rotary(shape_check& check, const step_batch& batch, kv_cache& cache,
                                      const attention_block& block) const {
    const attention_options& options = block.options;
    check.bind("T", batch.num_tokens, "batch");
    check.bind("K", cache.layout.num_kv_heads, "the cache");
    check.bind("D", cache.layout.head_dim, "the cache");
    check.bind_heads(options.num_heads, options.num_kv_heads, options.head_dim, "params");
    check.bind("D", 2 * block.rope->half, "the rope table");
    check.bind("(H + 2K) * D", (options.num_heads + 2 * options.num_kv_heads) * options.head_dim, "params");
    for (const packed_vector* norm : {block.q_norm, block.k_norm}) {
        if (norm) check.bind("D", static_cast<int64_t>(norm->values.size()), "q_norm, k_norm");
    }
    check.require(cache.type == type_, "the cache is of another dtype");
    check.require(batch.max_position < block.rope->max_position, "position " + std::to_string(batch.max_position) +
                                                                     " is not below max_position of the rope table, " +
                                                                     std::to_string(block.rope->max_position));
    const kv_cache::place place = cache.place_of(check, block.layer);
    return {nullptr,
            batch.positions,
            batch.groups[static_cast<size_t>(place.group)].slots,
            block.rope->cos.data(),
            block.rope->sin.data(),
            block.q_norm ? block.q_norm->values.data() : nullptr,
            block.k_norm ? block.k_norm->values.data() : nullptr,
            nullptr,
            cache.memory.data() + place.index * cache.layout.layer_bytes,
            cache.layout,
            options.num_heads,
            block.eps};
}

tensor backend::rotary_write(const tensor& qkv, const step_batch& batch, kv_cache& cache, int64_t layer,
                             const rope_table& rope, const attention_options& options, const packed_vector* q_norm,
                             const packed_vector* k_norm, float eps) {
    shape_check check("rotary_write");
    rotary_params params =
        prepare_rotary(check, batch, cache, {layer, nullptr, nullptr, &rope, options, q_norm, k_norm, eps});
    check.check(qkv, "qkv", dtype::float32, {"T", "(H + 2K) * D"});
    tensor q(*arena_, type_, {batch.num_tokens, options.num_heads, options.head_dim});
    params.qkv = qkv.floats();
    params.q = q.data();
    const auto rotary = kernels_.rotary[index()];
    run_rows(batch.num_tokens, qkv.size(1) * 2, [&](int64_t first, int64_t last) { rotary(params, first, last); });
    return q;
}

namespace {

void check_block(const char* op, const kv_cache& cache, int64_t block_id) {
    shape_check(op).require(
        block_id >= 0 && block_id < cache.num_blocks,
        "block " + std::to_string(block_id) + " is not below B = " + std::to_string(cache.num_blocks));
}

}  // namespace

void backend::read_block(const kv_cache& cache, int64_t block_id, float* page) const {
    check_block("read_block", cache, block_id);
    kernels_.read_page[static_cast<int>(cache.type)]({cache.block(block_id), page, cache.layout});
}

void backend::write_block(kv_cache& cache, int64_t block_id, const float* page) const {
    check_block("write_block", cache, block_id);
    kernels_.write_page[static_cast<int>(cache.type)]({cache.block(block_id), const_cast<float*>(page), cache.layout});
}

void backend::copy_blocks(kv_cache& cache, const int64_t* pairs, int64_t num_pairs) {
    for (int64_t i = 0; i < 2 * num_pairs; ++i) check_block("copy_blocks", cache, pairs[i]);
    // In the order given: a destination may be a later pair's source.
    for (int64_t i = 0; i < num_pairs; ++i) {
        std::memmove(cache.block(pairs[2 * i + 1]), cache.block(pairs[2 * i]),
                     static_cast<size_t>(cache.layout.block_bytes));
    }
}

}  // namespace octavo
