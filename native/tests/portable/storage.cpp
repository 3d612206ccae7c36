// dequantize: plain formats number by number; block formats, whose numbers are compared elsewhere, by their
// fingerprint.
#include <cmath>

#include "checks.h"
#include "octavo/dequantize.h"

namespace octavo::checks {

namespace {

struct block_format {
    const char* name;
    size_t size, num_bytes;
};
constexpr block_format kFormats[] = {{"float16", 1, 2},  {"q4_0", 32, 18},   {"q4_1", 32, 20},
                                     {"q5_0", 32, 22},   {"q5_1", 32, 24},   {"q8_0", 32, 34},
                                     {"q4_k", 256, 144}, {"q5_k", 256, 176}, {"q6_k", 256, 210}};

std::vector<uint8_t> draw_bytes(size_t count) {
    std::vector<uint8_t> out;
    for (const float value : draw(static_cast<int64_t>(count), 5)) {
        out.push_back(static_cast<uint8_t>(static_cast<int64_t>(value * 65536.0f)));
    }
    return out;
}

}  // namespace

void check_storage(report& out) {
    const std::vector<float> values = draw(100, 6);
    for (const dtype type : kTypes) {
        const numbers stored(type, values);
        std::vector<float> found(values.size());
        dequantize(name_of(type), static_cast<const uint8_t*>(stored.data()),
                   values.size() * static_cast<size_t>(item_bytes(type)), found.data(), found.size());
        out.same(std::string("dequantize ") + name_of(type), found, rounded(type, values));
    }
    for (const block_format& format : kFormats) {
        constexpr size_t kBlocks = 40;
        const std::vector<uint8_t> bytes = draw_bytes(kBlocks * format.num_bytes);
        std::vector<float> found(kBlocks * format.size, 12345.0f);
        dequantize(format.name, bytes.data(), bytes.size(), found.data(), found.size());
        out.mark(found);
    }
    std::vector<float> one(32);
    std::vector<uint8_t> block(34, 0xff);  // 0x3800 is one half in float16; the numbers are -1
    block[0] = 0x00;
    block[1] = 0x38;
    dequantize("q8_0", block.data(), block.size(), one.data(), one.size());
    out.near("dequantize q8_0", one, std::vector<double>(32, -0.5), {0, 0});
}

}  // namespace octavo::checks
