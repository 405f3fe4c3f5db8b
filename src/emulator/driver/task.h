#pragma once
// Work in streams that has not been done.
//
// A task is done when a thread waits for it, or for a later one. The choice and order of other tasks that are done
// before is adversarial, within the guarantees of streams, events and the legacy stream. A program that forgets to wait
// reads old values here, although a GPU would mostly give it new ones.
//
// A wait runs the task to its end. A query for completion does a part of the work; of kernels, no more than takes
// kPart. So a program that polls can be interrupted during a kernel, and other tasks may run meanwhile. The kernel
// continues at the next wait or query.
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
    Left,  // suspended within a piece at the deadline
};
// Does a piece of some work, or continues a suspended one.
using Pieces = std::function<Progress(const Deadline&)>;

// Work, which may be done many times: in one call, or each time in pieces. If neither is set, there is nothing to do.
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
    Pieces pieces;                             // in place of `whole`
    std::vector<std::shared_ptr<Task>> after;  // predecessors that were not done when it was added
    uint64_t number = 0;                       // order of addition
    bool done = false;
    bool is_left = false;                        // the piece in progress is suspended
    std::chrono::steady_clock::time_point time;  // of its completion
};
using TaskPtr = std::shared_ptr<Task>;

// The order in which tasks run: the environment variable WEFT_EMULATED_STREAMS.
struct Order {
    enum class Kind {
        Eager,   // "eager": at once
        Latest,  // not set, or 0: as late as possible; of two candidates, the later one
        Random,  // a number: random, with this seed
    };
    Kind kind = Kind::Latest;
    std::mt19937_64 random;

    size_t below(size_t count) { return count < 2 ? 0 : size_t(random() % count); }
    bool coin() { return kind == Kind::Random && random() % 2 == 0; }
};

class Tasks {
public:
    static Tasks& instance();

    // Precondition: the state is locked.
    TaskPtr put(Stream& stream, const Work& work, const TaskPtr& after = nullptr);
    // Adds a task outside of streams. Null predecessors count as done.
    TaskPtr add(Context& context, const Work& work, const std::vector<TaskPtr>& after);
    // Discards all pending tasks of the context.
    void drop(Context& context);

    // Precondition: the state is not locked, because these functions run tasks. A null task counts as done.
    void finish(const TaskPtr& task);
    void finish_all(const Context* context);  // null: of all contexts
    // Runs one piece of the work that the task needs, or a part of a piece, so that repeated calls finish it.
    void advance(const TaskPtr& task);
    // To be called after put(): runs the task at once if the order is eager, or if too many are pending.
    void settle(const TaskPtr& task);

    // Also used for nodes of a graph. Precondition: the caller is running work.
    Order& order() { return order_; }

private:
    Tasks();
    TaskPtr next(std::vector<TaskPtr>& path);
    TaskPtr any_ready();
    Progress run(Task& task, const Deadline& deadline);

    static constexpr size_t kMostPending = 4096;
    static constexpr std::chrono::milliseconds kPart{50};

    std::recursive_mutex turn_;      // held while work runs
    std::vector<TaskPtr> advanced_;  // path from the last queried task to its next predecessor
    std::map<uint64_t, TaskPtr> pending_;
    uint64_t last_number_ = 0;
    Order order_;
};

}  // namespace weft::emulator
