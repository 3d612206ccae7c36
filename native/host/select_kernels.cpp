// Which level of kernels the processor can run, by CPUID flags, decided at run time.
#include "octavo/select_kernels.h"

#include <stdexcept>

#include "octavo/cpu_features.h"

namespace octavo {

namespace scalar {
const kernel_table& table();
}
#if defined(OCTAVO_X86)
namespace avx2 {
const kernel_table& table();
}
namespace avx512 {
const kernel_table& table();
}
namespace avx512_bf16 {
const kernel_table& table();
}
namespace amx {
const kernel_table& table();
}
namespace amx_emulated {
const kernel_table& table();
}
#endif

namespace {

struct level {
    const char* name;
    const kernel_table& (*table)();
    bool (*is_runnable)(const cpu_features&);
    bool is_for_tests = false;  // runs when asked for by name, is never offered
};

// Best first.
const level kLevels[] = {
#if defined(OCTAVO_X86)
    {"amx", amx::table, [](const cpu_features& cpu) { return cpu.amx_bf16; }},
    {"avx512_bf16", avx512_bf16::table, [](const cpu_features& cpu) { return cpu.avx512_bf16; }},
    {"avx512", avx512::table, [](const cpu_features& cpu) { return cpu.avx512; }},
    {"avx2", avx2::table, [](const cpu_features& cpu) { return cpu.avx2; }},
#endif
    {"scalar", scalar::table, [](const cpu_features&) { return true; }},
#if defined(OCTAVO_X86)
    {"amx_emulated", amx_emulated::table, [](const cpu_features& cpu) { return cpu.avx512_bf16; }, true},
#endif
};

std::vector<std::string> names_of(bool are_for_tests) {
    const cpu_features cpu = detect_cpu_features();
    std::vector<std::string> names;
    for (const level& candidate : kLevels) {
        if (candidate.is_for_tests == are_for_tests && candidate.is_runnable(cpu)) names.emplace_back(candidate.name);
    }
    return names;
}

}  // namespace

std::vector<std::string> runnable_levels() {
    return names_of(false);
}

std::vector<std::string> test_levels() {
    return names_of(true);
}

const kernel_table& select_kernels(const std::string& name) {
    const std::vector<std::string> runnable = runnable_levels();
    const std::string& wanted = name == "auto" ? runnable.front() : name;
    std::string known;
    for (const std::string& level_name : runnable) known += " " + level_name;
    for (const level& candidate : kLevels) {
        if (wanted == candidate.name && candidate.is_runnable(detect_cpu_features())) return candidate.table();
    }
    throw std::invalid_argument("isa '" + name + "' is not among those this processor can run:" + known);
}

}  // namespace octavo
