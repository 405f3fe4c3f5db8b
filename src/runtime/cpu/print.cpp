#include "runtime/print.h"

#include <pthread.h>

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <mutex>
#include <utility>

namespace weft::runtime {

namespace {

// Never destroyed: a kernel on a worker thread may still print while the process runs its static destructors.
struct PrintBuffer {
    std::mutex mutex;
    std::string text;
    std::atomic<bool> filled{false};
};

PrintBuffer& buffer() {
    static PrintBuffer* const the_buffer = [] {
        // A fork while another thread prints must not leave the child with a locked mutex.
        pthread_atfork([] { buffer().mutex.lock(); }, [] { buffer().mutex.unlock(); }, [] { buffer().mutex.unlock(); });
        return new PrintBuffer;
    }();
    return *the_buffer;
}

}  // namespace

void append_print(std::string_view text) {
    if (text.empty()) return;
    PrintBuffer& to = buffer();
    const std::lock_guard lock(to.mutex);
    to.text += text;
    to.filled.store(true, std::memory_order_release);
}

bool has_prints() { return buffer().filled.load(std::memory_order_acquire); }

std::string take_prints() {
    PrintBuffer& from = buffer();
    const std::lock_guard lock(from.mutex);
    from.filled.store(false, std::memory_order_release);
    return std::exchange(from.text, {});
}

}  // namespace weft::runtime

extern "C" int weft_print(const char* format, ...) {
    // Nearly every line fits here; a longer one is formatted again at the length that the first try reports.
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    va_list again;
    va_copy(again, arguments);
    const int length = std::vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (length >= 0 && static_cast<std::size_t>(length) < sizeof line) {
        weft::runtime::append_print({line, static_cast<std::size_t>(length)});
    } else if (length >= 0) {
        std::string text(static_cast<std::size_t>(length) + 1, '\0');
        std::vsnprintf(text.data(), text.size(), format, again);
        text.pop_back();
        weft::runtime::append_print(text);
    } else {
        // Only a text that C cannot encode gets here; exceptions must not pass a kernel's frames.
        weft::runtime::append_print("print(): the text could not be formatted\n");
    }
    va_end(again);
    return length;
}
