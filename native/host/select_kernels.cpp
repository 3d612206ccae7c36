// Which level of kernels the processor can run, by CPUID flags, decided at run time.
#include <stdexcept>
#include <string>

#include "octavo/cpu_features.h"
#include "octavo/kernel_table.h"

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
#endif

namespace {

struct level {
    const char* name;
    bool is_runnable;
    const kernel_table& (*table)();
};

}  // namespace

const kernel_table& select_kernels(const char* name) {
    const cpu_features cpu = detect_cpu_features();
    // Best first.
    const level levels[] = {
#if defined(OCTAVO_X86)
        {"avx512_bf16", cpu.avx512_bf16, avx512_bf16::table},
        {"avx512", cpu.avx512, avx512::table},
        {"avx2", cpu.avx2, avx2::table},
#endif
        {"scalar", true, scalar::table},
    };
    const std::string wanted(name);
    std::string runnable;
    for (const level& candidate : levels) {
        if (!candidate.is_runnable) {
            if (wanted == candidate.name) throw std::invalid_argument("this processor has no " + wanted);
            continue;
        }
        if (wanted == "auto" || wanted == candidate.name) return candidate.table();
        runnable += std::string(" ") + candidate.name;
    }
    throw std::invalid_argument("no kernels for isa '" + wanted + "'; this processor runs:" + runnable);
}

}  // namespace octavo
