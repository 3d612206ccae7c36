// What bindings of the back end share: arrays of numpy, words for types, batches.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <string>
#include <vector>

#include "octavo/backend.h"

namespace octavo {

namespace nb = nanobind;

template <class T, int kDims>
using array = nb::ndarray<const T, nb::ndim<kDims>, nb::c_contig, nb::device::cpu>;
using floats = nb::ndarray<const float, nb::c_contig, nb::device::cpu>;
using floats_out = nb::ndarray<float, nb::c_contig, nb::device::cpu>;

dtype dtype_of(const std::string& name);
activation activation_of(const char* kind);

// A batch together with the arrays it points into.
struct held_batch {
    step_batch batch;
    std::vector<array<int32_t, 1>> lists;
    std::vector<array<int32_t, 2>> tables;
};

// Tensors, packed weights, tables, the cache, batches, blocks of a layer.
void bind_storage(nb::module_& m);

}  // namespace octavo
