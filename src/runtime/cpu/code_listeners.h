// Machine code in memory, made known to perf and GDB.
//
// perf finds the code of a process in /tmp/perf-<pid>.map (a line a function: names in `perf report`) or in a jitdump
// file (names, instructions and lines, after `perf inject --jit`): tools/perf/Documentation/jitdump-specification.txt
// of Linux. GDB reads object files in memory that are listed in __jit_debug_descriptor: "JIT Interface" in GDB's
// manual. May be called from several threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>

namespace weft::runtime {

enum class PerfFormat { none, map, jitdump };

// Holds for code that is loaded afterwards. Throws UsageError if a file of that format cannot be written.
void set_perf_format(PerfFormat format);
PerfFormat perf_format();

// A relocatable object file that has been loaded.
struct LoadedObject {
    std::span<const std::byte> bytes;
    std::map<std::string, std::uint64_t> sections;              // addresses of those that take memory, by name
    std::function<std::string(const std::string&)> name_shown;  // of a symbol
};

// Announces the functions of an object to perf, and, if it has lines, the object to GDB. GDB forgets it when the result
// is destroyed, which must happen before the memory of the code is freed. Null if nothing listens.
class GdbEntry;
std::shared_ptr<GdbEntry> announce(const LoadedObject& object);

}  // namespace weft::runtime
