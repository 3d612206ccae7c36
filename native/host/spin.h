// Waiting for another thread: a short while awake, so that a hand-over within a step costs no system call.
#pragma once

#include <time.h>

#include <cstdint>

namespace octavo {

constexpr int64_t kSpinNs = 50'000;

static inline int64_t monotonic_ns() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1'000'000'000 + t.tv_nsec;
}

static inline void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

// Spins until is_ready() or kSpinNs have passed: false. The clock is read once in a while only.
template <class Ready>
bool spin_until(Ready is_ready) {
    const int64_t deadline = monotonic_ns() + kSpinNs;
    for (;;) {
        for (int i = 0; i < 64; ++i) {
            if (is_ready()) return true;
            relax();
        }
        if (monotonic_ns() > deadline) return false;
    }
}

}  // namespace octavo
