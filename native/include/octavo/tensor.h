// An array of the back end: rows of float32 or bfloat16, contiguous, in memory of the arena.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <stdexcept>

#include "octavo/dtype.h"
#include "octavo/memory.h"

namespace octavo {

constexpr int kMaxDims = 3;

class tensor {
  public:
    tensor() = default;  // nothing, until another is moved here
    tensor(arena& memory, dtype type, std::initializer_list<int64_t> shape) : type_(type) {
        for (const int64_t size : shape) shape_[num_dims_++] = size;
        data_ = memory.take(static_cast<size_t>(num_elements() * item_bytes(type)));
    }

    dtype type() const { return type_; }
    int num_dims() const { return num_dims_; }
    int64_t size(int dim) const { return shape_[dim]; }
    const int64_t* shape() const { return shape_; }
    int64_t num_elements() const {
        int64_t n = 1;
        for (int i = 0; i < num_dims_; ++i) n *= shape_[i];
        return n;
    }
    void* data() const { return data_.get(); }
    float* floats() const { return reinterpret_cast<float*>(data_.get()); }

  private:
    dtype type_ = dtype::float32;
    int num_dims_ = 0;
    int64_t shape_[kMaxDims] = {1, 1, 1};
    arena::buffer data_;
};

}  // namespace octavo
