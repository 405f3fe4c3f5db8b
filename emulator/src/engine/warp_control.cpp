// Instructions that change masks and counters.
#include <algorithm>
#include <cstring>

#include "engine/system.h"

namespace weft::emulator {

namespace {

constexpr uint32_t kMostLocal = 1u << 20;  // bytes of local memory per thread
constexpr uint32_t kDeepestCall = 4096;

}  // namespace

// Continues at the counter; splits may merge there, or others have to run first.
Warp::Next Warp::jump(uint32_t counter) {
    const bool backward = counter <= current_.counter;
    current_.counter = counter;
    if (splits_.empty()) {
        limit_ = UINT32_MAX;
        // other warps may hold a lock that this loop waits for
        if (backward && --patience_ == 0) {
            tire();
            add_split(current_);
            return Next::Switch;
        }
        return Next::Go;
    }
    bool switches = arrive() == Next::Switch && !favoured_;
    if (backward && --patience_ == 0) {
        tire();
        switches = fair_ = true;
    }
    if (!switches) return Next::Go;
    add_split(current_);
    return Next::Switch;
}

Warp::Next Warp::branch(const Instruction& instruction, Mask active) {
    const uint32_t target = uint32_t(instruction.immediate);
    if (active == 0) return jump(current_.counter + 1);
    if (active == current_.mask) return jump(target);
    Split other = current_;
    other.mask = current_.mask & ~active;
    other.counter = current_.counter + 1;
    current_.mask = active;
    // the lower split continues
    if (target > other.counter) {
        std::swap(current_.mask, other.mask);
        other.counter = target;
        add_split(other);
        return jump(current_.counter + 1);
    }
    add_split(other);
    return jump(target);
}

Warp::Next Warp::branch_indexed(const Instruction& instruction) {
    const CodeFunction& function = *current_.frame->function;
    const uint32_t count = function.lists[instruction.extra];
    const uint32_t* index = at<uint32_t>(instruction.source[0]);
    const Split before = current_;
    for (Mask rest = before.mask; rest;) {
        const int lane = __builtin_ctz(rest);
        if (index[lane] >= count) {
            throw Fault(FaultKind::BadCall, lane,
                        "brx.idx with " + std::to_string(index[lane]) + " of " + std::to_string(count) + " targets");
        }
        Mask together = 0;
        for (Mask left = rest; left; left &= left - 1) {
            if (index[__builtin_ctz(left)] == index[lane]) together |= left & -left;
        }
        rest &= ~together;
        Split part = before;
        part.mask = together;
        part.counter = function.lists[instruction.extra + 1 + index[lane]];
        add_split(part);
    }
    return Next::Switch;
}

// The function that the first lane calls, and the lanes that call the same one.
int Warp::called_function(const CallSite& site, Mask& active) {
    if (site.callee >= 0) return site.callee;
    const uint64_t* targets = at<uint64_t>(site.target);
    const int lane = __builtin_ctz(active);
    const uint64_t address = targets[lane], index = address - kCodeWindow;
    const Program& program = *block_.launch.program;
    if (index >= program.functions.size() || !program.functions[index].source->defined ||
        program.functions[index].source->entry) {
        throw Fault(FaultKind::BadCall, lane, "a call of " + hexadecimal(address) + ", an address of no function");
    }
    const CodeFunction& callee = program.functions[index];
    if (site.sizes != callee.parameter_sizes || (site.result_size && site.result_size != callee.return_size)) {
        throw Fault(FaultKind::BadCall, lane,
                    "'" + callee.source->name + "' is called by address with other parameters than it has");
    }
    for (Mask rest = active; rest; rest &= rest - 1) {
        if (targets[__builtin_ctz(rest)] != address) active &= ~(rest & -rest);
    }
    return int(index);
}

Warp::Next Warp::call(const Instruction& instruction, Mask active) {
    if (!active) return jump(current_.counter + 1);
    Frame* caller = current_.frame;
    const CallSite& site = caller->function->sites[instruction.extra];
    const Mask wanted = active;
    const CodeFunction& callee = block_.launch.program->functions[size_t(called_function(site, active))];
    // lanes with another target stay, lanes without a call continue after it
    const auto leave_behind = [&](Mask lanes, uint32_t counter) {
        Split rest = current_;
        rest.mask = lanes;
        rest.counter = counter;
        if (lanes) add_split(rest);
    };
    leave_behind(wanted & ~active, current_.counter);
    leave_behind(current_.mask & ~wanted, current_.counter + 1);
    const uint32_t base_of_callee = caller->local_base + caller->function->local_size;
    if (caller->depth >= kDeepestCall || base_of_callee + callee.local_size > kMostLocal) {
        throw Fault(FaultKind::StackOverflow, __builtin_ctz(active),
                    "calls are " + std::to_string(caller->depth + 1) + " deep and take " +
                        std::to_string(base_of_callee + callee.local_size) + " bytes of local memory; " +
                        std::to_string(kMostLocal) + " are there");
    }
    grow_local(base_of_callee + callee.local_size);
    for (Mask rest = active; rest; rest &= rest - 1) {
        std::byte* lane = local_.data() + size_t(__builtin_ctz(rest)) * local_size_;
        spoil_local(size_t(__builtin_ctz(rest)), base_of_callee, callee.local_size);
        for (size_t i = 0; i < site.arguments.size(); ++i) {
            std::memcpy(lane + base_of_callee + callee.parameter_offsets[i],
                        lane + caller->local_base + site.arguments[i], site.sizes[i]);
        }
    }
    Frame* frame = make_frame(callee);
    frame->caller = caller;
    frame->site = &site;
    frame->return_to = current_.counter + 1;
    frame->local_base = base_of_callee;
    frame->live = uint32_t(__builtin_popcount(active));
    frame->depth = caller->depth + 1;
    current_.frame = frame;
    current_.mask = active;
    current_.counter = 0;
    enter(frame);
    arrive();
    return Next::Go;
}

// Return or exit of some lanes. The remaining ones continue after it.
Warp::Next Warp::leave(Mask active, bool exits) {
    Frame* frame = current_.frame;
    if (active != current_.mask) {
        Split rest = current_;
        rest.mask &= ~active;
        ++rest.counter;
        add_split(rest);
    }
    if (!active) return Next::Switch;
    const uint32_t count = uint32_t(__builtin_popcount(active));
    Frame* caller = frame->caller;
    if (exits || !caller) {
        alive_ &= ~active;
        check_exit(active);
        for (Frame* one = frame; one;) {
            Frame* next = one->caller;
            if ((one->live -= count) == 0) drop_frame(one);
            one = next;
        }
        return Next::Switch;
    }
    const CodeFunction& function = *frame->function;
    if (const uint32_t size = std::min(frame->site->result_size, function.return_size)) {
        for (Mask rest = active; rest; rest &= rest - 1) {
            std::byte* lane = local_.data() + size_t(__builtin_ctz(rest)) * local_size_;
            std::memcpy(lane + caller->local_base + frame->site->result,
                        lane + frame->local_base + function.return_offset, size);
        }
    }
    Split back = current_;
    back.frame = caller;
    back.mask = active;
    back.counter = frame->return_to;
    if ((frame->live -= count) == 0) drop_frame(frame);
    add_split(back);
    return Next::Switch;
}

Warp::Next Warp::barrier(const Instruction& instruction) {
    const int lane = __builtin_ctz(current_.mask);
    const uint32_t number = at<uint32_t>(instruction.source[0])[lane],
                   threads = at<uint32_t>(instruction.source[1])[lane];
    if (number > 15)
        throw Fault(FaultKind::DivergentBarrier, lane, "barrier " + std::to_string(number) + "; there are 0 to 15");
    if (threads % kLanes) {
        throw Fault(FaultKind::DivergentBarrier, lane,
                    "a barrier of " + std::to_string(threads) + " threads, no multiple of 32");
    }
    if (Control(instruction.operation) == Control::Arrive) {
        block_.arrived[number] += uint32_t(__builtin_popcount(current_.mask));
        return jump(current_.counter + 1);
    }
    if (Control(instruction.operation) == Control::BarrierReduce) {
        barrier_predicate_ |= predicate(instruction.source[2]) & current_.mask;
    }
    current_.barrier = number;
    current_.threads = threads;
    park(Split::State::AtBarrier, 0);
    return Next::Switch;
}

// Lanes of one mask execute an instruction together, once all have arrived.
Warp::Next Warp::converge(const Instruction& instruction) {
    const uint32_t* masks = at<uint32_t>(instruction.source[3]);
    for (Mask rest = current_.mask; rest;) {
        const int lane = __builtin_ctz(rest);
        const Mask together = masks[lane];
        if (!(together >> lane & 1)) {
            throw Fault(
                FaultKind::MissingLane, lane,
                "lane " + std::to_string(lane) + " is not in the mask " + hexadecimal(together) + " that it gives");
        }
        if (together & ~current_.mask & alive_) {
            park(Split::State::NeedsLanes, together | current_.mask);
            return Next::Switch;
        }
        rest &= ~together;
    }
    for (Mask rest = current_.mask; rest;) {
        // the mask's other lanes have ended
        mask = masks[__builtin_ctz(rest)] & current_.mask;
        rest &= ~mask;
        instruction.run(*this, instruction);
    }
    return jump(current_.counter + 1);
}

void Warp::system(const Instruction& instruction) {
    const CallSite& site = current_.frame->function->sites[instruction.extra];
    for (Mask rest = mask; rest; rest &= rest - 1) {
        const int lane = __builtin_ctz(rest);
        std::byte* local = local_.data() + size_t(lane) * local_size_ + current_.frame->local_base;
        uint64_t arguments[5] = {};
        for (size_t i = 0; i < std::min<size_t>(site.arguments.size(), 5); ++i) {
            std::memcpy(&arguments[i], local + site.arguments[i], std::min<uint32_t>(site.sizes[i], 8));
        }
        const uint64_t result = call_system(*this, lane, site.system, arguments);
        std::memcpy(local + site.result, &result, std::min<uint32_t>(site.result_size, 8));
    }
}

Warp::Next Warp::control(const Instruction& instruction, Mask active) {
    const Control operation = Control(instruction.operation);
    switch (operation) {
        case Control::Branch:
            return branch(instruction, active);
        case Control::Call:
            return call(instruction, active);
        case Control::Return:
        case Control::Exit:
            return leave(active, operation == Control::Exit);
        default:
            break;
    }
    // The instruction is executed by some lanes while the others wait after it.
    if (active != current_.mask) {
        Split rest = current_;
        rest.mask &= ~active;
        ++rest.counter;
        add_split(rest);
        if (!active) return Next::Switch;
        mask = current_.mask = active;
    }
    switch (operation) {
        case Control::BranchIndexed:
            return branch_indexed(instruction);
        case Control::Barrier:
        case Control::Arrive:
        case Control::BarrierReduce:
            return barrier(instruction);
        case Control::Converge:
            return converge(instruction);
        case Control::System:
            system(instruction);
            return jump(current_.counter + 1);
        case Control::Trap:
            throw Fault(FaultKind::Trap, __builtin_ctz(active), "the kernel executed trap");
        case Control::Breakpoint:
            throw Fault(FaultKind::Breakpoint, __builtin_ctz(active), "the kernel executed brkpt");
        default:
            break;
    }
    // Yield
    for (uint32_t i = 0; i < 16; ++i) tire();
    fair_ = true;
    ++current_.counter;
    add_split(current_);
    return Next::Switch;
}

void Warp::grow_local(uint32_t size) {
    if (size <= local_size_) return;
    const uint32_t next = std::max(size, std::min(local_size_ * 2, kMostLocal));
    std::vector<std::byte> grown(size_t(next) * kLanes);
    for (size_t lane = 0; lane < kLanes; ++lane) {
        if (local_size_) std::memcpy(grown.data() + lane * next, local_.data() + lane * local_size_, local_size_);
    }
    local_ = std::move(grown);
    local_size_ = next;
}

// A function's variables are initially undefined: reading one before a write gives all ones, a NaN as a float.
void Warp::spoil_local(size_t lane, uint32_t offset, uint32_t size) {
    std::memset(local_.data() + lane * local_size_ + offset, 0xff, size);
}

}  // namespace weft::emulator
