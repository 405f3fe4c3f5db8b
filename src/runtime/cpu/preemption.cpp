#include "runtime/cpu/preemption.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <mutex>

#include "runtime/cpu/interrupts.h"
#include "runtime/cpu/stack.h"
#include "support/detached_thread.h"
#include "support/error.h"

namespace weft::runtime {

namespace {

// A chunk in progress on a thread. Only that thread accesses it, including its signal handler.
struct Chunk {
    void* after[5];  // for __builtin_longjmp
    Interrupts* launch;
    Chunk* outer;           // a handler of the program may launch during another launch
    bool is_asked = false;  // the handler is polling the host: further signals are ignored
};

// A thread that has run preemptible code.
struct Thread {
    std::atomic<Chunk*> chunk{nullptr};
    std::atomic<std::uint64_t> entered{0};  // number of chunks so far
    std::atomic<bool> was_missed{false};    // the signal arrived in other code
    pthread_t id = pthread_self();
    // Used by the watcher thread only.
    std::uint64_t seen = 0;
    bool was_inside = false;
    Thread* next = nullptr;
};

struct Watch {
    std::mutex mutex;  // of the list, and of `wake`
    std::condition_variable wake;
    Thread* threads = nullptr;
    bool is_started = false;
};
// Whether the watcher waits to be woken. Separate from Watch, since each chunk reads it.
constinit std::atomic<bool> is_asleep{true};

Watch*& watch() {
    static auto* state = new Watch;  // leaked on purpose: its thread may still wait on it when the process ends
    return state;
}

constinit thread_local Thread* current = nullptr;

// Removes the thread from the list at its end.
struct Registration {
    ~Registration() {
        if (current == nullptr) return;
        const std::lock_guard lock(watch()->mutex);
        Thread** place = &watch()->threads;
        while (*place && *place != current) place = &(*place)->next;
        if (*place) *place = current->next;
        delete current;
        current = nullptr;
    }
};
thread_local Registration registration;

// ---- the handler ----

constexpr int kSignal = SIGURG;
struct sigaction handler_before;

// A thread that leaves its chunk continues here.
[[noreturn]] void leave_chunk() { __builtin_longjmp(current->chunk.load(std::memory_order_relaxed)->after, 1); }

const void* interrupted_at(const ucontext_t& machine) {
#if defined(__x86_64__)
    return reinterpret_cast<const void*>(machine.uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
    return reinterpret_cast<const void*>(machine.uc_mcontext.pc);
#else
#error "preemption.cpp: add the registers of this processor"
#endif
}

// Continues as if the code had called leave_chunk() there.
void go_to_leave_chunk(ucontext_t& machine) {
    constexpr std::uint64_t kRedZone = 128, kAlignment = 64;
#if defined(__x86_64__)
    constexpr std::int64_t kDirection = 0x400;
    auto& registers = machine.uc_mcontext.gregs;
    const std::uint64_t stack = (static_cast<std::uint64_t>(registers[REG_RSP]) - kRedZone) / kAlignment * kAlignment;
    registers[REG_RSP] = static_cast<std::int64_t>(stack - sizeof(void*));  // as after a call instruction
    registers[REG_RIP] = reinterpret_cast<std::int64_t>(&leave_chunk);
    registers[REG_EFL] &= ~kDirection;
#elif defined(__aarch64__)
    machine.uc_mcontext.sp = (machine.uc_mcontext.sp - kRedZone) / kAlignment * kAlignment;
    machine.uc_mcontext.pc = reinterpret_cast<std::uint64_t>(&leave_chunk);
#endif
}

void hand_on(int signal, siginfo_t* info, void* machine) {
    if (handler_before.sa_flags & SA_SIGINFO)
        handler_before.sa_sigaction(signal, info, machine);
    else if (handler_before.sa_handler != SIG_DFL && handler_before.sa_handler != SIG_IGN)
        handler_before.sa_handler(signal);
}

void handle(int signal, siginfo_t* info, void* machine) {
    if (info->si_code != SI_QUEUE || info->si_value.sival_ptr != &handler_before) return hand_on(signal, info, machine);
    Chunk* const chunk = current->chunk.load(std::memory_order_relaxed);
    if (chunk == nullptr || chunk->is_asked) return;
    Interrupts& launch = *chunk->launch;
    auto& interrupted = *static_cast<ucontext_t*>(machine);
    if (!launch.is_in_code(interrupted_at(interrupted))) {
        current->was_missed.store(true, std::memory_order_relaxed);
        return;
    }
    const int error = errno;
    if (!launch.is_stopped() && launch.is_caller()) {
        chunk->is_asked = true;
        launch.ask();
        chunk->is_asked = false;
    }
    errno = error;
    if (launch.is_stopped()) go_to_leave_chunk(interrupted);
}

// Checked before each signal: the program may have installed its own handler meanwhile.
void install_handler() {
    struct sigaction now;
    sigaction(kSignal, nullptr, &now);
    if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == &handle) return;
    handler_before = now;
    struct sigaction ours{};
    ours.sa_sigaction = &handle;
    ours.sa_flags = SA_SIGINFO | SA_RESTART | SA_NODEFER;  // the host may launch during a poll
    sigemptyset(&ours.sa_mask);
    sigaction(kSignal, &ours, nullptr);
}

// ---- the watcher thread ----

// Makes earlier writes of this thread visible to all threads of the process, which need no fence of their own. False on
// old kernels.
bool make_others_see() { return syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0; }
void register_membarrier() { syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0); }

// The result of one pass over all threads: whether some are in a chunk, and whether a signal missed one.
struct Look {
    bool any_inside = false, any_missed = false;
};
Look look_at_threads(Watch& all) {
    Look look;
    for (Thread* thread = all.threads; thread; thread = thread->next) {
        const bool is_inside = thread->chunk.load(std::memory_order_relaxed) != nullptr;
        const std::uint64_t entered = thread->entered.load(std::memory_order_relaxed);
        look.any_inside |= is_inside || entered != thread->seen;
        const bool is_long = is_inside && thread->was_inside && entered == thread->seen;
        thread->was_inside = is_inside;
        thread->seen = entered;
        if (!is_long) continue;
        look.any_missed |= thread->was_missed.exchange(false, std::memory_order_relaxed);
        install_handler();
        // The thread is alive: it would need the lock, which is held here, to leave the list. If the queue of signals
        // is full, the next pass tries again.
        static_cast<void>(pthread_sigqueue(thread->id, kSignal, {.sival_ptr = &handler_before}));
    }
    return look;
}

[[noreturn]] void* keep_watch(void* state) {
    using std::chrono::milliseconds;
    constexpr milliseconds kBetweenLooks{20}, kAfterMiss{2};
    constexpr int kIdleLooks = 50;
    Watch& all = *static_cast<Watch*>(state);
    register_membarrier();  // takes milliseconds in a process of several threads: not on a thread that launches
    std::unique_lock lock(all.mutex);
    int idle = 0;
    while (true) {
        const Look look = look_at_threads(all);
        idle = look.any_inside ? 0 : idle + 1;
        if (idle > kIdleLooks) {
            is_asleep.store(true, std::memory_order_relaxed);
            // A thread that enters a chunk now either sees is_asleep, or is seen here.
            if (make_others_see() && !look_at_threads(all).any_inside) {
                all.wake.wait(lock, [&] { return !is_asleep.load(std::memory_order_relaxed); });
            } else {
                is_asleep.store(false, std::memory_order_relaxed);
            }
            idle = 0;
        }
        all.wake.wait_for(lock, look.any_missed ? kAfterMiss : kBetweenLooks);
    }
}

__attribute__((noinline)) void wake() {
    Watch& all = *watch();
    const std::lock_guard lock(all.mutex);
    // Without the watcher, launches run to their end, as in a program that cannot be interrupted.
    if (!all.is_started) all.is_started = start_detached_thread(&keep_watch, &all);
    is_asleep.store(false, std::memory_order_relaxed);
    all.wake.notify_one();
}

// A child of fork() has only the forking thread.
void forget_threads_in_forked_child() {
    auto* const fresh = new Watch;
    if (current) {
        current->next = nullptr;
        current->id = pthread_self();
        fresh->threads = current;
    }
    watch() = fresh;
    is_asleep.store(true, std::memory_order_relaxed);
}

__attribute__((noinline)) void register_thread() {
    static const int registered = pthread_atfork(nullptr, nullptr, &forget_threads_in_forked_child);
    WEFT_CHECK(registered == 0, "cannot register the handler for fork");
    static_cast<void>(&registration);  // constructs it; its destructor runs when the thread ends
    auto* const thread = new Thread;
    const std::lock_guard lock(watch()->mutex);
    thread->next = watch()->threads;
    watch()->threads = thread;
    current = thread;
}

}  // namespace

__attribute__((noinline)) void run_preemptible(KernelEntryPoint entry, const void* arguments,
                                               const LaunchContext& context, std::int64_t begin, std::int64_t end) {
    if (context.interrupts->is_stopped()) return;
    if (current == nullptr) register_thread();
    Thread& thread = *current;
    Chunk chunk{{}, context.interrupts, thread.chunk.load(std::memory_order_relaxed)};
    if (__builtin_setjmp(chunk.after) == 0) {
        thread.entered.store(thread.entered.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
        thread.chunk.store(&chunk, std::memory_order_release);
        std::atomic_signal_fence(std::memory_order_seq_cst);  // pairs with the barrier of the watcher thread
        if (is_asleep.load(std::memory_order_relaxed)) wake();
        entry(arguments, &context, begin, end);
    } else {
        weft_stack_trim();  // the chunk may have left a loop that saved values
    }
    Thread& again = *current;  // after a jump, registers have no valid values
    again.chunk.store(again.chunk.load(std::memory_order_relaxed)->outer, std::memory_order_release);
}

}  // namespace weft::runtime
