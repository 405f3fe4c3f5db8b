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
#include <map>
#include <mutex>
#include <vector>

#include "driver/order.h"
#include "driver/work.h"

namespace weft::emulator {

struct Stream;

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
