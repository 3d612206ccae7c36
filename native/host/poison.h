// Memory of ours that nobody may touch at present, told to AddressSanitizer where it is built in; else nothing happens.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace octavo {

#if defined(__SANITIZE_ADDRESS__)
constexpr size_t kGuardBytes = 64;  // left between neighbours

inline void poison(const char* data, size_t num_bytes) {
    __asan_poison_memory_region(data, num_bytes);
}
inline void unpoison(const char* data, size_t num_bytes) {
    __asan_unpoison_memory_region(data, num_bytes);
}
#else
constexpr size_t kGuardBytes = 0;

inline void poison(const char*, size_t) {}
inline void unpoison(const char*, size_t) {}
#endif

}  // namespace octavo
