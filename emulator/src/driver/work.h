#pragma once
// The work of a stream: functions to be called, and the tasks in which they wait for their turn (task.h).
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/deadline.h"

namespace weft::emulator {

struct Context;

enum class Progress {
    Done,
    More,  // other work may come before the next piece
    Left,  // suspended within a piece at the deadline
};
// Does a piece of some work, or continues a suspended one.
using Pieces = std::function<Progress(const Deadline&)>;

// Work, which may be done many times: in one call, or each time in pieces. If neither is set, there is nothing to do.
struct Work {
    std::function<void()> whole;
    std::function<Pieces()> in_pieces;
    // Programmatic dependent launches: work that may begin before the work in front of it in the stream has ended, and
    // work that lets others do so.
    bool begins_early = false, lets_others_begin = false;

    Work() = default;
    Work(std::nullptr_t) {}
    template <class F>
        requires std::is_void_v<std::invoke_result_t<F&>>
    Work(F body) : whole(std::move(body)) {}
    template <class F>
        requires std::is_same_v<std::invoke_result_t<F&>, Pieces>
    Work(F begin) : in_pieces(std::move(begin)) {}
};

struct Task {
    Context* context = nullptr;
    std::function<void()> whole;
    Pieces pieces;                             // in place of `whole`
    std::vector<std::shared_ptr<Task>> after;  // predecessors that were not done when it was added
    uint64_t number = 0;                       // order of addition
    bool lets_others_begin = false;            // as in Work
    bool done = false;
    bool is_left = false;                        // the piece in progress is suspended
    std::chrono::steady_clock::time_point time;  // of its completion
};
using TaskPtr = std::shared_ptr<Task>;

}  // namespace weft::emulator
