#include "runtime/print.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdio>
#include <cstring>
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

constexpr std::string_view kCut = "...";

// %[flags][width][.precision][length]conversion
struct Conversion {
    std::string flags;  // with width and precision
    bool is_long = false;
    int halves = 0;  // 1 of "h", 2 of "hh"
    char kind = 0;
};

Conversion read_conversion(const std::string& format, std::size_t& at) {
    Conversion read;
    while (at < format.size() && std::strchr("-+ #0123456789.'", format[at]) != nullptr) read.flags += format[at++];
    for (; at < format.size() && std::strchr("hljztL", format[at]) != nullptr; ++at) {
        if (format[at] == 'h')
            ++read.halves;
        else
            read.is_long = true;
    }
    if (at < format.size()) read.kind = format[at++];
    return read;
}

template <typename Number>
std::string formatted(const std::string& format, Number number) {
    char text[128];
    const int length = std::snprintf(text, sizeof text, format.c_str(), number);
    if (length < 0) return "";
    if (static_cast<std::size_t>(length) < sizeof text) return {text, static_cast<std::size_t>(length)};  // "%c" of 0
    std::string longer(static_cast<std::size_t>(length) + 1, '\0');
    std::snprintf(longer.data(), longer.size(), format.c_str(), number);
    longer.pop_back();
    return longer;
}

// Integers without a length have 32 bits.
std::string converted(const Conversion& conversion, std::int64_t word) {
    const std::string begin = "%" + conversion.flags;
    switch (conversion.kind) {
        case 'd':
        case 'i':
            if (conversion.halves == 1) return formatted(begin + "d", static_cast<std::int16_t>(word));
            if (conversion.halves > 1) return formatted(begin + "d", static_cast<std::int8_t>(word));
            return formatted(begin + "lld", conversion.is_long ? static_cast<long long>(word) : static_cast<int>(word));
        case 'u':
        case 'x':
        case 'X':
        case 'o': {
            const auto bits = static_cast<unsigned long long>(word);
            const int width = conversion.is_long ? 64 : 32 >> std::min(conversion.halves, 2);
            const unsigned long long mask = width == 64 ? ~0ull : (1ull << width) - 1;
            return formatted(begin + "ll" + conversion.kind, bits & mask);
        }
        case 'c':
            return formatted(begin + "c", static_cast<int>(word));
        case 'p':
            return formatted(begin + "p", reinterpret_cast<const void*>(word));
        default:
            return formatted(begin + conversion.kind, std::bit_cast<double>(word));
    }
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

std::string format_text(const std::string& format, const std::int64_t* arguments, std::size_t count) {
    std::string text;
    std::size_t used = 0;
    for (std::size_t at = 0; at < format.size();) {
        if (format[at] != '%') {
            text += format[at++];
        } else if (at + 1 < format.size() && format[at + 1] == '%') {
            text += '%';
            at += 2;
        } else {
            ++at;
            const Conversion conversion = read_conversion(format, at);
            if (used == count) return text.append(kCut);
            text += converted(conversion, arguments[used++]);
        }
    }
    return text;
}

void set_message(Fault& fault, std::string text) {
    constexpr std::size_t kMost = sizeof fault.message - 1;
    if (text.size() > kMost) {
        std::size_t end = kMost - kCut.size();
        while ((static_cast<unsigned char>(text[end]) & 0xC0u) == 0x80u) --end;
        text.replace(end, std::string::npos, kCut);
    }
    text.copy(fault.message, text.size());
    fault.message[text.size()] = '\0';
}

}  // namespace weft::runtime

extern "C" void weft_print_words(const char* format, const std::int64_t* words, std::int64_t count) {
    weft::runtime::append_print(weft::runtime::format_text(format, words, static_cast<std::size_t>(count)));
}
