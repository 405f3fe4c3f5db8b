#pragma once
// A time limit for work that can be suspended.
#include <chrono>
#include <optional>

namespace weft::emulator {

class Deadline {
public:
    // No limit.
    Deadline() = default;
    explicit Deadline(std::chrono::milliseconds from_now) : time_(std::chrono::steady_clock::now() + from_now) {}

    bool has_passed() const { return time_ && std::chrono::steady_clock::now() >= *time_; }

private:
    std::optional<std::chrono::steady_clock::time_point> time_;
};

}  // namespace weft::emulator
