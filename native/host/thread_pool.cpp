#include "octavo/thread_pool.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <stdexcept>

#include "spin.h"

namespace octavo {

namespace {

void futex_wait(std::atomic<uint32_t>& word, uint32_t expected) {
    syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}

void futex_wake(std::atomic<uint32_t>& word, int count) {
    syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

// Counts forks this process is the child of, so that a pool can tell in nanoseconds that its threads are not here.
std::atomic<int> num_forks{0};

int watch_forks() {
    static const int registered = pthread_atfork(nullptr, nullptr, [] { num_forks.fetch_add(1); });
    return registered;
}

}  // namespace

thread_pool::thread_pool(int num_threads) : num_threads_(num_threads) {
    if (num_threads < 1) throw std::invalid_argument("num_threads must be >= 1");
    watch_forks();
    birth_ = num_forks.load();
    turn_.store(new turn{birth_, {}});
    start_workers();
}

thread_pool::~thread_pool() {
    if (birth_ != num_forks.load()) {
        abandon_workers();
        return;
    }
    stop_.store(true);
    signal_.fetch_add(1);
    futex_wake(signal_, INT_MAX);
    for (std::thread& worker : workers_) worker.join();
    delete turn_.load();
}

thread_pool::turn& thread_pool::present_turn() {
    turn* known = turn_.load();
    while (known->birth != num_forks.load()) {
        auto* const own = new turn{num_forks.load(), {}};
        // What the parent's thread may hold is not destroyed, only forgotten.
        if (turn_.compare_exchange_strong(known, own)) return *own;
        delete own;
    }
    return *known;
}

void thread_pool::start_workers() {
    for (int thread = 1; thread < num_threads_; ++thread) {
        workers_.emplace_back([this, thread] { work_loop(thread); });
    }
}

// In a forked child the threads are the parent's: their handles can neither be joined nor detached, only forgotten.
void thread_pool::abandon_workers() {
    new std::vector<std::thread>(std::move(workers_));
    workers_.clear();
}

bool thread_pool::try_claim(int64_t& unit) {
    uint64_t seen = tickets_.load(std::memory_order_acquire);
    while ((seen & 0xffffffffu) != 0) {
        if (tickets_.compare_exchange_weak(seen, seen - 1, std::memory_order_acq_rel)) {
            unit = num_units_ - static_cast<int64_t>(seen & 0xffffffffu);
            return true;
        }
    }
    return false;
}

void thread_pool::take_units(int thread) {
    for (int64_t unit; try_claim(unit);) {
        if (!has_error_.load(std::memory_order_relaxed)) {
            try {
                function_(context_, unit, thread);
            } catch (...) {
                if (!has_error_.exchange(true)) error_ = std::current_exception();
            }
        }
        finish_unit();
    }
}

void thread_pool::finish_unit() {
    if (unfinished_.fetch_sub(1) == 1 && caller_sleeps_.load()) futex_wake(unfinished_, 1);
}

void thread_pool::wait_until_done() {
    const auto is_done = [this] { return unfinished_.load(std::memory_order_acquire) == 0; };
    if (spin_until(is_done)) return;
    caller_sleeps_.store(true);
    for (uint32_t left; (left = unfinished_.load()) != 0;) futex_wait(unfinished_, left);
    caller_sleeps_.store(false);
}

void thread_pool::wait_for_news(uint32_t seen_signal) {
    const auto has_news = [&] { return signal_.load(std::memory_order_acquire) != seen_signal; };
    if (spin_until(has_news)) return;
    num_sleeping_.fetch_add(1);
    while (!has_news()) futex_wait(signal_, seen_signal);
    num_sleeping_.fetch_sub(1);
}

void thread_pool::work_loop(int thread) {
    for (;;) {
        // Read before looking for work or for the end: whatever comes later changes it and ends the wait.
        const uint32_t seen = signal_.load();
        if (stop_.load()) return;
        take_units(thread);
        wait_for_news(seen);
    }
}

void thread_pool::run_erased(int64_t num_units, unit_function function, const void* context) {
    if (num_units <= 0) return;
    if (num_units == 1 || num_threads_ == 1) {
        for (int64_t unit = 0; unit < num_units; ++unit) function(context, unit, 0);
        return;
    }
    const std::lock_guard<std::mutex> lock(present_turn().mutex);
    if (birth_ != num_forks.load()) {
        abandon_workers();
        num_sleeping_.store(0);
        tickets_.store(tickets_.load() >> 32 << 32);  // of a call that the parent was in
        birth_ = num_forks.load();
        start_workers();
    }
    function_ = function;
    context_ = context;
    num_units_ = num_units;
    has_error_.store(false);
    unfinished_.store(static_cast<uint32_t>(num_units));
    const uint64_t call = (tickets_.load() >> 32) + 1;
    tickets_.store(call << 32 | static_cast<uint64_t>(num_units), std::memory_order_release);
    signal_.fetch_add(1);
    if (num_sleeping_.load() > 0) futex_wake(signal_, INT_MAX);
    take_units(0);
    wait_until_done();
    if (has_error_.load()) {
        std::exception_ptr error;
        error.swap(error_);
        std::rethrow_exception(error);
    }
}

}  // namespace octavo
