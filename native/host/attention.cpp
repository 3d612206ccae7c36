// paged_attention: how queries and keys are cut into units of work.
//
// A tile is some consecutive queries of a sequence and one kv head. When tiles are too few to keep the threads busy
// (one long sequence that decodes), their partitions of keys are units, and a second pass combines them; both ways give
// the same bits (cpu/attention_partitions.h).
#include <algorithm>

#include "octavo/backend.h"

namespace octavo {

namespace {

constexpr int64_t kRowsPerTile = 64;          // queries x heads of a group that share a pass over the keys
constexpr int64_t kTilesPerThread = 4;        // with fewer, partitions are handed out
constexpr int64_t kOperationsHere = 1500000;  // less (some 15 us) is done by the calling thread alone

struct plan {
    std::vector<attention_tile> tiles;
    int64_t num_operations = 0;
    int64_t num_partitions = 0;
};

int64_t tokens_per_tile(const attention_options& options) {
    return std::max<int64_t>(1, kRowsPerTile / (options.num_heads / options.num_kv_heads));
}

// Tokens [first, last) of T, all of sequence s.
void add_tiles(const step_batch& batch, const step_batch::group& group, const attention_options& options, int64_t s,
               int64_t first, int64_t last, plan& out) {
    const int64_t most = tokens_per_tile(options);
    // The last tiles of a sequence see the most keys; the longest work is handed out first.
    for (int64_t tile = ceil_div(last - first, most) - 1; tile >= 0; --tile) {
        attention_tile t{};
        t.block_table = group.block_table + s * group.max_blocks;
        t.first_token = first + tile * most;
        t.num_tokens = std::min(most, last - t.first_token);
        t.first_position = batch.positions[t.first_token];
        const int64_t first_key = options.window > 0 ? std::max<int64_t>(0, t.first_position - options.window + 1) : 0;
        const int64_t last_key = t.first_position + t.num_tokens;
        t.first_partition = first_key / kPartition;
        t.num_partitions = ceil_div(last_key, kPartition) - t.first_partition;
        for (t.kv_head = 0; t.kv_head < options.num_kv_heads; ++t.kv_head) out.tiles.push_back(t);
        out.num_operations += t.num_tokens * options.num_heads * (last_key - first_key) * options.head_dim * 4;
        out.num_partitions += options.num_kv_heads * t.num_partitions;
    }
}

// Tokens [first, last) of T, of any sequences.
plan cut_into_tiles(const step_batch& batch, const step_batch::group& group, const attention_options& options,
                    int64_t first, int64_t last) {
    plan out;
    if (first == last) return out;
    const int32_t* const starts = batch.query_start;
    int64_t s = std::upper_bound(starts, starts + batch.num_seqs, first) - starts - 1;
    for (; s < batch.num_seqs && starts[s] < last; ++s) {
        add_tiles(batch, group, options, s, std::max<int64_t>(first, starts[s]), std::min<int64_t>(last, starts[s + 1]),
                  out);
    }
    return out;
}

// Tiles [first, last) are computed by one thread, one after the other.
void chain(std::vector<attention_tile>& tiles, size_t first, size_t last) {
    for (size_t i = first; i + 1 < last; ++i) tiles[i].next = &tiles[i + 1];
}

attention_params attention_params_of(const void* q, void* out, const kv_cache& cache, const kv_cache::place& place,
                                     const attention_options& options) {
    return {q,
            out,
            cache.memory.data() + place.index * cache.layout.layer_bytes,
            cache.layout,
            options.num_heads,
            options.scale,
            options.softcap,
            options.window};
}

}  // namespace

size_t backend::attention_scratch_bytes(const attention_options& options, const kv_cache& cache) const {
    const attention_params p = attention_params_of(nullptr, nullptr, cache, {0, 0}, options);
    return kernels_.attention_scratch_bytes[index()](p, tokens_per_tile(options));
}

void backend::attend_here(const row_span& rows, const void* q, void* out, const step_batch& batch,
                          const kv_cache& cache, const kv_cache::place& place, const attention_options& options,
                          char* scratch) const {
    const attention_params p = attention_params_of(q, out, cache, place, options);
    plan work = cut_into_tiles(batch, batch.groups[static_cast<size_t>(place.group)], options, rows.first,
                               rows.first + rows.count);
    chain(work.tiles, 0, work.tiles.size());
    for (const attention_tile& tile : work.tiles) kernels_.attend[index()](p, tile, scratch);
}

tensor backend::paged_attention(const tensor& q, const step_batch& batch, const kv_cache& cache, int64_t layer,
                                const attention_options& options) {
    shape_check check("paged_attention");
    check.bind("T", batch.num_tokens, "batch");
    check.bind("K", cache.layout.num_kv_heads, "the cache");
    check.bind("D", cache.layout.head_dim, "the cache");
    check.bind_heads(options.num_heads, options.num_kv_heads, options.head_dim, "params");
    check.check(q, "q", type_, {"T", "H", "D"});
    check.require(cache.type == type_, "the cache is of another dtype");
    tensor out(*arena_, type_, {batch.num_tokens, options.num_heads * options.head_dim});
    const kv_cache::place place = cache.place_of(check, layer);
    const attention_params p = attention_params_of(q.data(), out.data(), cache, place, options);
    plan work = cut_into_tiles(batch, batch.groups[static_cast<size_t>(place.group)], options, 0, batch.num_tokens);
    const auto num_tiles = static_cast<int64_t>(work.tiles.size());
    const bool is_small = work.num_operations < kOperationsHere;
    const size_t scratch_bytes = attention_scratch_bytes(options, cache);
    const arena::buffer scratch = arena_->take(scratch_bytes * static_cast<size_t>(pool_.num_threads()));
    const auto scratch_of = [&](int thread) { return scratch.get() + static_cast<size_t>(thread) * scratch_bytes; };
    const auto attend = kernels_.attend[index()];
    if (is_small || num_tiles >= kTilesPerThread * pool_.num_threads() || num_tiles == work.num_partitions) {
        // The heads of a sequence follow each other on one thread where that leaves enough units: their keys and values
        // lie side by side.
        const bool has_many = num_tiles >= kTilesPerThread * pool_.num_threads() * options.num_kv_heads;
        const int64_t tiles_per_unit = is_small ? num_tiles : has_many ? options.num_kv_heads : 1;
        pool_.run(ceil_div(num_tiles, std::max<int64_t>(1, tiles_per_unit)), [&](int64_t unit, int thread) {
            const int64_t last = std::min((unit + 1) * tiles_per_unit, num_tiles);
            chain(work.tiles, static_cast<size_t>(unit * tiles_per_unit), static_cast<size_t>(last));
            for (int64_t i = unit * tiles_per_unit; i < last; ++i) {
                attend(p, work.tiles[static_cast<size_t>(i)], scratch_of(thread));
            }
        });
        return out;
    }

    struct part {
        int64_t tile, partition;
    };
    std::vector<part> parts;
    int64_t num_floats = 0;
    const int64_t heads = options.num_heads / options.num_kv_heads;
    for (int64_t i = 0; i < num_tiles; ++i) {
        const attention_tile& tile = work.tiles[static_cast<size_t>(i)];
        for (int64_t j = 0; j < tile.num_partitions; ++j) parts.push_back({i, j});
        num_floats += tile.num_partitions * tile.num_tokens * heads * (cache.layout.head_dim_padded + 2);
    }
    const arena::buffer partials = arena_->take(static_cast<size_t>(num_floats) * sizeof(float));
    auto* next = reinterpret_cast<float*>(partials.get());
    for (attention_tile& tile : work.tiles) {
        tile.partials = next;
        next += tile.num_partitions * tile.num_tokens * heads * (cache.layout.head_dim_padded + 2);
    }
    pool_.run(static_cast<int64_t>(parts.size()), [&](int64_t unit, int thread) {
        const part& own = parts[static_cast<size_t>(unit)];
        kernels_.attend_partition[index()](p, work.tiles[static_cast<size_t>(own.tile)], own.partition,
                                           scratch_of(thread));
    });
    for (const attention_tile& tile : work.tiles) kernels_.combine_partitions[index()](p, tile, scratch_of(0));
    return out;
}

}  // namespace octavo
