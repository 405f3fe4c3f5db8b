#include "runtime/out_of_memory.h"

#include <atomic>
#include <string>

#include "support/error.h"

namespace weft::runtime {
namespace {

std::atomic<void (*)()> memory_collector{nullptr};

// "1,234,567"
std::string grouped(std::int64_t number) {
    std::string text = std::to_string(number);
    for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, ",");
    return text;
}

// ": 12 of 34 bytes are free", if that is known.
std::string what_is_free(const Device& device) {
    try {
        const std::int64_t total = device.total_memory();
        if (total <= 0) return "";
        return ": " + grouped(device.free_memory()) + " of " + grouped(total) + " bytes are free";
    } catch (const Error&) {
        return "";
    }
}

}  // namespace

void set_memory_collector(void (*collect)()) { memory_collector = collect; }

void* take_memory(Device& device, std::int64_t size_bytes, bool zeroed, Stream& stream, const char* api) {
    if (void* const data = device.allocate(size_bytes, zeroed, stream)) return data;
    // During a capture, waiting is not allowed, and freed memory is kept for the graph.
    if (!stream.is_recorded()) {
        if (void (*const collect)() = memory_collector.load()) collect();
        device.make_room();
        if (void* const data = device.allocate(size_bytes, zeroed, stream)) return data;
    }
    throw UsageError(api,
                     "cannot allocate " + grouped(size_bytes) + " bytes on '" + device.alias + "'" +
                         what_is_free(device) +
                         ". help: delete arrays that are not needed any more, or work on parts of the data",
                     ErrorCategory::memory);
}

}  // namespace weft::runtime
