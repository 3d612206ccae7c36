// The native back end as Python sees it: tensors, packed weights, cache, ops, sampling.
#pragma once

#include <nanobind/nanobind.h>

namespace octavo {

void bind_backend(nanobind::module_& m);
void bind_sampler(nanobind::module_& m);
void bind_probe(nanobind::module_& m);

}  // namespace octavo
