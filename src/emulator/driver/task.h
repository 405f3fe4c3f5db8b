#pragma once
// Work that was put into streams and has not been done.
//
// A task is done when somebody waits for it, or for one that comes after it. Which other tasks are done before, and in
// which order, is chosen against the program, within what streams, events and the legacy stream promise: a program that
// forgets to wait reads old numbers here, where a GPU would give it new ones most of the time.
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <vector>

namespace weft::emulator {

struct Context;
struct Stream;

struct Task {
    Context* context = nullptr;
    std::function<void()> work;
    std::function<bool()> more;  // in place of work: one piece at a time, while it says that there is more
    std::vector<std::shared_ptr<Task>> after;  // those that were not done when it was put
    uint64_t number = 0;                       // in the order in which they were put
    bool done = false;
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

    static Order from_environment();
    size_t below(size_t count) { return count < 2 ? 0 : size_t(random() % count); }
    bool coin() { return kind == Kind::Random && random() % 2 == 0; }
};

class Tasks {
public:
    static Tasks& instance();

    // With the state locked.
    TaskPtr put(Stream& stream, std::function<void()> work, const TaskPtr& after = nullptr);
    // In no stream. Null is done.
    TaskPtr add(Context& context, std::function<void()> work, const std::vector<TaskPtr>& after);
    // Everything that the context has pending is forgotten.
    void drop(Context& context);

    // Without the lock of the state, because these do work. Null is done.
    void finish(const TaskPtr& task);
    void finish_all(const Context* context);  // null: of all contexts
    // One piece of what has to be done for the task: who asks again and again comes to an end.
    void advance(const TaskPtr& task);
    // After put(): at once where that was asked for, and where too many are pending.
    void settle(const TaskPtr& task);

    // Of the nodes of a graph, too. For whoever does work.
    Order& order() { return order_; }

private:
    TaskPtr next(std::vector<TaskPtr>& path);
    TaskPtr any_ready();
    void run(Task& task);

    static constexpr size_t kMostPending = 4096;

    std::recursive_mutex turn_;      // held by whoever does work
    std::vector<TaskPtr> advanced_;  // of the task for which somebody asked last: the way to what is next
    std::map<uint64_t, TaskPtr> pending_;
    uint64_t last_number_ = 0;
    Order order_ = Order::from_environment();
};

}  // namespace weft::emulator
