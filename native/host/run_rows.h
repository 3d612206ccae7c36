// Sharing out rows among threads.
#pragma once

#include <algorithm>

#include "octavo/backend.h"

namespace octavo {

// Work on fewer elements than this is done before a second thread has heard of it.
constexpr int64_t kElementsPerUnit = 16384;

template <class Work>
void backend::run_rows(int64_t num_rows, int64_t row_elements, const Work& work) {
    const int64_t rows_per_unit = std::max<int64_t>(1, kElementsPerUnit / std::max<int64_t>(1, row_elements));
    pool_.run(ceil_div(num_rows, rows_per_unit),
              [&](int64_t unit, int) { work(unit * rows_per_unit, std::min((unit + 1) * rows_per_unit, num_rows)); });
}

}  // namespace octavo
