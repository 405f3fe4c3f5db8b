#include "engine/execution.h"

#include <unistd.h>

#include <cfenv>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace weft::emulator {

namespace {

// Kernels do not depend on the floating-point mode that a thread of the host has set.
class DefaultFloats {
public:
    DefaultFloats() {
        std::fegetenv(&found_);
        std::fesetenv(FE_DFL_ENV);
    }
    ~DefaultFloats() { std::fesetenv(&found_); }
    DefaultFloats(const DefaultFloats&) = delete;
    DefaultFloats& operator=(const DefaultFloats&) = delete;

private:
    std::fenv_t found_;
};

// Idle worker threads, started by the first launch that needs them. A forked process has none and starts its own.
class Workers {
public:
    static Workers& instance() {
        static std::mutex mutex;
        static Workers* workers = nullptr;
        static pid_t owner = 0;
        const std::lock_guard lock(mutex);
        if (!workers || owner != getpid()) {
            workers = new Workers;  // never destroyed: its threads may be working when the process ends
            owner = getpid();
        }
        return *workers;
    }

    size_t count() const { return count_; }

    // Runs the work on the calling thread and on all workers, and returns when each has returned.
    void run(const std::function<void()>& work) {
        const std::lock_guard one_at_a_time(turn_);
        {
            const std::lock_guard lock(mutex_);
            for (; threads_ < count_ - 1; ++threads_) std::thread([this] { serve(); }).detach();
            work_ = &work;
            ++round_;
            left_ = threads_;
        }
        wake_.notify_all();
        work();
        std::unique_lock lock(mutex_);
        done_.wait(lock, [&] { return left_ == 0; });
        work_ = nullptr;
    }

private:
    void serve() {
        uint64_t seen = 0;
        for (;;) {
            std::unique_lock lock(mutex_);
            wake_.wait(lock, [&] { return round_ != seen; });
            seen = round_;
            const std::function<void()>& work = *work_;
            lock.unlock();
            work();
            lock.lock();
            if (--left_ == 0) done_.notify_all();
        }
    }

    size_t count_ = std::max(1u, std::thread::hardware_concurrency());
    std::mutex turn_, mutex_;
    std::condition_variable wake_, done_;
    const std::function<void()>* work_ = nullptr;
    uint64_t round_ = 0;
    size_t threads_ = 0, left_ = 0;
};

std::string triple(const uint32_t* values) {
    return "(" + std::to_string(values[0]) + ", " + std::to_string(values[1]) + ", " + std::to_string(values[2]) + ")";
}

// The line of the text with the statement, trimmed.
std::string_view line_of(const std::string& text, uint32_t line) {
    size_t begin = 0;
    for (uint32_t i = 1; i < line && begin != std::string::npos; ++i) {
        begin = text.find('\n', begin);
        if (begin != std::string::npos) ++begin;
    }
    if (begin == std::string::npos) return {};
    std::string_view found = std::string_view(text).substr(begin, text.find('\n', begin) - begin);
    while (!found.empty() && (found.front() == ' ' || found.front() == '\t')) found.remove_prefix(1);
    if (const size_t comment = found.find("//"); comment != std::string_view::npos) found = found.substr(0, comment);
    while (!found.empty() && (found.back() == ' ' || found.back() == '\t')) found.remove_suffix(1);
    return found;
}

std::string report(const Launch& launch, const Block& block, const Fault& fault) {
    const ptx::Module& module = launch.program->module;
    std::string text =
        std::string(name_of(fault.kind)) + ": " + fault.what() + "\n  kernel '" + launch.kernel->source->name + "'";
    const Warp* warp = block.running();
    if (!warp) return text;
    const CodeFunction& function = *warp->frame().function;
    const uint32_t lane = fault.lane < 0 ? 0 : uint32_t(fault.lane);
    const uint32_t thread[3] = {warp->thread_index[0][lane], warp->thread_index[1][lane], warp->thread_index[2][lane]};
    if (&function != launch.kernel) text += ", function '" + function.source->name + "'";
    text += ", thread " + triple(thread) + " of block " + triple(block.state().index);
    if (function.source->statements.empty()) return text;
    const ptx::Statement& statement = function.source->statements[warp->instruction().statement];
    if (const auto file = module.files.find(statement.file); file != module.files.end() && statement.source_line) {
        text += "\n  at " + file->second + ":" + std::to_string(statement.source_line);
    }
    text += "\n  PTX line " + std::to_string(statement.line) + ": " + std::string(line_of(module.text, statement.line));
    return text;
}

uint64_t greatest_divisor(uint64_t a, uint64_t b) { return b == 0 ? a : greatest_divisor(b, a % b); }

}  // namespace

// A step that is coprime to the count visits each block once.
Execution::Execution(Launch& launch) : launch_(launch), numbering_(AddressSpace::instance().numbering()) {
    const uint64_t count = launch.blocks();
    step_ = (launch.seed >> 7) % count | 1;
    while (greatest_divisor(step_, count) != 1) ++step_;
}

std::unique_ptr<Block> Execution::take_left() {
    const std::lock_guard lock(mutex_);
    if (left_.empty()) return nullptr;
    std::unique_ptr<Block> taken = std::move(left_.back());
    left_.pop_back();
    return taken;
}

void Execution::note(FaultKind kind, std::string text) {
    const std::lock_guard lock(mutex_);
    if (!report_) report_ = Report{kind, std::move(text)};
    launch_.stopped = true;
}

// The work of one thread: a suspended block first, then new ones.
void Execution::work(const Deadline& deadline) {
    const DefaultFloats floats;
    const uint64_t count = launch_.blocks();
    const auto stopped = [&] { return launch_.stopped.load(std::memory_order_relaxed); };
    std::unique_ptr<Block> block = take_left();
    bool goes_on = block != nullptr;
    if (!goes_on && next_.load(std::memory_order_relaxed) >= count) return;
    try {
        if (!block) block = std::make_unique<Block>(launch_);
        for (; !stopped(); goes_on = false) {
            if (!goes_on) {
                const uint64_t index = next_.fetch_add(1, std::memory_order_relaxed);
                if (index >= count) return;
                block->start(uint64_t((launch_.seed + static_cast<unsigned __int128>(index) * step_) % count));
            }
            if (!block->go_on(deadline)) continue;
            const std::lock_guard lock(mutex_);
            left_.push_back(std::move(block));
            return;
        }
    } catch (const Fault& fault) {
        note(fault.kind, weft::emulator::report(launch_, *block, fault));
    } catch (const std::bad_alloc&) {
        note(FaultKind::StackOverflow,
             "the host has no memory for the threads of '" + launch_.kernel->source->name + "'");
    }
}

bool Execution::go_on(const Deadline& deadline) {
    AddressSpace& space = AddressSpace::instance();
    if (space.numbering() != numbering_) {
        launch_.number = space.next_launch();
        numbering_ = space.numbering();
    }
    const std::shared_lock running(space.running);
    Workers& workers = Workers::instance();
    if (launch_.blocks() == 1 || workers.count() == 1)
        work(deadline);
    else
        workers.run([&] { work(deadline); });
    if (launch_.stopped) left_.clear();
    return !left_.empty();
}

std::optional<Report> run_launch(Launch& launch) {
    Execution execution(launch);
    execution.go_on(Deadline());
    return execution.report();
}

}  // namespace weft::emulator
