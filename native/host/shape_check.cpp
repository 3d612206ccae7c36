#include "octavo/shape_check.h"

#include <cstring>

namespace octavo {

namespace {

constexpr int64_t kMaxOfHeads = 1 << 16;  // so that no product of these and a number of tokens overflows

}  // namespace

void shape_check::bind(const char* symbol, int64_t value, const char* where) {
    for (int i = 0; i < num_bindings_; ++i) {
        const binding& known = bindings_[i];
        if (std::strcmp(known.symbol, symbol) != 0) continue;
        if (known.value != value) {
            fail(std::string(symbol) + " is " + std::to_string(known.value) + " in " + known.where + " but " +
                 std::to_string(value) + " in " + where);
        }
        return;
    }
    bindings_[num_bindings_++] = {symbol, value, where};
}

void shape_check::check(const tensor& array, const char* name, dtype type, std::initializer_list<const char*> symbols) {
    if (array.type() != type) {
        fail(std::string(name) + " must be " + (type == dtype::float32 ? "float32" : "bfloat16"));
    }
    if (array.num_dims() != static_cast<int>(symbols.size())) {
        fail(std::string(name) + " has " + std::to_string(array.num_dims()) + " dimensions, not " +
             std::to_string(symbols.size()));
    }
    int dim = 0;
    for (const char* symbol : symbols) bind(symbol, array.size(dim++), name);
}

void shape_check::bind_heads(int64_t num_heads, int64_t num_kv_heads, int64_t head_dim, const char* where) {
    bind("H", num_heads, where);
    bind("K", num_kv_heads, where);
    bind("D", head_dim, where);
    require(num_kv_heads > 0 && num_heads % num_kv_heads == 0, "H must be a multiple of K");
    for (const int64_t size : {num_heads, num_kv_heads, head_dim}) {
        require(size > 0 && size <= kMaxOfHeads,
                "H, K and D must be between 1 and " + std::to_string(kMaxOfHeads) + ", not " + std::to_string(size));
    }
}

void shape_check::fail(const std::string& problem) const {
    throw shape_error(std::string(op_) + ": " + problem);
}

}  // namespace octavo
