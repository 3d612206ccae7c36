// Threads that share out the units of one native call.
//
// run() hands units to whoever is free, by an atomic counter: on shared cores a static split would make everybody wait
// for the thread that was descheduled. The calling thread works too. While calls follow each other within 50 us a
// waiting thread spins; then it sleeps in the kernel and costs nothing.
//
// Threads inherit the affinity of the process; how many there are is the caller's choice. An exception of a unit
// reaches the caller after the other units have stopped. A forked child starts threads of its own at its first run(),
// also if another thread was inside a call at the fork.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace octavo {

class thread_pool {
  public:
    explicit thread_pool(int num_threads);  // the calling thread included
    ~thread_pool();
    thread_pool(const thread_pool&) = delete;
    thread_pool& operator=(const thread_pool&) = delete;

    int num_threads() const { return num_threads_; }

    // Calls work(unit, thread) for each unit in [0, num_units), thread in [0, num_threads). Calls from several threads
    // take turns; a call from within a unit is not allowed.
    template <class Work>
    void run(int64_t num_units, const Work& work) {
        run_erased(
            num_units,
            [](const void* context, int64_t unit, int thread) { (*static_cast<const Work*>(context))(unit, thread); },
            &work);
    }

  private:
    using unit_function = void (*)(const void* context, int64_t unit, int thread);

    // Whose turn it is. A fork copies a mutex that another thread holds, so a child has one of its own.
    struct turn {
        const int birth;
        std::mutex mutex;
    };

    turn& present_turn();
    void run_erased(int64_t num_units, unit_function function, const void* context);
    void start_workers();
    void abandon_workers();
    void work_loop(int thread);
    void wait_for_news(uint32_t seen_signal);
    bool try_claim(int64_t& unit);
    void take_units(int thread);
    void finish_unit();
    void wait_until_done();

    const int num_threads_;
    int birth_ = 0;  // how many forks the process was the child of when the threads started
    std::atomic<turn*> turn_{nullptr};
    std::vector<std::thread> workers_;

    // The present call. Plain fields are written before `tickets_` names the call and stay while a unit is unfinished.
    unit_function function_ = nullptr;
    const void* context_ = nullptr;
    int64_t num_units_ = 0;
    std::exception_ptr error_;
    std::atomic<bool> has_error_{false};

    // Number of the call (upper half) and units nobody has claimed yet (lower half): one word, so that a late thread
    // can never claim a unit of a call other than the one it saw.
    alignas(64) std::atomic<uint64_t> tickets_{0};
    alignas(64) std::atomic<uint32_t> unfinished_{0};
    std::atomic<bool> caller_sleeps_{false};
    alignas(64) std::atomic<uint32_t> signal_{0};  // changes with each call; workers sleep on it
    std::atomic<int> num_sleeping_{0};
    std::atomic<bool> stop_{false};
};

}  // namespace octavo
