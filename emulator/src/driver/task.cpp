#include "driver/task.h"

#include <algorithm>

#include "driver/state.h"

namespace weft::emulator {

Tasks::Tasks() : order_(Settings::of_environment().order) {}

Tasks& Tasks::instance() {
    static Tasks* tasks = new Tasks;  // never destroyed, like the state
    return *tasks;
}

TaskPtr Tasks::add(Context& context, const Work& work, const std::vector<TaskPtr>& after) {
    auto task = std::make_shared<Task>();
    task->context = &context;
    task->whole = work.whole;
    if (work.in_pieces) task->pieces = work.in_pieces();
    task->number = ++last_number_;
    task->lets_others_begin = work.lets_others_begin;
    for (const TaskPtr& on : after) {
        if (on && !on->done) task->after.push_back(on);
    }
    pending_.emplace(task->number, task);
    return task;
}

// Blocking streams of a context wait for the legacy stream, and it waits for them.
TaskPtr Tasks::put(Stream& stream, const Work& work, const TaskPtr& after) {
    Context& context = *stream.context;
    const TaskPtr before = stream.last;
    // An early one waits for all but the task in front; later work waits for both.
    const bool is_early = work.begins_early && before && !before->done && before->lets_others_begin;
    TaskPtr task = is_early ? add(context, work, before->after) : add(context, work, {before, after});
    const auto depend = [&](const TaskPtr& on) {
        if (on && !on->done) task->after.push_back(on);
    };
    if (&stream == &context.default_stream) {
        depend(context.thread_stream.last);
        for (const auto& [handle, other] : context.streams) {
            if (other->is_blocking()) depend(other->last);
        }
        for (const TaskPtr& orphan : context.orphans) depend(orphan);
        context.orphans.clear();
    } else if (stream.is_blocking()) {
        depend(context.default_stream.last);
    }
    stream.last = is_early ? add(context, nullptr, {before, task}) : task;
    return task;
}

void Tasks::drop(Context& context) {
    for (auto at = pending_.begin(); at != pending_.end();) {
        if (at->second->context != &context) {
            ++at;
            continue;
        }
        at->second->done = true;
        at->second->after.clear();
        at->second->whole = nullptr;
        at->second->pieces = nullptr;
        at = pending_.erase(at);
    }
}

// The path leads from the wanted task to the one that has to be done first.
TaskPtr Tasks::next(std::vector<TaskPtr>& path) {
    const std::lock_guard lock(State::instance().mutex);
    while (!path.empty() && path.back()->done) path.pop_back();
    if (path.empty()) return nullptr;
    if (order_.coin()) {
        if (TaskPtr other = any_ready()) return other;
    }
    for (;;) {
        std::vector<TaskPtr>& after = path.back()->after;
        std::erase_if(after, [](const TaskPtr& task) { return task->done; });
        if (after.empty()) return path.back();
        path.push_back(order_.kind == Order::Kind::Random
                           ? after[order_.below(after.size())]
                           : *std::ranges::max_element(after, {}, [](const TaskPtr& task) { return task->number; }));
    }
}

// Excludes suspended tasks, which may have no end.
TaskPtr Tasks::any_ready() {
    if (pending_.empty()) return nullptr;
    auto at = pending_.begin();
    std::advance(at, order_.below(pending_.size()));
    for (size_t i = 0; i < pending_.size(); ++i, ++at) {
        if (at == pending_.end()) at = pending_.begin();
        if (!at->second->is_left && std::ranges::all_of(at->second->after, &Task::done)) return at->second;
    }
    return nullptr;
}

// After a fault of the context, its remaining tasks have no effect.
Progress Tasks::run(Task& task, const Deadline& deadline) {
    if (task.whole && task.context->failed == CUDA_SUCCESS) task.whole();
    if (task.pieces && task.context->failed == CUDA_SUCCESS) {
        const Progress progress = task.pieces(deadline);
        const std::lock_guard lock(State::instance().mutex);
        task.is_left = progress == Progress::Left;
        if (progress != Progress::Done) return progress;
    }
    const std::lock_guard lock(State::instance().mutex);
    task.done = true;
    task.time = std::chrono::steady_clock::now();
    task.after.clear();
    task.whole = nullptr;
    task.pieces = nullptr;
    pending_.erase(task.number);
    return Progress::Done;
}

void Tasks::finish(const TaskPtr& task) {
    if (!task) return;
    const std::lock_guard turn(turn_);
    std::vector<TaskPtr> path{task};
    while (const TaskPtr one = next(path)) run(*one, Deadline());
}

void Tasks::advance(const TaskPtr& task) {
    if (!task) return;
    const std::lock_guard turn(turn_);
    if (advanced_.empty() || advanced_.front() != task) advanced_ = {task};
    // The number of queries must not change the random choices.
    const bool goes_on = advanced_.back()->is_left && !advanced_.back()->done;
    if (const TaskPtr one = goes_on ? advanced_.back() : next(advanced_)) run(*one, Deadline(kPart));
}

void Tasks::finish_all(const Context* context) {
    std::vector<TaskPtr> all;
    {
        const std::lock_guard lock(State::instance().mutex);
        for (const auto& [number, task] : pending_) {
            if (!context || task->context == context) all.push_back(task);
        }
    }
    if (order_.kind == Order::Kind::Latest) std::ranges::reverse(all);
    for (const TaskPtr& task : all) finish(task);
}

void Tasks::settle(const TaskPtr& task) {
    if (order_.kind == Order::Kind::Eager) return finish(task);
    std::vector<TaskPtr> oldest;
    {
        const std::lock_guard lock(State::instance().mutex);
        if (pending_.size() < kMostPending) return;
        for (const auto& [number, pending] : pending_) {
            if (oldest.size() == kMostPending / 2) break;
            oldest.push_back(pending);
        }
    }
    for (const TaskPtr& pending : oldest) finish(pending);
}

}  // namespace weft::emulator
