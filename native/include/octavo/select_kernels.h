// Which level of kernels serves: by CPUID flags, decided at run time, never by model number or compiler flags.
#pragma once

#include <string>
#include <vector>

#include "octavo/kernel_table.h"

namespace octavo {

// Names of the levels the processor can run, best first; the last is always "scalar".
std::vector<std::string> runnable_levels();

// Names of levels that only tests select: kernels whose instructions are emulated.
std::vector<std::string> test_levels();

// The level of that name; "auto": the best. Throws std::invalid_argument for one that cannot run here.
const kernel_table& select_kernels(const std::string& name);

}  // namespace octavo
