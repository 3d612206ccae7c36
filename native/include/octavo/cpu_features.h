// What the processor and the kernel allow, read from CPUID and arch_prctl at run time.
#pragma once

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

}  // namespace octavo
