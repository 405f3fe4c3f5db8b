// The memory of arrays on each device during a watch: wp.ScopedMemoryTracker.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace weft::runtime {

class Device;

inline constinit std::atomic<int> memory_watchers{0};
inline bool is_memory_watched() { return memory_watchers.load(std::memory_order_relaxed) != 0; }

// Memory for an array was taken: the number that it has from now on.
std::uint64_t note_taken(const Device& device, std::int64_t size_bytes);
void describe_taken(std::uint64_t number, const std::string& what);
void note_freed(std::uint64_t number);

// Gives the place in the program that asks for memory, "<file>:12 : advance()"; empty if it is not known.
void set_allocation_site(std::string (*site)());

class MemoryWatch {
public:
    struct Piece {
        std::string device;
        std::int64_t size_bytes = 0;
        std::string what, site;
    };
    struct Use {
        std::int64_t allocations = 0, size_bytes = 0;  // in all
        std::int64_t live_bytes = 0, most_bytes = 0;
    };
    struct State {
        std::map<std::string, Use> uses;  // by the names of devices
        std::vector<Piece> live;          // oldest first
    };

    MemoryWatch();
    ~MemoryWatch();
    MemoryWatch(const MemoryWatch&) = delete;
    MemoryWatch& operator=(const MemoryWatch&) = delete;

    // From now on nothing is added.
    void stop();
    // As if it began now.
    void clear();
    State state() const;

private:
    friend std::uint64_t note_taken(const Device&, std::int64_t);
    friend void describe_taken(std::uint64_t, const std::string&);
    friend void note_freed(std::uint64_t);

    bool is_on_ = true;
    std::map<std::string, Use> uses_;
    std::map<std::uint64_t, Piece> live_;
};

}  // namespace weft::runtime
