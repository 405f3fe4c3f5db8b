#pragma once
// A warp of 32 threads. Lanes at the same instruction of the same call run together. When they diverge, the warp has
// several *splits*, each with a mask and a program counter, and runs one of them: that of the deepest call and, among
// these, of the lowest counter, so that splits reconverge. If a split loops for long while others could run, one of
// them gets a turn: a lane that holds a lock is not starved by lanes that wait for it.
//
// Instructions that need several lanes (barriers, shuffles) *park* a split until the lanes arrive. If no split can run
// any more, the kernel has a bug, and the fault describes it.
#include <memory>
#include <vector>

#include "engine/block_state.h"
#include "engine/code.h"

namespace weft::emulator {

struct Frame {
    const CodeFunction* function = nullptr;
    std::byte* registers = nullptr;
    Frame* caller = nullptr;
    const CallSite* site = nullptr;
    uint32_t return_to = 0;   // counter in the caller
    uint32_t local_base = 0;  // offset of its variables in the local memory of each lane
    uint32_t live = 0;        // number of lanes in this call and in calls from it
    uint32_t depth = 0;
    std::unique_ptr<std::byte[]> storage;
    size_t capacity = 0;
};

struct Split {
    enum class State : uint8_t { Ready, AtBarrier, NeedsLanes };
    Frame* frame = nullptr;
    uint32_t counter = 0;
    Mask mask = 0;
    State state = State::Ready;
    Mask needed = 0;                    // NeedsLanes
    uint32_t turn = 0;                  // time of its last run
    uint32_t barrier = 0, threads = 0;  // AtBarrier
};

enum class Access : uint8_t { Load, LoadReadOnly, LoadStrong, Store, StoreStrong, Atomic };

class Warp : public Lanes {
public:
    enum class Stop : uint8_t { Done, AtBarrier, Tired };

    explicit Warp(BlockState& block) : block_(block) {}

    // Places the first threads of the block at the entry's first instruction.
    void start(const CodeFunction& entry, uint32_t number, Mask threads);
    // To be called after a pause, during which memory may have been freed and launches may have got new numbers.
    void resume() {
        recent_ = nullptr;
        set_actor();
    }
    // Runs until all threads have ended or wait for the block, or others should have a turn.
    Stop run();
    // Continues after a barrier; `value` is the result of a reduction.
    void pass_barrier(uint32_t value);

    BlockState& block() { return block_; }
    uint32_t number() const { return number_; }
    Mask alive() const { return alive_; }
    bool done() const { return alive_ == 0; }
    bool waits() const { return waits_; }  // all its threads wait at a barrier
    // Precondition: it waits at a barrier.
    const Split& barrier_split() const { return splits_.front(); }
    Mask barrier_predicate() const { return barrier_predicate_; }
    uint32_t thread(int lane) const { return number_ * kLanes + uint32_t(lane); }

    // The running function and instruction, for handlers and reports.
    const Frame& frame() const { return *current_.frame; }
    const Instruction& instruction() const { return current_.frame->function->instructions[current_.counter]; }
    uint64_t executed() const { return executed_; }    // instructions, independent of the number of lanes
    uint64_t clock() { return ++clock_ + executed_; }  // grows with each call

    // Checked access to the memory of one lane; throws Fault. A store is done here.
    std::byte* reach(ptx::Space space, int lane, uint64_t address, uint32_t bytes, Access access,
                     const void* value = nullptr);
    // The allocation that contains the accesses of all lanes, if all are valid. Otherwise nullptr, and reach() reports
    // the error. Checks for races. Stores to allocations that are not completely written are left to reach().
    Allocation* reach_all(ptx::Space space, const uint64_t* addresses, uint32_t bytes, Access access,
                          const std::byte* values = nullptr);
    std::byte* reach_generic(int lane, uint64_t address, uint32_t bytes, Access access, const void* value = nullptr);
    std::byte* reach_local(int lane, uint64_t address, uint32_t bytes, const void* value = nullptr);
    void fence(Mask lanes) { fenced_ |= lanes; }
    void synchronize() {
        ++syncs_;
        set_actor();
    }
    void tire() { ++tired_; }

    // Copies from global to shared memory (cp.async), which a lane finishes when it waits for their group. A graphics
    // processor may write at any time in between: until then the destination has bytes that are no copy's.
    struct AsyncCopy {
        int lane;
        uint32_t group, size;
        uint64_t to;
        std::byte bytes[16];
    };
    void start_copy(int lane, uint64_t to, uint64_t from, uint32_t size, uint32_t read);
    void commit_copies();
    // Of the mask's lanes: all groups but the last so many; `all` includes copies of no group yet.
    void wait_for_copies(uint32_t but, bool all);

    uint32_t thread_index[3][kLanes] = {};

private:
    enum class Next : uint8_t { Go, Switch };

    bool choose();
    void no_progress();
    void execute();
    Next control(const Instruction& instruction, Mask active);
    Next branch(const Instruction& instruction, Mask active);
    Next branch_indexed(const Instruction& instruction);
    Next call(const Instruction& instruction, Mask active);
    Next leave(Mask active, bool exits);
    Next barrier(const Instruction& instruction);
    Next converge(const Instruction& instruction);
    void system(const Instruction& instruction);
    Next jump(uint32_t counter);
    Next arrive();
    void park(Split::State state, Mask needed);
    void add_split(Split split);
    void enter(Frame* frame);
    Frame* make_frame(const CodeFunction& function);
    void drop_frame(Frame* frame);
    int called_function(const CallSite& site, Mask& active);
    void grow_local(uint32_t size);
    void spoil_local(size_t lane, uint32_t offset, uint32_t size);
    std::string describe(const Allocation& allocation) const;
    void set_actor();
    void check_exit(Mask lanes);
    std::byte* check(Allocation& allocation, int lane, uint64_t address, uint32_t bytes, Access access,
                     const void* value);
    [[noreturn]] void fail_access(int lane, uint64_t address, uint32_t bytes, Access access, const Allocation* found);
    template <uint32_t kPart>
    bool note_words(Allocation& allocation, const uint64_t* addresses, uint32_t bytes, Access access,
                    const std::byte* values);
    template <uint32_t kPart>
    void check_words(Allocation& allocation, int lane, uint64_t offset, uint32_t bytes, Access access,
                     const void* value);

    BlockState& block_;
    uint32_t number_ = 0;
    Mask alive_ = 0, started_ = 0, fenced_ = 0, barrier_predicate_ = 0;
    Split current_;
    std::vector<Split> splits_;  // without current_
    uint32_t limit_ = 0;         // the next higher counter of another split in this frame
    uint32_t turns_ = 0, patience_ = 0, tired_ = 0, syncs_ = 0;
    bool waits_ = false;
    bool fair_ = false;      // the split with the longest wait runs next
    bool favoured_ = false;  // the current split was chosen so, and runs for a while
    Actor actor_;            // lane 0, for the shadow memory
    Mask acted_ = 0;         // lanes that changed memory while others waited for them
    uint64_t executed_ = 0, clock_ = 0;
    uint64_t started_at_ = 0;  // executed_ at the start of this block
    Allocation* recent_ = nullptr;
    std::vector<std::unique_ptr<Frame>> frames_;
    std::vector<Frame*> free_frames_;
    std::vector<AsyncCopy> copies_;
    uint32_t groups_[kLanes] = {};  // of copies, that each lane has committed
    std::vector<std::byte> local_;  // local_size_ bytes for each lane
    uint32_t local_size_ = 0;
};

}  // namespace weft::emulator
