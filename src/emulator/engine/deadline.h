#pragma once
// Until when work that can be left in the middle goes on.
#include <chrono>
#include <optional>

namespace weft::emulator {

class Deadline {
public:
    // To the end, however long it takes.
    Deadline() = default;
    explicit Deadline(std::chrono::milliseconds from_now) : time_(std::chrono::steady_clock::now() + from_now) {}

    bool has_passed() const { return time_ && std::chrono::steady_clock::now() >= *time_; }

private:
    std::optional<std::chrono::steady_clock::time_point> time_;
};

}  // namespace weft::emulator
