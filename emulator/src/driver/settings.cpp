#include "driver/settings.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

namespace weft::emulator {

namespace {

constexpr std::string_view kFunctions[] = {
#define WEFT_DRIVER(name, parameters) #name,
#include "driver/driver.def"
#undef WEFT_DRIVER
};

// The whole text as a decimal number.
std::optional<uint64_t> number_in(std::string_view text) {
    uint64_t number = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (rest != text.data() + text.size() || error != std::errc()) return std::nullopt;
    return number;
}
std::optional<uint64_t> number_in(std::string_view text, uint64_t least, uint64_t most) {
    const std::optional<uint64_t> number = number_in(text);
    return number && least <= *number && *number <= most ? number : std::nullopt;
}

// Passes the text of a setting to `read`, which returns whether it is valid.
template <class Read>
void read_setting(Settings& settings, const std::string& name, const char* expected, Read read) {
    const char* const text = std::getenv(name.c_str());
    if (!text || !*text || read(std::string_view(text))) return;
    settings.problem += (settings.problem.empty() ? "" : "; ") + name + " is '" + text + "', expected " + expected;
}

template <class Number>
void read_number(Settings& settings, const std::string& name, const char* expected, uint64_t least, uint64_t most,
                 Number& to) {
    read_setting(settings, name, expected, [&](std::string_view text) {
        const std::optional<uint64_t> number = number_in(text, least, most);
        if (number) to = static_cast<Number>(*number);
        return number.has_value();
    });
}

bool read_order(std::string_view text, Order& order) {
    if (text == "eager") {
        order.kind = Order::Kind::Eager;
        return true;
    }
    const std::optional<uint64_t> seed = number_in(text);
    if (seed && *seed != 0) {
        order.kind = Order::Kind::Random;
        order.random.seed(*seed);
    }
    return seed.has_value();
}

// function:call:code
bool read_failure(std::string_view text, Settings& settings) {
    const size_t first = text.find(':'), second = text.find(':', first == text.npos ? first : first + 1);
    if (second == text.npos) return false;
    const std::string_view function = text.substr(0, first);
    const auto call = number_in(text.substr(first + 1, second - first - 1), 1, UINT64_MAX);
    const auto result = number_in(text.substr(second + 1), 1, INT32_MAX);
    if (!call || !result || std::ranges::find(kFunctions, function) == std::end(kFunctions)) return false;
    settings.failing = function;
    settings.failing_call = *call;
    settings.failure = CUresult(*result);
    return true;
}

Settings read_environment() {
    Settings found;
    read_number(found, "WEFT_EMULATED_ARCH", "the number of an architecture from 50 to 200, as in 90", 50, 200,
                found.architecture);
    read_number(found, "WEFT_EMULATED_VERSION", "a version of CUDA from 11000 to 99000, as in 12080 for 12.8", 11000,
                99000, found.version);
    read_number(found, "WEFT_EMULATED_MEMORY", "the bytes of a device, as in 8589934592", 1, UINT64_MAX, found.memory);
    read_number(found, "WEFT_EMULATED_LIMIT", "how many instructions a warp may execute, as in 1000000000; 0: no limit",
                0, UINT64_MAX, found.most_instructions);
    read_number(found, "WEFT_EMULATED_RACES", "0 or 1, whether races are looked for", 0, 1, found.finds_races);
    read_setting(found, "WEFT_EMULATED_STREAMS", "a seed, as in 7, 0 for none, or eager",
                 [&](std::string_view text) { return read_order(text, found.order); });
    read_setting(found, "WEFT_EMULATED_FAIL",
                 "a function of the driver as it is exported, which of its calls fails, from 1 on, and with what code, "
                 "as in cuMemAllocAsync:3:2",
                 [&](std::string_view text) { return read_failure(text, found); });
    return found;
}

}  // namespace

const Settings& Settings::of_environment() {
    static const Settings* const settings = new Settings(read_environment());  // never destroyed, like the state
    return *settings;
}

}  // namespace weft::emulator
