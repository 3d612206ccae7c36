// Bindings only, no logic: each function is declared where it is defined, and named here.
#include <nanobind/nanobind.h>

#include "bind_backend.h"
#include "gguf/bind_gguf.h"
#include "octavo/cpu_features.h"

namespace nb = nanobind;

NB_MODULE(_native, m) {
    m.doc() = "Native kernels of Octavo. The contract is _native.pyi.";

    nb::class_<octavo::cpu_features>(m, "CpuFeatures")
        .def_ro("avx2", &octavo::cpu_features::avx2)
        .def_ro("avx512", &octavo::cpu_features::avx512)
        .def_ro("avx512_bf16", &octavo::cpu_features::avx512_bf16)
        .def_ro("avx512_vnni", &octavo::cpu_features::avx512_vnni)
        .def_ro("amx_bf16", &octavo::cpu_features::amx_bf16);
    m.def("detect_cpu_features", &octavo::detect_cpu_features);
    octavo::bind_backend(m);
    octavo::bind_sampler(m);
    octavo::bind_probe(m);
    octavo::bind_gguf(m);
}
