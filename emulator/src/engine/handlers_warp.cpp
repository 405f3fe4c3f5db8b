// Operations across the lanes of a warp, special registers, addresses, and parts of registers.
#include <time.h>

#include <cstring>

#include "engine/decoder.h"
#include "engine/warp.h"

namespace weft::emulator {

namespace {

Warp& warp_of(Lanes& lanes) { return static_cast<Warp&>(lanes); }

template <class F>
void each(Mask mask, F visit) {
    for (Mask rest = mask; rest; rest &= rest - 1) visit(__builtin_ctz(rest));
}

}  // namespace

namespace handlers {

void active_mask(Lanes& lanes, const Instruction& instruction) {
    each(lanes.mask, [&](int lane) { lanes.at<uint32_t>(instruction.result)[lane] = lanes.mask; });
}

// The value that a lane reads from an absent one: conspicuously wrong.
constexpr uint32_t kAbsent = 0xdeadbeef;

void shuffle(Lanes& lanes, const Instruction& instruction) {
    uint32_t values[kLanes], result[kLanes];
    std::memcpy(values, lanes.at<uint32_t>(instruction.source[0]), sizeof values);
    const uint32_t* b = lanes.at<uint32_t>(instruction.source[1]);
    const uint32_t* c = lanes.at<uint32_t>(instruction.source[2]);
    Mask in_range = 0;
    each(lanes.mask, [&](int lane) {
        const int by = int(b[lane] & 31), clamp = int(c[lane] & 31), segment = int(c[lane] >> 8 & 31);
        const int most = (lane & segment) | (clamp & ~segment), least = lane & segment;
        int from = 0;
        bool inside = false;
        switch (instruction.flags) {
            case 0:
                from = lane - by, inside = from >= most;
                break;
            case 1:
                from = lane + by, inside = from <= most;
                break;
            case 2:
                from = lane ^ by, inside = from <= most;
                break;
            default:
                from = least | (by & ~segment), inside = from <= most;
        }
        if (!inside) from = lane;
        result[lane] = lanes.mask >> from & 1 ? values[from] : kAbsent;
        in_range |= Mask(inside) << lane;
    });
    each(lanes.mask, [&](int lane) { lanes.at<uint32_t>(instruction.result)[lane] = result[lane]; });
    if (instruction.extra != 0xffffffff) lanes.set_predicate(instruction.extra, in_range);
}

void vote(Lanes& lanes, const Instruction& instruction) {
    const Mask ballot = lanes.predicate(instruction.source[0]) & lanes.mask;
    switch (instruction.flags) {
        case 0:
            return lanes.set_predicate(instruction.result, ballot == lanes.mask ? kAllLanes : 0);
        case 1:
            return lanes.set_predicate(instruction.result, ballot ? kAllLanes : 0);
        case 2:
            return lanes.set_predicate(instruction.result, ballot == lanes.mask || !ballot ? kAllLanes : 0);
        default:
            each(lanes.mask, [&](int lane) { lanes.at<uint32_t>(instruction.result)[lane] = ballot; });
    }
}

void match(Lanes& lanes, const Instruction& instruction) {
    uint64_t values[kLanes] = {};
    each(lanes.mask, [&](int lane) {
        values[lane] = instruction.width == 4 ? lanes.at<uint32_t>(instruction.source[0])[lane]
                                              : lanes.at<uint64_t>(instruction.source[0])[lane];
    });
    bool all_same = true;
    each(lanes.mask, [&](int lane) {
        Mask same = 0;
        each(lanes.mask, [&](int other) { same |= Mask(values[other] == values[lane]) << other; });
        all_same &= same == lanes.mask;
        lanes.at<uint32_t>(instruction.result)[lane] = same;
    });
    if (!instruction.flags) return;
    each(lanes.mask, [&](int lane) { lanes.at<uint32_t>(instruction.result)[lane] = all_same ? lanes.mask : 0; });
    if (instruction.extra != 0xffffffff) lanes.set_predicate(instruction.extra, all_same ? kAllLanes : 0);
}

void reduce(Lanes& lanes, const Instruction& instruction) {
    const uint32_t* values = lanes.at<uint32_t>(instruction.source[0]);
    uint32_t result = values[__builtin_ctz(lanes.mask)];
    each(lanes.mask & (lanes.mask - 1), [&](int lane) {
        const uint32_t value = values[lane];
        const bool less = instruction.width ? int32_t(value) < int32_t(result) : value < result;
        switch (instruction.flags) {
            case 0:
                result += value;
                break;
            case 1:
                result = less ? value : result;
                break;
            case 2:
                result = less ? result : value;
                break;
            case 3:
                result &= value;
                break;
            case 4:
                result |= value;
                break;
            default:
                result ^= value;
        }
    });
    each(lanes.mask, [&](int lane) { lanes.at<uint32_t>(instruction.result)[lane] = result; });
}

// The lowest lane is the leader.
void elect(Lanes& lanes, const Instruction& instruction) {
    const uint32_t leader = uint32_t(__builtin_ctz(lanes.mask));
    if (instruction.result != 0xffffffff)
        each(lanes.mask, [&](int lane) { lanes.at<uint32_t>(instruction.result)[lane] = leader; });
    lanes.set_predicate(instruction.extra, Mask(1) << leader);
}

void sync_warp(Lanes& lanes, const Instruction&) { warp_of(lanes).synchronize(); }

void pack(Lanes& lanes, const Instruction& instruction) {
    const uint32_t* parts = warp_of(lanes).frame().function->lists.data() + instruction.extra;
    const uint32_t width = instruction.width, bytes = width * instruction.count;
    each(lanes.mask, [&](int lane) {
        std::byte value[8];
        for (uint32_t i = 0; i < instruction.count; ++i) {
            std::memcpy(value + i * width, lanes.at<std::byte>(parts[i]) + uint32_t(lane) * width, width);
        }
        std::memcpy(lanes.at<std::byte>(instruction.result) + uint32_t(lane) * bytes, value, bytes);
    });
}

void unpack(Lanes& lanes, const Instruction& instruction) {
    const uint32_t* parts = warp_of(lanes).frame().function->lists.data() + instruction.extra;
    const uint32_t width = instruction.width, bytes = width * instruction.count;
    each(lanes.mask, [&](int lane) {
        std::byte value[8];
        std::memcpy(value, lanes.at<std::byte>(instruction.source[0]) + uint32_t(lane) * bytes, bytes);
        for (uint32_t i = 0; i < instruction.count; ++i) {
            std::memcpy(lanes.at<std::byte>(parts[i]) + uint32_t(lane) * width, value + i * width, width);
        }
    });
}

namespace {

void write_all(Lanes& lanes, const Instruction& instruction, uint64_t value) {
    each(lanes.mask, [&](int lane) {
        if (instruction.width == 4)
            lanes.at<uint32_t>(instruction.result)[lane] = uint32_t(value);
        else
            lanes.at<uint64_t>(instruction.result)[lane] = value;
    });
}

}  // namespace

void local_address(Lanes& lanes, const Instruction& instruction) {
    write_all(lanes, instruction, warp_of(lanes).frame().local_base + uint64_t(instruction.immediate));
}

// Dynamic shared memory follows the entry's own.
void dynamic_shared(Lanes& lanes, const Instruction& instruction) {
    const uint64_t own = warp_of(lanes).block().launch.kernel->shared_size;
    write_all(lanes, instruction, (own + 127) / 128 * 128 + uint64_t(instruction.immediate));
}

void to_window(Lanes& lanes, const Instruction& instruction) {
    const uint64_t* from = lanes.at<uint64_t>(instruction.source[0]);
    each(lanes.mask, [&](int lane) {
        lanes.at<uint64_t>(instruction.result)[lane] = from[lane] + uint64_t(instruction.immediate);
    });
}

void from_window(Lanes& lanes, const Instruction& instruction) {
    const uint64_t* from = lanes.at<uint64_t>(instruction.source[0]);
    each(lanes.mask, [&](int lane) {
        lanes.at<uint64_t>(instruction.result)[lane] = from[lane] - uint64_t(instruction.immediate);
    });
}

void is_space(Lanes& lanes, const Instruction& instruction) {
    const uint64_t* addresses = lanes.at<uint64_t>(instruction.source[0]);
    Mask result = 0;
    each(lanes.mask, [&](int lane) {
        bool is = (addresses[lane] & kWindowMask) == uint64_t(instruction.immediate);
        if (is && instruction.immediate == 0) {
            const Allocation* found = AddressSpace::instance().find(addresses[lane]);
            is = (found && found->kind == Allocation::Kind::Constant) == (instruction.flags != 0);
        }
        result |= Mask(is) << lane;
    });
    lanes.set_predicate(instruction.result, result);
}

}  // namespace handlers

namespace {

enum class Special : uint32_t {
    tid_x,
    tid_y,
    tid_z,
    ntid_x,
    ntid_y,
    ntid_z,
    ctaid_x,
    ctaid_y,
    ctaid_z,
    nctaid_x,
    nctaid_y,
    nctaid_z,
    laneid,
    warpid,
    nwarpid,
    smid,
    nsmid,
    gridid,
    lanemask_eq,
    lanemask_le,
    lanemask_lt,
    lanemask_ge,
    lanemask_gt,
    clock,
    clock_hi,
    clock64,
    globaltimer,
    globaltimer_lo,
    globaltimer_hi,
    total_smem_size,
    dynamic_smem_size
};

uint64_t nanoseconds() {
    timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return uint64_t(now.tv_sec) * 1000000000 + uint64_t(now.tv_nsec);
}

// Registers with the same value in all lanes.
uint64_t uniform_register(Warp& warp, Special which) {
    const BlockState& block = warp.block();
    const Launch& launch = block.launch;
    const uint32_t index = uint32_t(which);
    switch (which) {
        case Special::ntid_x:
        case Special::ntid_y:
        case Special::ntid_z:
            return launch.threads[index - uint32_t(Special::ntid_x)];
        case Special::ctaid_x:
        case Special::ctaid_y:
        case Special::ctaid_z:
            return block.index[index - uint32_t(Special::ctaid_x)];
        case Special::nctaid_x:
        case Special::nctaid_y:
        case Special::nctaid_z:
            return launch.grid[index - uint32_t(Special::nctaid_x)];
        case Special::warpid:
            return warp.number();
        case Special::nwarpid:
            return (launch.block_threads() + kLanes - 1) / kLanes;
        case Special::smid:
            return block.linear_index % 16;
        case Special::nsmid:
            return 16;
        case Special::gridid:
            return launch.number;
        case Special::clock:
        case Special::clock64:
            return warp.clock();
        case Special::clock_hi:
            return warp.clock() >> 32;
        case Special::globaltimer:
            return nanoseconds();
        case Special::globaltimer_lo:
            return uint32_t(nanoseconds());
        case Special::globaltimer_hi:
            return nanoseconds() >> 32;
        case Special::total_smem_size:
            return block.shared.size;
        case Special::dynamic_smem_size:
            return launch.dynamic_shared;
        default:
            return 0;
    }
}

uint64_t lane_register(Special which, uint32_t lane) {
    const uint32_t own = 1u << lane;
    switch (which) {
        case Special::laneid:
            return lane;
        case Special::lanemask_eq:
            return own;
        case Special::lanemask_lt:
            return own - 1;
        case Special::lanemask_le:
            return own | (own - 1);
        case Special::lanemask_ge:
            return ~(own - 1);
        default:
            return ~(own | (own - 1));
    }
}

template <class T>
void read_special(Lanes& lanes, const Instruction& instruction) {
    Warp& warp = warp_of(lanes);
    const Special which = Special(instruction.extra);
    T* result = lanes.at<T>(instruction.result);
    if (which <= Special::tid_z) {
        each(lanes.mask, [&](int lane) { result[lane] = warp.thread_index[instruction.extra][lane]; });
    } else if (which == Special::laneid || (which >= Special::lanemask_eq && which <= Special::lanemask_gt)) {
        each(lanes.mask, [&](int lane) { result[lane] = T(lane_register(which, uint32_t(lane))); });
    } else {
        const T value = T(uniform_register(warp, which));
        each(lanes.mask, [&](int lane) { result[lane] = value; });
    }
}

}  // namespace

Handler special_register(std::string_view name, bool wide, uint32_t& extra) {
    static constexpr std::string_view kNames[] = {"%tid.x",
                                                  "%tid.y",
                                                  "%tid.z",
                                                  "%ntid.x",
                                                  "%ntid.y",
                                                  "%ntid.z",
                                                  "%ctaid.x",
                                                  "%ctaid.y",
                                                  "%ctaid.z",
                                                  "%nctaid.x",
                                                  "%nctaid.y",
                                                  "%nctaid.z",
                                                  "%laneid",
                                                  "%warpid",
                                                  "%nwarpid",
                                                  "%smid",
                                                  "%nsmid",
                                                  "%gridid",
                                                  "%lanemask_eq",
                                                  "%lanemask_le",
                                                  "%lanemask_lt",
                                                  "%lanemask_ge",
                                                  "%lanemask_gt",
                                                  "%clock",
                                                  "%clock_hi",
                                                  "%clock64",
                                                  "%globaltimer",
                                                  "%globaltimer_lo",
                                                  "%globaltimer_hi",
                                                  "%total_smem_size",
                                                  "%dynamic_smem_size"};
    static_assert(std::size(kNames) == size_t(Special::dynamic_smem_size) + 1);
    for (uint32_t i = 0; i < std::size(kNames); ++i) {
        if (kNames[i] != name) continue;
        extra = i;
        return wide ? read_special<uint64_t> : read_special<uint32_t>;
    }
    return nullptr;
}

}  // namespace weft::emulator
