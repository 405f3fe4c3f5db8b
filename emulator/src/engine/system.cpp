#include "engine/system.h"

#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

namespace weft::emulator {

namespace {

constexpr size_t kLongest = 65536;  // most characters of a kernel's text

std::mutex printed_mutex;
std::string& printed() {
    static std::string* text = new std::string;
    return *text;
}

std::mutex conditions_mutex;
std::map<uint64_t, uint32_t>& conditions() {
    static auto* values = new std::map<uint64_t, uint32_t>;
    return *values;
}

std::string text_at(Warp& warp, int lane, uint64_t address) {
    std::string text;
    while (text.size() < kLongest) {
        const char c = char(*warp.reach_generic(lane, address + text.size(), 1, Access::LoadStrong));
        if (!c) break;
        text += c;
    }
    return text;
}

// The arguments of a printf, each aligned to its size.
struct Arguments {
    Warp& warp;
    int lane;
    uint64_t at;
    template <class T>
    T next() {
        at = (at + sizeof(T) - 1) / sizeof(T) * sizeof(T);
        T value;
        std::memcpy(&value, warp.reach_generic(lane, at, sizeof(T), Access::LoadStrong), sizeof(T));
        at += sizeof(T);
        return value;
    }
};

template <class... T>
void append(std::string& out, const std::string& form, T... values) {
    char text[512];
    const int length = std::snprintf(text, sizeof text, form.c_str(), values...);
    if (length > 0) out.append(text, std::min<size_t>(size_t(length), sizeof text - 1));
}

// Formats one conversion, which begins at `at`, after the percent sign, with the host's snprintf.
void convert(std::string& out, const std::string& format, size_t& at, Arguments& arguments) {
    std::string form = "%";
    int longs = 0;
    while (at < format.size() && std::strchr("-+ #0123456789.*lhjztL", format[at])) {
        const char c = format[at++];
        if (c == '*') {
            form += std::to_string(arguments.next<int>());
        } else if (c == 'l' || c == 'j' || c == 'z' || c == 't') {
            longs += c == 'l' ? 1 : 2;
        } else if (c != 'h' && c != 'L') {
            form += c;
        }
    }
    if (at == format.size()) return;
    const char kind = format[at++];
    switch (kind) {
        case '%':
            out += '%';
            break;
        case 'd':
        case 'i':
        case 'u':
        case 'x':
        case 'X':
        case 'o':
            if (longs)
                append(out, form + "ll" + kind, arguments.next<long long>());
            else
                append(out, form + kind, arguments.next<int>());
            break;
        case 'c':
            append(out, form + kind, arguments.next<int>());
            break;
        case 'p':
            append(out, form + kind, reinterpret_cast<void*>(arguments.next<uint64_t>()));
            break;
        case 's':
            append(out, form + kind, text_at(arguments.warp, arguments.lane, arguments.next<uint64_t>()).c_str());
            break;
        case 'e':
        case 'E':
        case 'f':
        case 'F':
        case 'g':
        case 'G':
        case 'a':
        case 'A':
            append(out, form + kind, arguments.next<double>());
            break;
        default:
            (out += '%') += kind;
    }
}

uint64_t print(Warp& warp, int lane, const uint64_t* arguments) {
    const std::string format = text_at(warp, lane, arguments[0]);
    Arguments values{warp, lane, arguments[1]};
    std::string out;
    uint64_t conversions = 0;
    for (size_t at = 0; at < format.size();) {
        if (format[at] != '%') {
            out += format[at++];
            continue;
        }
        ++at;
        conversions += at < format.size() && format[at] != '%';
        convert(out, format, at, values);
    }
    const std::lock_guard lock(printed_mutex);
    printed() += out;
    return conversions;
}

}  // namespace

uint64_t call_system(Warp& warp, int lane, SystemCall call, const uint64_t* arguments) {
    switch (call) {
        case SystemCall::Printf:
            return print(warp, lane, arguments);
        case SystemCall::Assert:
            throw Fault(FaultKind::Assertion, lane,
                        text_at(warp, lane, arguments[1]) + ":" + std::to_string(uint32_t(arguments[2])) + ": " +
                            text_at(warp, lane, arguments[3]) + ": assertion '" + text_at(warp, lane, arguments[0]) +
                            "' failed");
        case SystemCall::Malloc: {
            const Allocation* made = AddressSpace::instance().allocate(warp.block().launch.program->device,
                                                                       arguments[0], Allocation::Kind::Heap);
            return made ? made->address : 0;
        }
        case SystemCall::Free:
            if (arguments[0] && !AddressSpace::instance().release(arguments[0], Allocation::Kind::Heap)) {
                throw Fault(FaultKind::UseAfterFree, lane,
                            "free() of " + hexadecimal(arguments[0]) + ", which malloc() has not given, or is free");
            }
            return 0;
        case SystemCall::SetCondition:
            set_condition(arguments[0], uint32_t(arguments[1]));
            return 0;
    }
    return 0;
}

void set_condition(uint64_t handle, uint32_t value) {
    const std::lock_guard lock(conditions_mutex);
    conditions()[handle] = value;
}

uint32_t condition_value(uint64_t handle) {
    const std::lock_guard lock(conditions_mutex);
    return conditions()[handle];
}

std::string take_printed() {
    const std::lock_guard lock(printed_mutex);
    return std::exchange(printed(), {});
}

}  // namespace weft::emulator
