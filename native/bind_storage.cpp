// Bindings of what ops work on; no logic beyond checking shapes.
#include "bind_storage.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <memory>

using namespace nanobind::literals;

namespace octavo {

dtype dtype_of(const std::string& name) {
    if (name == "float32") return dtype::float32;
    if (name == "bfloat16") return dtype::bfloat16;
    throw shape_error("dtype '" + name + "' is neither float32 nor bfloat16");
}

activation activation_of(const char* kind) {
    if (std::strcmp(kind, "silu") == 0) return activation::silu;
    if (std::strcmp(kind, "gelu_tanh") == 0) return activation::gelu_tanh;
    throw shape_error(std::string("activation '") + kind + "' is neither silu nor gelu_tanh");
}

namespace {

held_batch* make_batch(const kv_cache& cache, const array<int32_t, 1>& positions, const array<int32_t, 1>& query_start,
                       const array<int32_t, 1>& seq_lens,
                       const std::vector<std::pair<array<int32_t, 1>, array<int32_t, 2>>>& groups) {
    auto out = std::make_unique<held_batch>();
    shape_check check("step_batch");
    check.bind("T", static_cast<int64_t>(positions.shape(0)), "positions");
    check.bind("S", static_cast<int64_t>(seq_lens.shape(0)), "seq_lens");
    check.bind("S + 1", static_cast<int64_t>(seq_lens.shape(0)) + 1, "seq_lens");
    check.bind("S + 1", static_cast<int64_t>(query_start.shape(0)), "query_start");
    step_batch& batch = out->batch;
    batch.num_tokens = static_cast<int64_t>(positions.shape(0));
    batch.num_seqs = static_cast<int64_t>(seq_lens.shape(0));
    batch.positions = positions.data();
    batch.query_start = query_start.data();
    batch.seq_lens = seq_lens.data();
    out->lists = {positions, query_start, seq_lens};
    for (const auto& [slots, block_table] : groups) {
        check.bind("T", static_cast<int64_t>(slots.shape(0)), "slots");
        check.bind("S", static_cast<int64_t>(block_table.shape(0)), "block_table");
        batch.groups.push_back({slots.data(), block_table.data(), static_cast<int64_t>(block_table.shape(1))});
        out->lists.push_back(slots);
        out->tables.push_back(block_table);
    }
    batch.check(cache);
    return out.release();
}

nb::object tensor_as_numpy(nb::handle self) {
    const tensor& t = nb::cast<const tensor&>(self);
    size_t shape[kMaxDims];
    for (int i = 0; i < t.num_dims(); ++i) shape[i] = static_cast<size_t>(t.size(i));
    const auto num_dims = static_cast<size_t>(t.num_dims());
    if (t.type() == dtype::float32) return nb::ndarray<nb::numpy, float>(t.data(), num_dims, shape, self).cast();
    return nb::ndarray<nb::numpy, uint16_t>(t.data(), num_dims, shape, self).cast();
}

void bind_blocks(nb::module_& m) {
    nb::class_<attention_block>(m, "AttentionBlock")
        .def(
            "__init__",
            [](attention_block* self, int64_t layer, const packed_vector& norm, const packed_matrix& qkv,
               const rope_table& rope, const attention_options& options, const packed_vector* q_norm,
               const packed_vector* k_norm,
               float eps) { new (self) attention_block{layer, &norm, &qkv, &rope, options, q_norm, k_norm, eps}; },
            "layer"_a, "norm"_a, "qkv"_a, "rope"_a, "options"_a, "q_norm"_a.none(), "k_norm"_a.none(), "eps"_a,
            nb::keep_alive<1, 3>(), nb::keep_alive<1, 4>(), nb::keep_alive<1, 5>(), nb::keep_alive<1, 7>(),
            nb::keep_alive<1, 8>());
    nb::class_<feed_forward_block>(m, "FeedForwardBlock")
        .def(
            "__init__",
            [](feed_forward_block* self, const packed_matrix& out, const packed_vector* attention_post_norm,
               const packed_vector& norm, const packed_matrix& gate_up, const char* kind, const packed_matrix& down,
               const packed_vector* post_norm, float eps) {
                new (self) feed_forward_block{&out,  attention_post_norm, &norm, &gate_up, activation_of(kind),
                                              &down, post_norm,           eps};
            },
            "out"_a, "attention_post_norm"_a.none(), "norm"_a, "gate_up"_a, "kind"_a, "down"_a, "post_norm"_a.none(),
            "eps"_a, nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(), nb::keep_alive<1, 4>(), nb::keep_alive<1, 5>(),
            nb::keep_alive<1, 7>(), nb::keep_alive<1, 8>());
    nb::class_<decoder_layers>(m, "DecoderLayers")
        .def(
            "__init__",
            // Tuples: what keeps the parts alive must not change behind our back.
            [](decoder_layers* self, const nb::tuple& layers) {
                std::vector<decoder_layer> in_order;
                for (const nb::handle layer : layers) {
                    const auto parts = nb::cast<nb::tuple>(layer);
                    in_order.push_back(
                        {nb::cast<const attention_block&>(parts[0]), nb::cast<const feed_forward_block&>(parts[1])});
                }
                new (self) decoder_layers(std::move(in_order));
            },
            "layers"_a, nb::keep_alive<1, 2>());
}

}  // namespace

void bind_storage(nb::module_& m) {
    nb::class_<tensor>(m, "Tensor")
        .def("numpy", tensor_as_numpy)
        .def_prop_ro("shape",
                     [](const tensor& t) {
                         nb::list sizes;
                         for (int i = 0; i < t.num_dims(); ++i) sizes.append(t.size(i));
                         return nb::tuple(sizes);
                     })
        .def_prop_ro("dtype", [](const tensor& t) { return t.type() == dtype::float32 ? "float32" : "bfloat16"; });
    nb::class_<packed_matrix>(m, "PackedMatrix")
        .def(
            "__init__",
            [](packed_matrix* self, backend& ops, const std::string& type, int64_t n, int64_t k, int64_t gate_width) {
                new (self) packed_matrix(ops.weight_memory(), dtype_of(type), n, k, gate_width);
            },
            "ops"_a, "dtype"_a, "num_columns"_a, "k"_a, "gate_width"_a = 0)
        .def_ro("num_columns", &packed_matrix::n)
        .def_ro("k", &packed_matrix::k)
        .def_prop_ro("num_bytes", [](const packed_matrix& w) { return w.panels.num_bytes; })
        .def(
            "set_bias",
            [](packed_matrix& self, const array<float, 1>& bias) {
                shape_check check("pack_linear");
                check.bind("N", self.n, "the packed matrix");
                check.bind("N", static_cast<int64_t>(bias.shape(0)), "bias");
                self.bias.assign(bias.data(), bias.data() + bias.size());
            },
            "bias"_a.noconvert());
    nb::class_<packed_vector>(m, "PackedVector")
        .def(
            "__init__",
            [](packed_vector* self, const array<float, 1>& values) {
                new (self) packed_vector{{values.data(), values.data() + values.size()}};
            },
            "values"_a.noconvert());
    nb::class_<rope_table>(m, "RopeTable")
        .def(
            "__init__",
            [](rope_table* self, const array<float, 2>& cos, const array<float, 2>& sin) {
                shape_check check("rope_table");
                for (const auto* table : {&cos, &sin}) {
                    check.bind("max_position", static_cast<int64_t>(table->shape(0)), "cos, sin");
                    check.bind("D / 2", static_cast<int64_t>(table->shape(1)), "cos, sin");
                }
                new (self) rope_table{{cos.data(), cos.data() + cos.size()},
                                      {sin.data(), sin.data() + sin.size()},
                                      static_cast<int64_t>(cos.shape(0)),
                                      static_cast<int64_t>(cos.shape(1))};
            },
            "cos"_a.noconvert(), "sin"_a.noconvert());
    nb::class_<kv_cache>(m, "KvCache")
        .def(
            "__init__",
            [](kv_cache* self, const std::string& type, int64_t num_blocks, int64_t block_size, int64_t num_kv_heads,
               int64_t head_dim, const std::vector<std::vector<int>>& layers_of_groups) {
                new (self) kv_cache(dtype_of(type), num_blocks, block_size, num_kv_heads, head_dim, layers_of_groups);
            },
            "dtype"_a, "num_blocks"_a, "block_size"_a, "num_kv_heads"_a, "head_dim"_a, "layers_of_groups"_a)
        .def_prop_ro("num_bytes", [](const kv_cache& cache) { return cache.memory.num_bytes(); });
    nb::class_<held_batch>(m, "StepBatch")
        .def(nb::new_(&make_batch), "cache"_a, "positions"_a.noconvert(), "query_start"_a.noconvert(),
             "seq_lens"_a.noconvert(), "groups"_a);
    nb::class_<attention_options>(m, "AttentionOptions")
        .def(nb::init<int64_t, int64_t, int64_t, float, int64_t, float>(), "num_heads"_a, "num_kv_heads"_a,
             "head_dim"_a, "scale"_a, "window"_a, "softcap"_a);
    bind_blocks(m);
}

}  // namespace octavo
