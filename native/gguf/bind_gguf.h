// Registers the functions of native/gguf with the Python module.
#pragma once

#include <nanobind/nanobind.h>

namespace octavo {

void bind_gguf(nanobind::module_& m);

}  // namespace octavo
