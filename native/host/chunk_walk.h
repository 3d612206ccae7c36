// Chunks of rows on their way through the stages of a pass, taken on by whichever thread is free.
//
// Any thread may take the next stage of any chunk that nobody is at and that has what it needs; it takes the one that
// is furthest behind, so chunks stay close together and read the same matrices at about the same time. No thread waits
// for all others before the end, and one that the system stops holds up its own chunk and those that need it alone. A
// chunk that is furthest behind of all always has what it needs, so some thread can always go on.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

namespace octavo {

class chunk_walk {
  public:
    chunk_walk(int64_t num_chunks, int64_t num_stages);

    // A stage of `chunk` reads what earlier stages of `other` wrote. Before the walk only; may be said more than once.
    void add_need(int64_t chunk, int64_t other);

    // Called by every thread that takes part: work(chunk, stage) for stages 0, 1, .. of each chunk, each once. Returns
    // when nothing is left for the caller. An exception of `work` ends the walk of all and leaves here.
    template <class Work>
    void run(const Work& work) {
        for (claim own; try_claim(own); finish(own)) {
            try {
                work(own.chunk, own.stage);
            } catch (...) {
                give_up();
                throw;
            }
        }
    }

  private:
    struct claim {
        int64_t chunk = 0, stage = 0;
    };
    struct progress {
        int64_t stage = 0;  // the next
        bool is_taken = false;
        std::vector<int64_t> needs;  // other chunks
    };

    bool try_claim(claim& out);
    void finish(const claim& done);
    void give_up();
    bool find(claim& out);
    bool has_needs(const progress& chunk) const;

    const int64_t num_stages_;
    std::mutex mutex_;
    std::condition_variable news_;
    std::vector<progress> chunks_;
    int64_t num_left_;  // chunks with stages that nobody is at or has done
    int num_waiting_ = 0;
    bool is_given_up_ = false;
    std::atomic<uint32_t> num_finished_{0};  // changes with whatever may let a waiting thread go on
};

}  // namespace octavo
