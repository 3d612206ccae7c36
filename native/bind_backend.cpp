// Bindings of the back end and its ops; no logic beyond turning arrays into pointers whose shapes were checked.
#include "bind_backend.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>

#include "bind_storage.h"
#include "octavo/select_kernels.h"

using namespace nanobind::literals;

namespace octavo {

namespace {

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
            "decode",
            [](backend& self, const tensor& residual, const held_batch& batch, kv_cache& cache,
               const decoder_layers& decoder, const std::optional<array<int32_t, 1>>& rows) {
                const no_gil release;
                return self.decode(residual, batch.batch, cache, decoder, rows ? rows->data() : nullptr,
                                   rows ? static_cast<int64_t>(rows->shape(0)) : 0);
            },
            "residual"_a, "batch"_a, "cache"_a, "layers"_a, "rows"_a.noconvert().none());
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
