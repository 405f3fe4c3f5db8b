// The accesses of the threads of a launch: finds races, and reads of memory that was never written. Code that was
// compiled for it calls weft_access; its first finding is the launch's fault.
//
// A race is: two threads access the same bytes without atomics, and one of them writes another number there.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "binary/cpu_abi.h"

namespace weft::runtime {

// Of one launch, whose threads run one after the other.
class Accesses {
public:
    struct Access {
        std::int64_t thread = -1;
        std::int32_t site = 0;
    };
    struct AccessedBytes {
        std::uintptr_t address;
        std::int64_t bytes;
        std::int64_t unit;  // bytes of a number
    };
    // The earlier access that this one races with; null if there is none.
    const Access* read(const AccessedBytes& range, Access by);
    const Access* written(const AccessedBytes& range, Access by);
    // Keeps the bytes until written().
    void before_write(const AccessedBytes& range);

private:
    static constexpr std::uintptr_t kPageBytes = 4096;
    struct Cell {
        Access writer, reader, other_reader;  // `other_reader` is another thread than `reader`
        bool changed = false;                 // by the writer
    };
    // Of each `unit` bytes.
    struct Page {
        std::uintptr_t unit;
        std::vector<Cell> cells;
    };
    Page& page_of(std::uintptr_t address, std::uintptr_t unit);
    template <class Visit>
    const Access* visit(const AccessedBytes& range, Visit&& visit);

    std::unordered_map<std::uintptr_t, Page> pages_;
    std::vector<std::byte> before_;
};

// Whether new memory that need not be zero is filled with kUnwritten.
void mark_new_memory(bool marks);
bool marks_new_memory();
void mark_unwritten(void* data, std::int64_t bytes);

}  // namespace weft::runtime

// `kind` is an AccessKind; `unit` the bytes of each number.
extern "C" void weft_access(const weft::LaunchContext* context, void* address, std::int64_t bytes, std::int64_t thread,
                            std::int32_t unit, std::int32_t kind, std::int32_t site) noexcept;
