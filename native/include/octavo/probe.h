// What the machine can do, measured: the limits that kernels are compared with.
#pragma once

#include "octavo/backend.h"

namespace octavo {

// Bytes per second, all threads, best of num_passes over a region of that size; huge pages or pages of 4 KB.
double probe_read(backend& ops, int64_t num_bytes, int num_passes, bool is_huge);

// FLOP/s, all threads, best of num_passes, tiles of full height, weights in the second cache.
double probe_matrix(backend& ops, int num_passes);

// FLOP/s, all threads, best of num_passes, operands in registers: what no product of matrices can exceed.
double probe_arithmetic(backend& ops, int num_passes);

}  // namespace octavo
