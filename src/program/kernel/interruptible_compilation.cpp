// The threads are kept: each has code generators of its own, which take as long to make as a small kernel to compile
// (jit/cpu.cpp). There are as many threads as compilations at a time.
//
// A process may end during a compilation that its caller left. Destructors of static objects, LLVM's among them, would
// run beside it; so such a process ends without them.
#include "program/kernel/interruptible_compilation.h"

#include <pthread.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <exception>
#include <mutex>

#include "program/host/host.h"
#include "support/detached_thread.h"
#include "support/error.h"

namespace weft::program {

namespace {

struct Job {
    explicit Job(std::function<void()> work) : work(std::move(work)) {}

    void run() {
        std::exception_ptr thrown;
        try {
            work();
        } catch (...) {
            thrown = std::current_exception();
        }
        work = nullptr;  // objects that the work owns are destroyed on this thread, before its end is announced
        const std::lock_guard lock(mutex);
        error = std::move(thrown);
        is_done = true;
        done.notify_all();
    }

    std::function<void()> work;
    std::mutex mutex;
    std::condition_variable done;
    bool is_done = false;
    std::exception_ptr error;
};
using JobPtr = std::shared_ptr<Job>;

struct Workers {
    std::mutex mutex;
    std::condition_variable wake;
    std::deque<JobPtr> waiting;
    int idle = 0, busy = 0;
};

// A child of fork() has none of the threads.
Workers*& workers() {
    static auto* state = new Workers;  // leaked on purpose: threads wait for it when the process ends
    static const int registered = pthread_atfork(nullptr, nullptr, [] { workers() = new Workers; });
    WEFT_CHECK(registered == 0, "cannot register the handler for fork");
    return state;
}

constinit thread_local bool is_worker = false;

void* serve(void* state) {
    is_worker = true;
    Workers& all = *static_cast<Workers*>(state);
    std::unique_lock lock(all.mutex);
    while (true) {
        ++all.idle;
        all.wake.wait(lock, [&] { return !all.waiting.empty(); });
        --all.idle;
        JobPtr job = std::move(all.waiting.front());
        all.waiting.pop_front();
        ++all.busy;
        lock.unlock();
        job->run();
        job.reset();
        lock.lock();
        --all.busy;
    }
    return nullptr;
}

constexpr std::size_t kStackBytes = std::size_t{64} << 20;  // reserved, not committed: large kernels nest deeply

bool hand_over(const JobPtr& job) {
    Workers& all = *workers();
    const std::lock_guard lock(all.mutex);
    if (static_cast<std::size_t>(all.idle) <= all.waiting.size() && !start_detached_thread(&serve, &all, kStackBytes))
        return false;
    all.waiting.push_back(job);
    all.wake.notify_one();
    return true;
}

// Handlers run in the reverse of the order in which they were registered: this one before static destructors.
void end_without_destructors_if_busy() {
    static const int registered = on_exit(
        [](int status, void*) {
            Workers& all = *workers();
            {
                const std::lock_guard lock(all.mutex);
                if (all.busy == 0) return;
            }
            std::fflush(nullptr);
            _exit(status);
        },
        nullptr);
    WEFT_CHECK(registered == 0, "cannot register the handler for the end of the process");
}

// Reports a compilation that takes long, and its end, to the host.
class Report {
public:
    explicit Report(const std::string& kernel) : kernel_(kernel) {}
    ~Report() {
        if (told_) host().compiling(kernel_, std::nullopt);
    }
    Report(const Report&) = delete;

    void go_on() {
        constexpr std::chrono::milliseconds kBetween{200};
        const Clock::time_point now = Clock::now();
        if (!host().compiling || now < next_) return;
        next_ = now + kBetween;
        told_ = true;
        host().compiling(kernel_, std::chrono::duration<double>(now - start_).count());
    }

private:
    using Clock = std::chrono::steady_clock;
    const std::string& kernel_;
    static constexpr std::chrono::milliseconds kFirst{2000};
    const Clock::time_point start_ = Clock::now();
    Clock::time_point next_ = start_ + kFirst;
    bool told_ = false;
};

// False if the host wants to go on without the job.
bool wait_for(Job& job, const std::string& kernel) {
    constexpr std::chrono::milliseconds kBetweenQuestions{20};
    Report report(kernel);
    std::unique_lock lock(job.mutex);
    while (!job.done.wait_for(lock, kBetweenQuestions, [&] { return job.is_done; })) {
        lock.unlock();
        if (host().interrupted()) return false;
        report.go_on();
        lock.lock();
    }
    lock.unlock();  // the end of the report takes the host's lock
    return true;
}

}  // namespace

void run_interruptibly(const std::string& kernel, std::function<void()> work) {
    if (is_worker) return work();  // a worker has no lock to give up
    if (!host().interrupted) {
        const WithoutHost without;
        return work();
    }
    const auto job = std::make_shared<Job>(std::move(work));
    bool is_finished = true;
    {
        const WithoutHost without;
        if (hand_over(job))
            is_finished = wait_for(*job, kernel);
        else
            job->run();
    }
    if (!is_finished) {
        end_without_destructors_if_busy();
        host().stop();
    }
    if (job->error) std::rethrow_exception(job->error);
}

}  // namespace weft::program
