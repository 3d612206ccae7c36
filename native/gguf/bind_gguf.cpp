// Bindings of native/gguf only, no logic.
#include "bind_gguf.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string_view.h>

#include "octavo/dequantize.h"

namespace nb = nanobind;

namespace octavo {
namespace {

using bytes_in = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using floats_out = nb::ndarray<float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

}  // namespace

void bind_gguf(nb::module_& m) {
    m.def(
        "dequantize_f32",
        [](std::string_view format, bytes_in data, floats_out out) {
            nb::gil_scoped_release released;
            dequantize(format, data.data(), data.size(), out.data(), out.size());
        },
        nb::arg("format"), nb::arg("data").noconvert(), nb::arg("out").noconvert());
}

}  // namespace octavo
