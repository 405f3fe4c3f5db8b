// Blocks on all cores, and the report of what went wrong.
#include <unistd.h>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "emulator/engine/block.h"

namespace weft::emulator {

namespace {

// Threads that wait for work; made when the first launch needs them. A process that was forked has none, and makes its
// own.
class Workers {
public:
    static Workers& instance() {
        static std::mutex mutex;
        static Workers* workers = nullptr;
        static pid_t owner = 0;
        const std::lock_guard lock(mutex);
        if (!workers || owner != getpid()) {
            workers = new Workers;  // never destroyed: it may be at work when the process ends
            owner = getpid();
        }
        return *workers;
    }

    size_t count() const { return count_; }

    // Runs the work on the calling thread and on all others, until each has returned.
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

// The line of the text that the statement stands in, without spaces around it.
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

std::string report(const Launch& launch, Block& block, const Fault& fault) {
    const ptx::Module& module = launch.program->module;
    std::string text =
        std::string(name_of(fault.kind)) + ": " + fault.what() + "\n  kernel '" + launch.kernel->source->name + "'";
    const Warp* warp = block.running();
    if (!warp) return text;
    const CodeFunction& function = *warp->frame().function;
    const uint32_t lane = fault.lane < 0 ? 0 : uint32_t(fault.lane);
    const uint32_t thread[3] = {warp->thread_index[0][lane], warp->thread_index[1][lane], warp->thread_index[2][lane]};
    if (&function != launch.kernel) text += ", function '" + function.source->name + "'";
    text += ", thread " + triple(thread) + " of block " + triple(block.index());
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

std::optional<Report> run_launch(Launch& launch) {
    const uint64_t count = launch.blocks();
    // a shuffled order without a list: steps of a number that has no divisor in common with the count
    uint64_t step = (launch.seed >> 7) % count | 1;
    while (greatest_divisor(step, count) != 1) ++step;
    std::atomic<uint64_t> next{0};
    std::mutex mutex;
    std::optional<Report> result;
    const auto work = [&] {
        if (next.load(std::memory_order_relaxed) >= count) return;
        Block block(launch);
        for (;;) {
            const uint64_t index = next.fetch_add(1, std::memory_order_relaxed);
            if (index >= count || launch.stopped.load(std::memory_order_relaxed)) return;
            try {
                block.run(uint64_t((launch.seed + static_cast<unsigned __int128>(index) * step) % count));
            } catch (const Fault& fault) {
                const std::lock_guard lock(mutex);
                if (!result) result = Report{fault.kind, report(launch, block, fault)};
                launch.stopped = true;
            } catch (const std::bad_alloc&) {
                const std::lock_guard lock(mutex);
                if (!result)
                    result = Report{FaultKind::StackOverflow,
                                    "the host has no memory for the threads of '" + launch.kernel->source->name + "'"};
                launch.stopped = true;
            }
        }
    };
    const std::shared_lock running(AddressSpace::instance().running);
    Workers& workers = Workers::instance();
    if (count == 1 || workers.count() == 1)
        work();
    else
        workers.run(work);
    return result;
}

}  // namespace weft::emulator
