#pragma once
// Work that was put into streams and has not been done.
//
// A task is done when somebody waits for it, or for one that comes after it. Which other tasks are done before, and in
// which order, is chosen against the program, within what streams, events and the legacy stream promise: a program that
// forgets to wait reads old numbers here, where a GPU would give it new ones most of the time.
//
// Who waits, waits to the end. Who asks whether a task is done has a part of the work done, of kernels no more than
// what takes kPart: so a program that asks again and again can go away while a kernel is in the middle, and other tasks
// may be done meanwhile. The kernel goes on when somebody waits for it, or asks.
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <type_traits>
#include <vector>

#include "emulator/engine/deadline.h"

namespace weft::emulator {

struct Context;
struct Stream;

enum class Progress {
    Done,
    More,  // other work may come before the next piece
    Left,  // in the middle of a piece, as the time has come
};
// Does a piece of some work, or goes on with it where it was left.
using Pieces = std::function<Progress(const Deadline&)>;

// What is to be done, maybe many times: in one go, or, each time, in pieces. Neither: nothing.
struct Work {
    std::function<void()> whole;
    std::function<Pieces()> in_pieces;

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
    Pieces pieces;                             // in place of that
    std::vector<std::shared_ptr<Task>> after;  // those that were not done when it was put
    uint64_t number = 0;                       // in the order in which they were put
    bool done = false;
    bool is_left = false;                        // in the middle
    std::chrono::steady_clock::time_point time;  // when it was done
};
using TaskPtr = std::shared_ptr<Task>;

// In which order tasks are done: the environment variable WEFT_EMULATED_STREAMS.
struct Order {
    enum class Kind {
        Eager,   // "eager": at once
        Latest,  // not set, or 0: as late as possible; of two that may come first, the one that was put later
        Random,  // a number: drawn, this is the seed
    };
    Kind kind = Kind::Latest;
    std::mt19937_64 random;

    size_t below(size_t count) { return count < 2 ? 0 : size_t(random() % count); }
    bool coin() { return kind == Kind::Random && random() % 2 == 0; }
};

class Tasks {
public:
    static Tasks& instance();

    // With the state locked.
    TaskPtr put(Stream& stream, const Work& work, const TaskPtr& after = nullptr);
    // In no stream. Null is done.
    TaskPtr add(Context& context, const Work& work, const std::vector<TaskPtr>& after);
    // Everything that the context has pending is forgotten.
    void drop(Context& context);

    // Without the lock of the state, because these do work. Null is done.
    void finish(const TaskPtr& task);
    void finish_all(const Context* context);  // null: of all contexts
    // One piece of what has to be done for the task, or a part of it: who asks again and again comes to an end.
    void advance(const TaskPtr& task);
    // After put(): at once where that was asked for, and where too many are pending.
    void settle(const TaskPtr& task);

    // Of the nodes of a graph, too. For whoever does work.
    Order& order() { return order_; }

private:
    Tasks();
    TaskPtr next(std::vector<TaskPtr>& path);
    TaskPtr any_ready();
    Progress run(Task& task, const Deadline& deadline);

    static constexpr size_t kMostPending = 4096;
    static constexpr std::chrono::milliseconds kPart{50};

    std::recursive_mutex turn_;      // held by whoever does work
    std::vector<TaskPtr> advanced_;  // of the task for which somebody asked last: the way to what is next
    std::map<uint64_t, TaskPtr> pending_;
    uint64_t last_number_ = 0;
    Order order_;
};

}  // namespace weft::emulator
