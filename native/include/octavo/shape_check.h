// Checks at the border: sizes are bound to symbols, and a size that disagrees is refused by the symbol's name.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>

#include "octavo/tensor.h"

namespace octavo {

// Becomes octavo.base.errors.ShapeError.
class shape_error : public std::invalid_argument {
  public:
    using std::invalid_argument::invalid_argument;
};

class shape_check {
  public:
    explicit shape_check(const char* op) : op_(op) {}

    // The first binding of a symbol sets its value, later ones must agree. `where` says whose size it is.
    void bind(const char* symbol, int64_t value, const char* where);
    void check(const tensor& array, const char* name, dtype type, std::initializer_list<const char*> symbols);
    // Throws unless `holds`.
    void require(bool holds, const std::string& problem) const {
        if (!holds) fail(problem);
    }
    // H, K and D of an attention, as `where` gives them.
    void bind_heads(int64_t num_heads, int64_t num_kv_heads, int64_t head_dim, const char* where);
    [[noreturn]] void fail(const std::string& problem) const;

  private:
    struct binding {
        const char* symbol;
        int64_t value;
        const char* where;
    };
    const char* op_;
    binding bindings_[12];
    int num_bindings_ = 0;
};

}  // namespace octavo
