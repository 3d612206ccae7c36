// Bindings of the back end; no logic beyond turning arrays into pointers whose shapes were checked.
#include "bind_backend.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>

#include "octavo/backend.h"
#include "octavo/select_kernels.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace octavo {

namespace {

template <class T, int kDims>
using array = nb::ndarray<const T, nb::ndim<kDims>, nb::c_contig, nb::device::cpu>;
using floats = nb::ndarray<const float, nb::c_contig, nb::device::cpu>;
using floats_out = nb::ndarray<float, nb::c_contig, nb::device::cpu>;

dtype dtype_of(const std::string& name) {
    if (name == "float32") return dtype::float32;
    if (name == "bfloat16") return dtype::bfloat16;
    throw shape_error("dtype '" + name + "' is neither float32 nor bfloat16");
}

// A batch together with the arrays it points into.
struct held_batch {
    step_batch batch;
    std::vector<array<int32_t, 1>> lists;
    std::vector<array<int32_t, 2>> tables;
};

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

tensor tensor_from_numpy(const backend& ops, const floats& source, const std::string& type_name) {
    const dtype type = dtype_of(type_name);
    const auto size = [&](size_t dim) { return static_cast<int64_t>(source.shape(dim)); };
    if (source.ndim() < 1 || source.ndim() > kMaxDims) throw shape_error("tensor: 1 to 3 dimensions");
    tensor out = source.ndim() == 1   ? tensor(ops.memory(), type, {size(0)})
                 : source.ndim() == 2 ? tensor(ops.memory(), type, {size(0), size(1)})
                                      : tensor(ops.memory(), type, {size(0), size(1), size(2)});
    if (type == dtype::float32) {
        std::memcpy(out.data(), source.data(), source.size() * sizeof(float));
    } else {
        for (size_t i = 0; i < source.size(); ++i)
            static_cast<bfloat16*>(out.data())[i] = narrow_scalar(source.data()[i]);
    }
    return out;
}

activation activation_of(const char* kind) {
    if (std::strcmp(kind, "silu") == 0) return activation::silu;
    if (std::strcmp(kind, "gelu_tanh") == 0) return activation::gelu_tanh;
    throw shape_error(std::string("activation '") + kind + "' is neither silu nor gelu_tanh");
}

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
}

void bind_ops(nb::class_<backend>& ops) {
    using no_gil = nb::gil_scoped_release;
    ops.def(
           "embedding",
           [](backend& self, const array<int32_t, 1>& tokens, const packed_matrix& table, float scale) {
               const no_gil release;
               return self.embedding(tokens.data(), static_cast<int64_t>(tokens.shape(0)), table, scale);
           },
           "tokens"_a.noconvert(), "table"_a, "scale"_a)
        .def(
            "rms_norm",
            [](backend& self, const tensor& x, const tensor* addend, const packed_vector& weight, float eps) {
                const no_gil release;
                return self.rms_norm(x, addend, weight, eps);
            },
            "x"_a, "addend"_a.none(), "weight"_a, "eps"_a)
        .def("norm_only", &backend::norm_only, nb::call_guard<no_gil>(), "x"_a, "weight"_a, "eps"_a)
        .def("linear", &backend::linear, nb::call_guard<no_gil>(), "x"_a, "weights"_a)
        .def(
            "logits",
            [](backend& self, const tensor& x, const array<int32_t, 1>& rows, const packed_matrix& head,
               float softcap) {
                const no_gil release;
                return self.logits(x, rows.data(), static_cast<int64_t>(rows.shape(0)), head, softcap);
            },
            "x"_a, "rows"_a.noconvert(), "head"_a, "softcap"_a)
        .def(
            "gated_activation",
            [](backend& self, const tensor& gate_up, const char* kind) {
                const activation how = activation_of(kind);
                const no_gil release;
                return self.gated_activation(gate_up, how);
            },
            "gate_up"_a, "kind"_a)
        .def(
            "rotary_write",
            [](backend& self, const tensor& qkv, const held_batch& batch, kv_cache& cache, int64_t layer,
               const rope_table& rope, const attention_options& options, const packed_vector* q_norm,
               const packed_vector* k_norm, float eps) {
                const no_gil release;
                return self.rotary_write(qkv, batch.batch, cache, layer, rope, options, q_norm, k_norm, eps);
            },
            "qkv"_a, "batch"_a, "cache"_a, "layer"_a, "rope"_a, "options"_a, "q_norm"_a.none(), "k_norm"_a.none(),
            "eps"_a)
        .def(
            "paged_attention",
            [](backend& self, const tensor& q, const held_batch& batch, const kv_cache& cache, int64_t layer,
               const attention_options& options) {
                const no_gil release;
                return self.paged_attention(q, batch.batch, cache, layer, options);
            },
            "q"_a, "batch"_a, "cache"_a, "layer"_a, "options"_a)
        .def(
            "project_qkv",
            [](backend& self, const tensor& residual, const held_batch& batch, kv_cache& cache,
               const attention_block& block) {
                const no_gil release;
                return self.project_qkv(residual, batch.batch, cache, block);
            },
            "residual"_a, "batch"_a, "cache"_a, "block"_a)
        .def(
            "feed_forward",
            [](backend& self, const tensor& attended, const tensor& residual,
               const std::optional<array<int32_t, 1>>& rows, const feed_forward_block& block) {
                const no_gil release;
                return self.feed_forward(attended, residual, rows ? rows->data() : nullptr,
                                         rows ? static_cast<int64_t>(rows->shape(0)) : 0, block);
            },
            "attended"_a, "residual"_a, "rows"_a.noconvert().none(), "block"_a);
}

void check_page(const kv_cache& cache, size_t num_elements) {
    const cache_layout& l = cache.layout;
    const int64_t expected = l.num_layers * 2 * l.block_size * l.num_kv_heads * l.head_dim;
    shape_check("page").require(
        static_cast<int64_t>(num_elements) == expected,
        "a page has " + std::to_string(expected) + " elements, not " + std::to_string(num_elements));
}

}  // namespace

void bind_backend(nb::module_& m) {
    nb::register_exception_translator([](const std::exception_ptr& error, void*) {
        try {
            std::rethrow_exception(error);
        } catch (const shape_error& e) {
            PyErr_SetString(nb::module_::import_("octavo.base.errors").attr("ShapeError").ptr(), e.what());
        }
    });
    m.def("runnable_isa_levels", &runnable_levels);
    m.def("test_isa_levels", &test_levels);
    bind_storage(m);
    bind_blocks(m);
    nb::class_<backend> ops(m, "Backend");
    ops.def(
           "__init__",
           [](backend* self, const std::string& type, const std::string& isa, int num_threads) {
               new (self) backend(dtype_of(type), isa.c_str(), num_threads);
           },
           "dtype"_a, "isa"_a, "num_threads"_a)
        .def_prop_ro("isa", &backend::isa)
        .def_prop_ro("num_threads", &backend::num_threads)
        .def_prop_ro("arena_bytes", &backend::arena_bytes)
        .def("tensor", tensor_from_numpy, "values"_a.noconvert(), "dtype"_a)
        .def(
            "pack_columns",
            [](backend& self, packed_matrix& matrix, int64_t first_column, const array<float, 2>& rows) {
                const nb::gil_scoped_release release;
                self.pack_columns(matrix, first_column, rows.data(), static_cast<int64_t>(rows.shape(0)),
                                  static_cast<int64_t>(rows.shape(1)));
            },
            "matrix"_a, "first_column"_a, "rows"_a.noconvert())
        .def(
            "read_block",
            [](const backend& self, const kv_cache& cache, int64_t block_id, const floats_out& page) {
                check_page(cache, page.size());
                self.read_block(cache, block_id, page.data());
            },
            "cache"_a, "block_id"_a, "page"_a.noconvert())
        .def(
            "write_block",
            [](const backend& self, kv_cache& cache, int64_t block_id, const floats& page) {
                check_page(cache, page.size());
                self.write_block(cache, block_id, page.data());
            },
            "cache"_a, "block_id"_a, "page"_a.noconvert())
        .def(
            "copy_blocks",
            [](backend& self, kv_cache& cache, const array<int64_t, 2>& pairs) {
                shape_check check("copy_blocks");
                check.bind("2", 2, "pairs");
                check.bind("2", static_cast<int64_t>(pairs.shape(1)), "pairs");
                self.copy_blocks(cache, pairs.data(), static_cast<int64_t>(pairs.shape(0)));
            },
            "cache"_a, "pairs"_a.noconvert());
    bind_ops(ops);
}

}  // namespace octavo
