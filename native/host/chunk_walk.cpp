#include "chunk_walk.h"

#include <algorithm>

#include "spin.h"

namespace octavo {

chunk_walk::chunk_walk(int64_t num_chunks, int64_t num_stages)
    : num_stages_(num_stages), chunks_(static_cast<size_t>(num_chunks)), num_left_(num_stages > 0 ? num_chunks : 0) {}

void chunk_walk::add_need(int64_t chunk, int64_t other) {
    std::vector<int64_t>& needs = chunks_[static_cast<size_t>(chunk)].needs;
    if (chunk != other && std::find(needs.begin(), needs.end(), other) == needs.end()) needs.push_back(other);
}

bool chunk_walk::has_needs(const progress& chunk) const {
    return std::all_of(chunk.needs.begin(), chunk.needs.end(),
                       [&](int64_t other) { return chunks_[static_cast<size_t>(other)].stage >= chunk.stage; });
}

bool chunk_walk::find(claim& out) {
    progress* best = nullptr;
    for (progress& chunk : chunks_) {
        if (chunk.is_taken || chunk.stage == num_stages_ || (best && best->stage <= chunk.stage)) continue;
        if (has_needs(chunk)) best = &chunk;
    }
    if (!best) return false;
    best->is_taken = true;
    out = {best - chunks_.data(), best->stage};
    if (best->stage == num_stages_ - 1) --num_left_;
    return true;
}

bool chunk_walk::try_claim(claim& out) {
    std::unique_lock<std::mutex> lock(mutex_);
    while (num_left_ > 0 && !is_given_up_) {
        if (find(out)) return true;
        const uint32_t seen = num_finished_.load();
        const auto has_news = [&] { return num_finished_.load(std::memory_order_acquire) != seen; };
        lock.unlock();
        const bool is_soon = spin_until(has_news);
        lock.lock();
        if (is_soon) continue;
        ++num_waiting_;
        news_.wait(lock, has_news);
        --num_waiting_;
    }
    return false;
}

void chunk_walk::finish(const claim& done) {
    const std::lock_guard<std::mutex> lock(mutex_);
    progress& chunk = chunks_[static_cast<size_t>(done.chunk)];
    chunk.stage = done.stage + 1;
    chunk.is_taken = false;
    num_finished_.fetch_add(1);
    if (num_waiting_ > 0) news_.notify_all();
}

void chunk_walk::give_up() {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_given_up_ = true;
    num_finished_.fetch_add(1);
    news_.notify_all();
}

}  // namespace octavo
