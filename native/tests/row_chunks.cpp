// Rows of a step by themselves: what they cost, where they are cut, which chunks wait for which. Exit status 0: held.
#include "../host/row_chunks.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>

using namespace octavo;

namespace {

constexpr int64_t kBlockSize = 16;
using milliseconds = std::chrono::milliseconds;

int num_failures = 0;

void expect(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "failed: %s\n", what);
    ++num_failures;
}

// `count` tokens behind `start` others, in these blocks.
struct sequence {
    int32_t start, count;
    std::vector<int32_t> blocks;
};

class step {
  public:
    explicit step(const std::vector<sequence>& sequences) {
        for (const sequence& s : sequences) max_blocks_ = std::max(max_blocks_, s.blocks.size());
        for (const sequence& s : sequences) {
            for (int32_t at = s.start; at < s.start + s.count; ++at) {
                const int32_t block = s.blocks[static_cast<size_t>(at / kBlockSize)];
                positions_.push_back(at);
                slots_.push_back(static_cast<int32_t>(block * kBlockSize + at % kBlockSize));
            }
            table_.insert(table_.end(), s.blocks.begin(), s.blocks.end());
            table_.resize(table_.size() + max_blocks_ - s.blocks.size());
            query_start_.push_back(static_cast<int32_t>(positions_.size()));
        }
    }

    step_batch batch() const {
        step_batch out{};
        out.num_tokens = static_cast<int64_t>(positions_.size());
        out.num_seqs = static_cast<int64_t>(query_start_.size()) - 1;
        out.positions = positions_.data();
        out.query_start = query_start_.data();
        out.groups = {{slots_.data(), table_.data(), static_cast<int64_t>(max_blocks_)}};
        return out;
    }

  private:
    size_t max_blocks_ = 0;
    std::vector<int32_t> positions_, slots_, table_, query_start_{0};
};

// Whether chunk `reader` is held back from its second stage while chunk `writer` is at its first, for `limit` at most.
bool waits(const step_batch& batch, const std::vector<row_span>& chunks, int64_t reader, int64_t writer,
           milliseconds limit) {
    chunk_walk walk(static_cast<int64_t>(chunks.size()), 2);
    add_needs(walk, chunks, batch, batch.groups[0], kBlockSize);
    std::atomic<bool> is_past{false};
    bool is_held = false;
    const auto join = [&] {
        walk.run([&](int64_t chunk, int64_t stage) {
            if (chunk == reader && stage == 1) is_past = true;
            if (chunk != writer || stage != 0) return;
            const auto end = std::chrono::steady_clock::now() + limit;
            while (!is_past && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(milliseconds(1));
            is_held = !is_past;
        });
    };
    std::thread other(join);
    join();
    other.join();
    return is_held;
}

void expect_wait(const step& s, const std::vector<row_span>& chunks, int64_t reader, int64_t writer, const char* what) {
    expect(waits(s.batch(), chunks, reader, writer, milliseconds(50)), what);
}
void expect_none(const step& s, const std::vector<row_span>& chunks, int64_t reader, int64_t writer, const char* what) {
    expect(!waits(s.batch(), chunks, reader, writer, milliseconds(20000)), what);
}

void chunks_wait_for_what_they_read() {
    const step prompt({{0, 64, {3, 1, 4, 2}}});
    expect_wait(prompt, {{0, 32}, {32, 32}}, 1, 0, "the end of a prompt reads its beginning");
    expect_none(prompt, {{0, 32}, {32, 32}}, 0, 1, "the beginning of a prompt does not read its end");
    expect_wait(prompt, {{0, 40}, {40, 24}}, 0, 1, "two chunks in one block need each other");
    const step tokens({{40, 1, {1, 2, 3}}, {20, 1, {4, 5}}});
    expect_none(tokens, {{0, 1}, {1, 1}}, 0, 1, "sequences that share nothing do not wait");
    expect_none(tokens, {{0, 1}, {1, 1}}, 1, 0, "sequences that share nothing do not wait");
    const step behind({{0, 32, {1, 2}}, {32, 8, {1, 2, 3}}});
    expect_wait(behind, {{0, 32}, {32, 8}}, 1, 0, "a prefix is read where another sequence writes it");
    expect_none(behind, {{0, 32}, {32, 8}}, 0, 1, "who writes a prefix does not wait for its readers");
    const step before({{32, 8, {1, 2, 3}}, {0, 32, {1, 2}}});
    expect_wait(before, {{0, 8}, {8, 32}}, 0, 1, "a prefix is read where a later sequence writes it");
    const step old({{33, 1, {1, 2, 3}}, {35, 1, {1, 2, 4}}});
    expect_none(old, {{0, 1}, {1, 1}}, 1, 0, "a prefix of earlier steps makes nobody wait");
}

void chunks_are_all_rows_in_order() {
    for (const int64_t num_rows : {1, 2, 5, 48, 144, 145, 700}) {
        for (const int64_t num_threads : {1, 2, 3, 7}) {
            std::vector<double> costs;
            for (int64_t row = 0; row < num_rows; ++row) costs.push_back(1.0 + static_cast<double>(row * 37 % 11));
            int64_t next = 0;
            for (const row_span& chunk : cut_rows(costs, num_threads, 12)) {
                expect(chunk.first == next && chunk.count > 0, "a chunk begins where the last one ended");
                next = chunk.first + chunk.count;
            }
            expect(next == num_rows, "every row is in a chunk");
        }
    }
}

void few_rows_are_cut_by_cost() {
    const std::vector<row_span> even = cut_rows(std::vector<double>(60, 5.0), 3, 12);
    expect(even.size() == 3 && even[0].count == 20 && even[2].count == 20, "rows of equal cost are cut evenly");
    std::vector<double> costs(50, 1.0);
    costs[0] = 10;
    const std::vector<row_span> cut = cut_rows(costs, 2, 12);
    expect(cut.size() == 2 && cut[0].count == 20, "a dear row counts for many");
    expect(is_balanced(cut, costs, 2), "a dear row that others make up for is in balance");
    costs[0] = 100;
    expect(!is_balanced(cut_rows(costs, 2, 12), costs, 2), "a row that costs more than all others is not");
}

void keys_beyond_a_window_cost_nothing() {
    decoder_layer wide{}, narrow{};
    for (decoder_layer* layer : {&wide, &narrow}) layer->attention.options = {4, 2, 16, 1.0f, 0, 0.0f};
    narrow.attention.options.window = 32;
    const step s({{0, 2, {1}}, {999, 1, std::vector<int32_t>(63, 2)}});
    const auto costs = [&](std::vector<decoder_layer> layers) {
        return costs_of_rows(s.batch(), dtype::bfloat16, layers, 1000);
    };
    const std::vector<double> all = costs({wide}), some = costs({narrow}), both = costs({wide, narrow});
    expect(all.size() == 3, "each row has a cost");
    expect(all[1] - 1000 == 2 * (all[0] - 1000), "the second token sees two keys");
    expect(some[0] == all[0] && some[1] == all[1], "a window that is not full is none");
    expect((some[2] - 1000) * 1000 == (all[2] - 1000) * 32, "a window is as many keys as it has");
    expect(both[2] - 1000 == all[2] - 1000 + some[2] - 1000, "layers cost what they look at");
}

}  // namespace

int main() {
    chunks_wait_for_what_they_read();
    chunks_are_all_rows_in_order();
    few_rows_are_cut_by_cost();
    keys_beyond_a_window_cost_nothing();
    return num_failures == 0 ? 0 : 1;
}
