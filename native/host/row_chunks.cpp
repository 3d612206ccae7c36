#include "row_chunks.h"

#include <algorithm>
#include <map>

namespace octavo {

namespace {

constexpr int64_t kMaxChunkRows = 72;  // with inputs and outputs of a feed-forward block in a second cache of 1 MB
// Beside an operation of a product: one of attention between many queries and a key, and a byte of a key or value that
// a single query reads from memory (docs/log.md).
constexpr double kAttentionFactor = 2;
constexpr double kOperationsPerByte = 13;
constexpr double kMostImbalance = 1.25;

}  // namespace

std::vector<double> costs_of_rows(const step_batch& batch, dtype cache_type, const std::vector<decoder_layer>& layers,
                                  int64_t operations_per_row) {
    const attention_options& options = layers.front().attention.options;
    const auto d = static_cast<double>(options.head_dim);
    const double shared_key = 4 * d * static_cast<double>(options.num_heads) * kAttentionFactor;
    const double lone_key =
        2 * d * static_cast<double>(options.num_kv_heads * item_bytes(cache_type)) * kOperationsPerByte;
    std::map<int64_t, double> layers_by_window;  // 0: those that see all keys
    for (const decoder_layer& layer : layers) layers_by_window[layer.attention.options.window] += 1;
    std::vector<double> out;
    for (int64_t s = 0; s < batch.num_seqs; ++s) {
        const int64_t first = batch.query_start[s], last = batch.query_start[s + 1];
        const double key = last - first == 1 ? std::max(lone_key, shared_key) : shared_key;
        for (int64_t t = first; t < last; ++t) {
            const int64_t num_known = int64_t{batch.positions[t]} + 1;
            double num_keys = 0;
            for (const auto& [window, num_layers] : layers_by_window) {
                num_keys += num_layers * static_cast<double>(window > 0 ? std::min(window, num_known) : num_known);
            }
            out.push_back(static_cast<double>(operations_per_row) + key * num_keys);
        }
    }
    return out;
}

std::vector<row_span> cut_rows(const std::vector<double>& costs, int64_t num_threads, int64_t block_rows) {
    const auto num_rows = static_cast<int64_t>(costs.size());
    std::vector<row_span> out;
    if (num_rows > num_threads * kMaxChunkRows) {
        const int64_t num_blocks = ceil_div(num_rows, block_rows);
        const int64_t per_thread = ceil_div(ceil_div(num_rows, kMaxChunkRows), num_threads);
        const int64_t num_chunks = std::min(num_blocks, per_thread * num_threads);
        for (int64_t chunk = 0, first = 0; chunk < num_chunks; ++chunk) {
            const int64_t last = std::min(block_start(num_blocks, num_chunks, chunk + 1) * block_rows, num_rows);
            out.push_back({first, last - first});
            first = last;
        }
        return out;
    }
    double total = 0, before = 0;
    for (const double cost : costs) total += cost;
    for (int64_t row = 0, first = 0; row < num_rows; ++row) {
        before += costs[static_cast<size_t>(row)];
        const auto share = static_cast<double>(out.size() + 1) / static_cast<double>(num_threads);
        const double half = row + 1 < num_rows ? costs[static_cast<size_t>(row + 1)] / 2 : 0;
        if (row + 1 < num_rows && before + half < total * share) continue;
        out.push_back({first, row + 1 - first});
        first = row + 1;
    }
    return out;
}

bool is_balanced(const std::vector<row_span>& chunks, const std::vector<double>& costs, int64_t num_threads) {
    double total = 0, most = 0;
    for (const row_span& chunk : chunks) {
        double own = 0;
        for (int64_t row = chunk.first; row < chunk.first + chunk.count; ++row) own += costs[static_cast<size_t>(row)];
        total += own;
        most = std::max(most, own);
    }
    return most * static_cast<double>(num_threads) <= kMostImbalance * total;
}

void add_needs(chunk_walk& walk, const std::vector<row_span>& chunks, const step_batch& batch,
               const step_batch::group& group, int64_t block_size) {
    struct writer {
        int32_t block;
        int64_t chunk;
    };
    std::vector<writer> writers;
    for (size_t chunk = 0; chunk < chunks.size(); ++chunk) {
        for (int64_t t = chunks[chunk].first; t < chunks[chunk].first + chunks[chunk].count; ++t) {
            const writer own{static_cast<int32_t>(group.slots[t] / block_size), static_cast<int64_t>(chunk)};
            if (writers.empty() || writers.back().block != own.block || writers.back().chunk != own.chunk) {
                writers.push_back(own);
            }
        }
    }
    std::sort(writers.begin(), writers.end(), [](const writer& a, const writer& b) { return a.block < b.block; });
    const auto is_before = [](const writer& a, int32_t block) { return a.block < block; };
    for (size_t chunk = 0; chunk < chunks.size(); ++chunk) {
        const int64_t first = chunks[chunk].first, last = first + chunks[chunk].count;
        for (int64_t s = 0; s < batch.num_seqs; ++s) {
            const int64_t last_own = std::min<int64_t>(last, batch.query_start[s + 1]) - 1;
            if (last_own < std::max<int64_t>(first, batch.query_start[s])) continue;
            const int32_t* const blocks = group.block_table + s * group.max_blocks;
            for (int64_t i = 0; i <= batch.positions[last_own] / block_size; ++i) {
                auto found = std::lower_bound(writers.begin(), writers.end(), blocks[i], is_before);
                for (; found != writers.end() && found->block == blocks[i]; ++found) {
                    walk.add_need(static_cast<int64_t>(chunk), found->chunk);
                }
            }
        }
    }
}

}  // namespace octavo
