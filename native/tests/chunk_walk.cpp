// The walk of chunks through stages by itself: order, needs, exceptions, more threads than chunks. Exit status 0: held.
#include "../host/chunk_walk.h"

#include <cstdio>
#include <stdexcept>
#include <thread>

using octavo::chunk_walk;

namespace {

std::atomic<int> num_failures{0};

void expect(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "failed: %s\n", what);
    num_failures.fetch_add(1);
}

template <class Work>
void by_threads(int num_threads, const Work& work) {
    std::vector<std::thread> threads;
    for (int i = 0; i < num_threads; ++i) threads.emplace_back(work);
    for (std::thread& thread : threads) thread.join();
}

// Plain memory that a stage writes and others read: a race would show under ThreadSanitizer.
void stages_follow_each_other_and_see_what_they_need(int num_threads, int64_t num_chunks, int64_t num_stages) {
    chunk_walk walk(num_chunks, num_stages);
    std::vector<std::vector<int64_t>> written(static_cast<size_t>(num_chunks));
    // A chunk needs its neighbours on both sides: needs may be mutual.
    for (int64_t c = 0; c < num_chunks; ++c) {
        walk.add_need(c, c);
        if (c > 0) walk.add_need(c, c - 1);
        if (c + 1 < num_chunks) walk.add_need(c, c + 1);
    }
    for (auto& list : written) list.assign(static_cast<size_t>(num_stages), -1);
    by_threads(num_threads, [&] {
        walk.run([&](int64_t chunk, int64_t stage) {
            auto& own = written[static_cast<size_t>(chunk)];
            expect(own[static_cast<size_t>(stage)] == -1, "every stage runs once");
            expect(stage == 0 || own[static_cast<size_t>(stage - 1)] == stage - 1, "stages run in order");
            for (const int64_t other : {chunk - 1, chunk + 1}) {
                if (stage == 0 || other < 0 || other >= num_chunks) continue;
                const auto& seen = written[static_cast<size_t>(other)];
                expect(seen[static_cast<size_t>(stage - 1)] == stage - 1, "what a stage needs has run");
            }
            own[static_cast<size_t>(stage)] = stage;
        });
    });
    for (const auto& own : written) expect(own.back() == num_stages - 1, "every chunk arrives");
}

void an_exception_ends_the_walk(int num_threads) {
    chunk_walk walk(4, 50);
    std::atomic<int> num_caught{0};
    by_threads(num_threads, [&] {
        try {
            walk.run([](int64_t chunk, int64_t stage) {
                if (chunk == 2 && stage == 7) throw std::runtime_error("7");
            });
        } catch (const std::runtime_error&) {
            num_caught.fetch_add(1);
        }
    });
    expect(num_caught.load() == 1, "an exception leaves the walk of its own thread, and the others return");
}

void waiting_threads_sleep_and_wake() {
    chunk_walk walk(2, 4);
    walk.add_need(1, 0);
    by_threads(2, [&] {
        walk.run([](int64_t chunk, int64_t) {
            if (chunk == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));  // longer than anybody spins
        });
    });
}

}  // namespace

int main() {
    for (int repeat = 0; repeat < 20; ++repeat) {
        for (const int num_threads : {1, 2, 5}) {
            for (const int64_t num_chunks : {1, 2, 3, 9}) {
                stages_follow_each_other_and_see_what_they_need(num_threads, num_chunks, 12);
            }
            stages_follow_each_other_and_see_what_they_need(num_threads, 3, 1);
            an_exception_ends_the_walk(num_threads);
        }
        waiting_threads_sleep_and_wake();
    }
    chunk_walk(0, 5).run([](int64_t, int64_t) { expect(false, "no chunks, no work"); });
    chunk_walk(5, 0).run([](int64_t, int64_t) { expect(false, "no stages, no work"); });
    return num_failures.load() == 0 ? 0 : 1;
}
