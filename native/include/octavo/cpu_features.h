// What the processor and the kernel allow, read from CPUID, arch_prctl and sysfs at run time.
#pragma once

#include <cstdint>

namespace octavo {

struct cpu_features {
    bool avx2 = false;         // with FMA and F16C
    bool avx512 = false;       // F, BW, DQ, VL
    bool avx512_bf16 = false;  // VDPBF16PS
    bool avx512_vnni = false;
    bool amx_bf16 = false;  // with AMX-TILE and avx512_bf16, and the system granted this process the tile state
};

// Found out at the first call, which asks for what must be asked for.
cpu_features detect_cpu_features();

// Size of the last cache that the first core shares with others, as the kernel tells it; 0: none, or nobody knows.
int64_t third_cache_bytes();

}  // namespace octavo
