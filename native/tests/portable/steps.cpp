#include "steps.h"

namespace octavo::checks {

step::step(const std::vector<chunk>& chunks) {
    for (const chunk& c : chunks) {
        const std::vector<float> own = draw(c.last * kWidth, static_cast<unsigned>(10 + c.sequence));
        x.insert(x.end(), own.begin() + c.first * kWidth, own.end());
        for (int64_t i = 0; i < kMaxBlocks; ++i) {
            table.push_back(static_cast<int32_t>(i * kNumSequences + c.sequence));
        }
        for (int64_t at = c.first; at < c.last; ++at) {
            const int64_t block = at / kBlockSize * kNumSequences + c.sequence;
            rows.push_back(static_cast<int32_t>(positions.size()));
            positions.push_back(static_cast<int32_t>(at));
            slots.push_back(static_cast<int32_t>(block * kBlockSize + at % kBlockSize));
        }
        query_start.push_back(static_cast<int32_t>(positions.size()));
        seq_lens.push_back(static_cast<int32_t>(c.last));
    }
}

step_batch step::batch() const {
    return {static_cast<int64_t>(positions.size()),
            static_cast<int64_t>(seq_lens.size()),
            positions.data(),
            query_start.data(),
            seq_lens.data(),
            {{slots.data(), table.data(), kMaxBlocks}},
            0};
}

rope_table make_rope(int64_t head_dim) {
    rope_table out{{}, {}, kMaxBlocks * kBlockSize, head_dim / 2};
    for (int64_t i = 0; i < out.max_position * out.half; ++i) {
        out.cos.push_back(static_cast<float>(i % 5) * 0.25f - 0.5f);
        out.sin.push_back(static_cast<float>(i % 7) * 0.25f - 0.75f);
    }
    return out;
}

}  // namespace octavo::checks
