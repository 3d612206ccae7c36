// The thread pool by itself: every unit once, exceptions, many callers, forks, sleep. Exit status 0: all held.
#include "octavo/thread_pool.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <stdexcept>

using octavo::thread_pool;

namespace {

int num_failures = 0;

void expect(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "failed: %s\n", what);
    ++num_failures;
}

void every_unit_runs_once(thread_pool& pool) {
    for (int64_t num_units : {0, 1, 2, 3, 1000}) {
        for (int repeat = 0; repeat < 200; ++repeat) {
            std::vector<std::atomic<int>> counts(static_cast<size_t>(num_units));
            pool.run(num_units, [&](int64_t unit, int thread) {
                expect(thread >= 0 && thread < pool.num_threads(), "thread numbers are in range");
                counts[static_cast<size_t>(unit)].fetch_add(1);
            });
            for (const auto& count : counts) expect(count.load() == 1, "every unit runs once");
        }
    }
}

void an_exception_reaches_the_caller(thread_pool& pool) {
    for (int repeat = 0; repeat < 100; ++repeat) {
        bool was_caught = false;
        try {
            pool.run(50, [](int64_t unit, int) {
                if (unit == 7) throw std::runtime_error("unit 7");
            });
        } catch (const std::runtime_error& error) {
            was_caught = std::strcmp(error.what(), "unit 7") == 0;
        }
        expect(was_caught, "an exception reaches the caller");
    }
    every_unit_runs_once(pool);
}

void callers_take_turns(thread_pool& pool) {
    std::atomic<int> total{0};
    std::vector<std::thread> callers;
    for (int i = 0; i < 4; ++i) {
        callers.emplace_back([&] {
            for (int repeat = 0; repeat < 200; ++repeat) pool.run(10, [&](int64_t, int) { total.fetch_add(1); });
        });
    }
    for (std::thread& caller : callers) caller.join();
    expect(total.load() == 4 * 200 * 10, "callers take turns");
}

void a_pool_may_end_at_once() {
    for (int repeat = 0; repeat < 200; ++repeat) {
        thread_pool pool(3);
        if (repeat % 2) pool.run(5, [](int64_t, int) {});
    }
}

void expect_that_a_child_computes(thread_pool& pool) {
    const pid_t child = fork();
    if (child == 0) {
        alarm(10);
        num_failures = 0;
        every_unit_runs_once(pool);
        _exit(num_failures == 0 ? 0 : 1);
    }
    int status = 1;
    waitpid(child, &status, 0);
    expect(status == 0, "a forked child has a pool of its own");
}

void a_child_has_a_pool_of_its_own(thread_pool& pool) {
    expect_that_a_child_computes(pool);
    std::atomic<bool> is_in_a_call{false}, may_end{false};
    std::thread caller([&] {
        pool.run(50, [&](int64_t, int) {
            is_in_a_call.store(true);
            while (!may_end.load()) std::this_thread::yield();
        });
    });
    while (!is_in_a_call.load()) std::this_thread::yield();
    expect_that_a_child_computes(pool);
    may_end.store(true);
    caller.join();
    every_unit_runs_once(pool);
}

double cpu_seconds() {
    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

void idle_threads_sleep(thread_pool& pool) {
    pool.run(10, [](int64_t, int) {});
    const double before = cpu_seconds();
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    expect(cpu_seconds() - before < 0.02, "idle threads sleep");
}

}  // namespace

int main(int argc, char**) {
    thread_pool pool(3);
    every_unit_runs_once(pool);
    an_exception_reaches_the_caller(pool);
    callers_take_turns(pool);
    a_pool_may_end_at_once();
    idle_threads_sleep(pool);
    if (argc == 1) a_child_has_a_pool_of_its_own(pool);  // with an argument: under a sanitizer that cannot follow forks
    return num_failures == 0 ? 0 : 1;
}
