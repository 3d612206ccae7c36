#include "octavo/cpu_features.h"

#include <fstream>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace octavo {

#if defined(__x86_64__)
namespace {

constexpr unsigned kArchReqXcompPerm = 0x1023;  // arch_prctl: ask for an extended state component
constexpr unsigned kXfeatureTileData = 18;
constexpr unsigned kTileLeaf = 0x1d;  // CPUID: what palettes of tiles there are

struct cpuid_leaf {
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};

cpuid_leaf read_leaf(unsigned leaf, unsigned subleaf) {
    cpuid_leaf r;
    __get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx);
    return r;
}

unsigned long long read_xcr0() {
    unsigned lo, hi;
    __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
    return (static_cast<unsigned long long>(hi) << 32) | lo;
}

bool bit(unsigned reg, int index) {
    return (reg >> index) & 1u;
}

// Palette 1 as the kernels use it: eight tiles of 16 rows of 64 bytes.
bool has_tiles_of_1_kb() {
    if (read_leaf(kTileLeaf, 0).eax < 1) return false;
    const cpuid_leaf palette = read_leaf(kTileLeaf, 1);
    const unsigned bytes_per_row = palette.ebx & 0xffff, num_tiles = palette.ebx >> 16;
    return num_tiles >= 8 && bytes_per_row >= 64 && (palette.ecx & 0xffff) >= 16;
}

// Tile state is granted to a process on request (Linux 5.16), for threads that run already too, and stays granted.
bool is_tile_state_granted() {
    return syscall(SYS_arch_prctl, kArchReqXcompPerm, kXfeatureTileData) == 0;
}

cpu_features read_cpu_features() {
    cpu_features f;
    const cpuid_leaf one = read_leaf(1, 0);
    if (!bit(one.ecx, 27)) return f;  // OSXSAVE: without it XCR0 cannot be read
    const unsigned long long xcr0 = read_xcr0();
    const bool ymm_saved = (xcr0 & 0x6) == 0x6;
    const bool zmm_saved = (xcr0 & 0xe6) == 0xe6;
    const bool tile_saved = (xcr0 & 0x60000) == 0x60000;
    const cpuid_leaf seven = read_leaf(7, 0);
    const cpuid_leaf seven_one = read_leaf(7, 1);
    f.avx2 = ymm_saved && bit(seven.ebx, 5) && bit(one.ecx, 12) && bit(one.ecx, 29);
    f.avx512 =
        f.avx2 && zmm_saved && bit(seven.ebx, 16) && bit(seven.ebx, 17) && bit(seven.ebx, 30) && bit(seven.ebx, 31);
    f.avx512_bf16 = f.avx512 && bit(seven_one.eax, 5);
    f.avx512_vnni = f.avx512 && bit(seven.ecx, 11);
    const bool has_amx = bit(seven.edx, 22) && bit(seven.edx, 24);  // AMX-BF16, AMX-TILE
    f.amx_bf16 = f.avx512_bf16 && tile_saved && has_amx && has_tiles_of_1_kb() && is_tile_state_granted();
    return f;
}

}  // namespace

cpu_features detect_cpu_features() {
    static const cpu_features kFound = read_cpu_features();
    return kFound;
}
#else
cpu_features detect_cpu_features() {
    return {};
}
#endif

int64_t third_cache_bytes() {
    std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index3/size");
    int64_t size = 0;
    char unit = 0;
    if (!(file >> size >> unit)) return 0;
    return unit == 'K' ? size << 10 : unit == 'M' ? size << 20 : 0;
}

}  // namespace octavo
