// One step of some sequences: the inputs of their tokens and where their keys and values lie.
#pragma once

#include "checks.h"
#include "octavo/backend.h"

namespace octavo::checks {

constexpr int64_t kWidth = 48, kBlockSize = 16, kMaxBlocks = 24, kNumSequences = 3;

// Tokens [first, last) of a sequence.
struct chunk {
    int64_t sequence, first, last;
};

// Blocks of the sequences lie between each other. One group of layers.
struct step {
    explicit step(const std::vector<chunk>& chunks);
    step_batch batch() const;  // unchecked; points into this

    std::vector<float> x;  // [T, kWidth], by sequence and position
    std::vector<int32_t> positions, slots, query_start{0}, seq_lens, table, rows;
};

// For every position of a sequence: no angles, but numbers that are exact on every machine.
rope_table make_rope(int64_t head_dim);

}  // namespace octavo::checks
