// Scheduling of the splits of a warp.
#include "engine/warp.h"

#include <algorithm>
#include <cstring>

namespace weft::emulator {

namespace {

// kPatience: backward branches of a split until others that could run have a turn. kQuantum: such turns until the other
// warps of the block have theirs.
constexpr uint32_t kPatience = 64, kQuantum = 16;
// Limit of instructions until then: calls and indexed branches can loop without a backward branch.
constexpr uint64_t kTurn = 1 << 16;

}  // namespace

void Warp::start(const CodeFunction& entry, uint32_t number, Mask threads) {
    number_ = number;
    started_at_ = executed_;
    alive_ = started_ = threads;
    fenced_ = carry = acted_ = barrier_predicate_ = 0;
    splits_.clear();
    copies_.clear();
    turns_ = syncs_ = tired_ = 0;
    favoured_ = waits_ = false;
    set_actor();
    patience_ = kPatience;
    fair_ = false;
    recent_ = nullptr;
    free_frames_.clear();
    for (const auto& frame : frames_) free_frames_.push_back(frame.get());
    Frame* frame = make_frame(entry);
    frame->live = uint32_t(__builtin_popcount(threads));
    frame->local_base = 0;
    grow_local(entry.local_size);
    for (size_t lane = 0; lane < kLanes; ++lane) spoil_local(lane, 0, entry.local_size);
    add_split({.frame = frame, .mask = threads});
}

Frame* Warp::make_frame(const CodeFunction& function) {
    const size_t needed = function.frame_size + 64;
    // reuses a frame that is large enough
    Frame* frame = nullptr;
    for (size_t i = free_frames_.size(); i-- > 0;) {
        if (free_frames_[i]->capacity < needed) continue;
        frame = free_frames_[i];
        free_frames_.erase(free_frames_.begin() + ptrdiff_t(i));
        break;
    }
    if (!frame) {
        frame = frames_.emplace_back(std::make_unique<Frame>()).get();
        frame->storage = std::make_unique<std::byte[]>(needed);
        frame->capacity = needed;
    }
    const auto address = reinterpret_cast<uintptr_t>(frame->storage.get());
    frame->registers = reinterpret_cast<std::byte*>((address + 63) / 64 * 64);
    frame->function = &function;
    frame->caller = nullptr;
    frame->site = nullptr;
    frame->depth = 0;
    return frame;
}

void Warp::drop_frame(Frame* frame) { free_frames_.push_back(frame); }

void Warp::enter(Frame* frame) {
    base[0] = frame->registers;
    base[1] = frame->function->constant_base();
}

// Merges a split with another at the same place, or adds it.
void Warp::add_split(Split split) {
    for (Split& other : splits_) {
        if (other.frame == split.frame && other.counter == split.counter && other.state == split.state) {
            other.mask |= split.mask;
            other.needed |= split.needed;
            return;
        }
    }
    splits_.push_back(split);
}

void Warp::park(Split::State state, Mask needed) {
    current_.state = state;
    current_.needed = needed;
    acted_ &= current_.mask;
    add_split(current_);
}

// Removes the next split to run from the list.
bool Warp::choose() {
    size_t best = splits_.size();
    for (size_t i = 0; i < splits_.size(); ++i) {
        const Split& one = splits_[i];
        // a parked split continues when its lanes have arrived
        if (one.state == Split::State::NeedsLanes ? (one.needed & ~one.mask & alive_) != 0
                                                  : one.state != Split::State::Ready)
            continue;
        if (best == splits_.size()) {
            best = i;
            continue;
        }
        const Split& other = splits_[best];
        const bool earlier = fair_ ? one.turn < other.turn
                                   : one.frame->depth > other.frame->depth ||
                                         (one.frame->depth == other.frame->depth && one.counter < other.counter);
        if (earlier) best = i;
    }
    favoured_ = fair_;
    fair_ = false;
    if (best == splits_.size()) return false;
    current_ = splits_[best];
    splits_.erase(splits_.begin() + ptrdiff_t(best));
    current_.state = Split::State::Ready;
    current_.turn = ++turns_;
    patience_ = kPatience;
    return true;
}

// Finds the next higher counter of another split in this frame, at which the splits merge; also whether one is at the
// current counter.
Warp::Next Warp::arrive() {
    limit_ = UINT32_MAX;
    bool switches = false;
    for (size_t i = 0; i < splits_.size();) {
        const Split& other = splits_[i];
        if (other.frame != current_.frame) {
            ++i;
            continue;
        }
        if (other.counter == current_.counter && other.state != Split::State::AtBarrier) {
            current_.mask |= other.mask;
            splits_.erase(splits_.begin() + ptrdiff_t(i));
            continue;
        }
        if (other.counter > current_.counter)
            limit_ = std::min(limit_, other.counter);
        else if (other.state == Split::State::Ready)
            switches = true;
        ++i;
    }
    return switches ? Next::Switch : Next::Go;
}

Warp::Stop Warp::run() {
    const Launch& launch = block_.launch;
    const uint64_t turn_ends = executed_ + kTurn;
    while (alive_) {
        if (!choose()) {
            no_progress();
            waits_ = true;
            return Stop::AtBarrier;
        }
        enter(current_.frame);
        arrive();
        execute();
        if (launch.stopped.load(std::memory_order_relaxed)) return Stop::Tired;
        if ((tired_ < kQuantum && executed_ < turn_ends) || !alive_) continue;
        tired_ = 0;
        // makes the fault show a thread that could continue
        const uint64_t executed = executed_ - started_at_;
        if (launch.most_instructions && executed > launch.most_instructions && choose()) {
            throw Fault(FaultKind::Timeout, __builtin_ctz(current_.mask),
                        "the warp has executed " + std::to_string(executed) + " instructions; the limit is " +
                            std::to_string(launch.most_instructions) + " (WEFT_EMULATED_LIMIT)");
        }
        return Stop::Tired;
    }
    return Stop::Done;
}

void Warp::set_actor() {
    actor_ =
        Actor::make(block_.launch.number, uint32_t(block_.linear_index), number_ * kLanes, block_.barriers, syncs_);
}

// Lanes may end before others come to a barrier or a shuffle, but not if they did something else while others waited
// for them.
void Warp::check_exit(Mask lanes) {
    const Mask wrong = lanes & acted_;
    if (!wrong) return;
    const std::string lane = std::to_string(__builtin_ctz(wrong));
    for (const Split& split : splits_) {
        const bool waits = split.state == Split::State::AtBarrier;
        if (waits && split.frame->function->instructions[split.counter].count != 0) {
            current_ = split;
            throw Fault(FaultKind::DivergentBarrier, __builtin_ctz(split.mask),
                        "lane " + lane + " of the warp went past this barrier and ended");
        }
        if (split.state == Split::State::NeedsLanes && (split.needed & wrong)) {
            current_ = split;
            throw Fault(
                FaultKind::MissingLane, __builtin_ctz(split.mask),
                "the mask " + hexadecimal(split.needed) + " names lane " + lane + ", which went past and ended");
        }
    }
}

// No split is ready: either all lanes wait at one barrier, or the kernel has a bug.
void Warp::no_progress() {
    const auto waits = [](const Split& split) { return split.state == Split::State::AtBarrier; };
    for (const Split& split : splits_) {
        if (waits(split)) continue;
        current_ = split;
        const Mask missing = split.needed & ~split.mask & alive_;
        const int lane = __builtin_ctz(missing);
        throw Fault(FaultKind::MissingLane, __builtin_ctz(split.mask),
                    "the mask " + hexadecimal(split.needed) + " names lane " + std::to_string(lane) +
                        ", which waits elsewhere");
    }
    current_ = splits_.front();
    const bool aligned = instruction().count != 0;
    if (aligned && splits_.size() > 1) {
        throw Fault(FaultKind::DivergentBarrier, __builtin_ctz(splits_[1].mask),
                    "lane " + std::to_string(__builtin_ctz(splits_[1].mask)) + " waits at another barrier than lane " +
                        std::to_string(__builtin_ctz(splits_[0].mask)));
    }
}

void Warp::pass_barrier(uint32_t value) {
    barrier_predicate_ = 0;
    waits_ = false;
    set_actor();
    std::vector<Split> waiting;
    waiting.swap(splits_);
    for (Split& split : waiting) {
        const Instruction& done = split.frame->function->instructions[split.counter];
        if (Control(done.operation) == Control::BarrierReduce) {
            enter(split.frame);
            mask = split.mask;
            if (done.flags == 0) {
                for (Mask rest = mask; rest; rest &= rest - 1) at<uint32_t>(done.result)[__builtin_ctz(rest)] = value;
            } else {
                set_predicate(done.result, value ? kAllLanes : 0);
            }
        }
        split.state = Split::State::Ready;
        ++split.counter;
        add_split(split);
    }
}

// Runs the current split until it ends, parks, or another should run. Afterwards it is in the list again, or has ended.
void Warp::execute() {
    mask = current_.mask;
    const Instruction* code = current_.frame->function->instructions.data();
    uint32_t counter = current_.counter;
    uint64_t executed = 0;
    for (;;) {
        const Instruction& instruction = code[counter];
        ++executed;
        current_.counter = counter;
        if (instruction.kind == Instruction::Kind::Plain) {
            instruction.run(*this, instruction);
            ++counter;
        } else {
            const Mask guard = instruction.has_guard ? predicate(instruction.guard) : kAllLanes;
            const Mask active = mask & (instruction.guard_negated ? ~guard : guard);
            if (instruction.kind == Instruction::Kind::Guarded) {
                mask = active;
                if (active) instruction.run(*this, instruction);
                mask = current_.mask;
                ++counter;
            } else {
                const Next next = control(instruction, active);
                if (next == Next::Switch) break;
                mask = current_.mask;
                counter = current_.counter;
                code = current_.frame->function->instructions.data();
                continue;
            }
        }
        if (counter == limit_) {
            current_.counter = counter;
            const Next next = arrive();
            mask = current_.mask;
            if (next == Next::Switch) {
                add_split(current_);
                break;
            }
        }
    }
    executed_ += executed;
}

}  // namespace weft::emulator
