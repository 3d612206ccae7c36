// Bindings of the probes.
#include "bind_backend.h"
#include "octavo/probe.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace octavo {

void bind_probe(nb::module_& m) {
    using no_gil = nb::gil_scoped_release;
    m.def("probe_read", &probe_read, nb::call_guard<no_gil>(), "ops"_a, "num_bytes"_a, "num_passes"_a, "is_huge"_a);
    m.def("probe_matrix", &probe_matrix, nb::call_guard<no_gil>(), "ops"_a, "num_passes"_a);
    m.def("probe_arithmetic", &probe_arithmetic, nb::call_guard<no_gil>(), "ops"_a, "num_passes"_a);
}

}  // namespace octavo
