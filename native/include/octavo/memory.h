// Memory of the back end: large zeroed regions in huge pages, slices of them for weights, and an arena of buffers that
// are used again and again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace octavo {

// Anonymous zeroed memory, in huge pages where the system grants them. Pages exist once they are touched.
class region {
  public:
    explicit region(size_t num_bytes);
    ~region();
    region(const region&) = delete;
    region& operator=(const region&) = delete;

    char* data() const { return data_; }
    size_t num_bytes() const { return num_bytes_; }

  private:
    char* data_ = nullptr;
    size_t num_bytes_ = 0;
};

// Zeroed memory for what stays as long as the back end, laid end to end in large regions: a matrix smaller than a huge
// page shares one with its neighbours. A region goes when the last slice of it goes. Not thread-safe.
class slab {
  public:
    struct slice {
        std::shared_ptr<region> owner;
        char* data = nullptr;
        size_t num_bytes = 0;
    };
    slice take(size_t num_bytes);  // 64-byte aligned

  private:
    std::shared_ptr<region> current_;
    size_t num_bytes_used_ = 0;
};

// Buffers handed out and taken back; after a few steps of a kind no step asks the system for memory. Thread-safe.
class arena : public std::enable_shared_from_this<arena> {
  public:
    struct returner {
        std::shared_ptr<arena> owner;
        size_t class_bytes = 0;
        void operator()(char* data) const { owner->take_back(data, class_bytes); }
    };
    using buffer = std::unique_ptr<char, returner>;

    arena() = default;
    ~arena();
    arena(const arena&) = delete;
    arena& operator=(const arena&) = delete;

    buffer take(size_t num_bytes);  // 64-byte aligned, contents undefined
    size_t num_bytes_held() const;  // from the system, in use or not

  private:
    void take_back(char* data, size_t class_bytes);

    mutable std::mutex mutex_;
    std::map<size_t, std::vector<char*>> free_;  // class size -> buffers
    size_t num_bytes_held_ = 0;
};

}  // namespace octavo
