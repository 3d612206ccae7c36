// Element types of weights, linear inputs and KV.
#pragma once

#include <cstdint>

namespace octavo {

enum class dtype : uint8_t { float32 = 0, bfloat16 = 1 };

static inline int64_t item_bytes(dtype type) {
    return type == dtype::bfloat16 ? 2 : 4;
}

}  // namespace octavo
