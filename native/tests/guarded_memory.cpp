// Touches memory of the back end that is in use or, by the argument, that is not: AddressSanitizer must see the latter.
#include <cstring>
#include <memory>
#include <string>

#include "octavo/memory.h"

using namespace octavo;

int main(int argc, char** argv) {
    const std::string touched = argc > 1 ? argv[1] : "";
    constexpr size_t kSize = 100;
    const auto buffers = std::make_shared<arena>();
    const arena::buffer first = buffers->take(3 * kSize), large = buffers->take((size_t{3} << 20) + 8);
    volatile char* returned = buffers->take(kSize).get();
    const arena::buffer again = buffers->take(kSize - 4);  // the same memory
    slab weights;
    const slab::slice slice = weights.take(kSize), neighbour = weights.take(kSize);
    const region pages(kSize);
    std::memset(first.get(), 1, 3 * kSize);
    std::memset(large.get(), 1, (size_t{3} << 20) + 8);
    std::memset(again.get(), 1, kSize - 4);
    std::memset(slice.data, 1, kSize);
    std::memset(neighbour.data, 1, kSize);
    std::memset(pages.data(), 1, kSize);
    if (touched == "behind a buffer") first.get()[3 * kSize] = 1;
    if (touched == "behind a large buffer") large.get()[(size_t{3} << 20) + 8] = 1;
    if (touched == "behind a smaller buffer in the place of another") returned[kSize - 4] = 1;
    if (touched == "behind a slice") slice.data[kSize] = 1;
    if (touched == "before a slice") neighbour.data[-1] = 1;
    if (touched == "behind a region") pages.data()[kSize] = 1;
    if (touched == "a buffer that was returned") {
        volatile char* gone = buffers->take(50 * kSize).get();
        gone[0] = 1;
    }
    return 0;
}
