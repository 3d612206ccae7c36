#include "octavo/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <new>

#include "poison.h"

namespace octavo {

namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kSlabBytes = size_t{64} << 20;
constexpr size_t kSmallestClass = 4096;
// Steps differ in size from one to the next: a buffer up to this much larger serves too, or each size would be held.
constexpr size_t kLoosestFit = 4;

size_t round_up(size_t n, size_t multiple) {
    return (n + multiple - 1) / multiple * multiple;
}

// Sizes are rounded up to a quarter of their power of two: at most a quarter is wasted, and few sizes exist.
size_t class_of(size_t num_bytes) {
    if (num_bytes <= kSmallestClass) return kSmallestClass;
    return round_up(num_bytes, std::bit_floor(num_bytes) / 4);
}

char* map_pages(size_t num_bytes) {
    // The start is moved to a huge page's border, and what lies outside is given back.
    const size_t asked = num_bytes + kHugePage;
    void* const mapped =
        mmap(nullptr, asked, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) throw std::bad_alloc();
    auto* const begin = static_cast<char*>(mapped);
    char* const start = reinterpret_cast<char*>(round_up(reinterpret_cast<size_t>(begin), kHugePage));
    if (start > begin) munmap(begin, static_cast<size_t>(start - begin));
    char* const end = start + num_bytes;
    if (begin + asked > end) munmap(end, static_cast<size_t>(begin + asked - end));
    madvise(start, num_bytes, MADV_HUGEPAGE);
    return start;
}

}  // namespace

region::region(size_t num_bytes) : num_bytes_(round_up(num_bytes == 0 ? 1 : num_bytes, 4096)) {
    if (num_bytes_ >= kHugePage) num_bytes_ = round_up(num_bytes_, kHugePage);
    data_ = map_pages(num_bytes_);
    poison(data_ + num_bytes, num_bytes_ - num_bytes);
}

region::~region() {
    unpoison(data_, num_bytes_);
    munmap(data_, num_bytes_);
}

slab::slice slab::take(size_t num_bytes) {
    const size_t aligned = round_up(num_bytes, 64) + kGuardBytes;
    if (!current_ || num_bytes_used_ + aligned > current_->num_bytes()) {
        current_ = std::make_shared<region>(std::max(kSlabBytes, aligned));
        num_bytes_used_ = 0;
        poison(current_->data(), current_->num_bytes());
    }
    char* const data = current_->data() + num_bytes_used_;
    num_bytes_used_ += aligned;
    unpoison(data, num_bytes);
    return {current_, data, num_bytes};
}

arena::~arena() {
    for (auto& [class_bytes, buffers] : free_) {
        for (char* data : buffers) {
            unpoison(data, class_bytes);
            if (class_bytes >= kHugePage) {
                munmap(data, round_up(class_bytes, kHugePage));
            } else {
                ::operator delete(data, std::align_val_t{64});
            }
        }
    }
}

arena::buffer arena::take(size_t num_bytes) {
    const size_t class_bytes = class_of(num_bytes);
    const std::lock_guard<std::mutex> lock(mutex_);
    for (auto found = free_.lower_bound(class_bytes); found != free_.end(); ++found) {
        if (found->first > kLoosestFit * class_bytes) break;
        if (found->second.empty()) continue;
        char* const data = found->second.back();
        found->second.pop_back();
        unpoison(data, num_bytes);
        return {data, {shared_from_this(), found->first}};
    }
    char* const data = class_bytes >= kHugePage ? map_pages(round_up(class_bytes, kHugePage))
                                                : static_cast<char*>(::operator new(class_bytes, std::align_val_t{64}));
    num_bytes_held_ += class_bytes;
    poison(data + num_bytes, class_bytes - num_bytes);
    return {data, {shared_from_this(), class_bytes}};
}

void arena::take_back(char* data, size_t class_bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    poison(data, class_bytes);
    free_[class_bytes].push_back(data);
}

size_t arena::num_bytes_held() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return num_bytes_held_;
}

}  // namespace octavo
