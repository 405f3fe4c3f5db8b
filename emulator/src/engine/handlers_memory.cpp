// ld, st, atom and red.
#include <cstring>

#include "engine/decoder.h"
#include "engine/warp.h"

namespace weft::emulator::handlers {

namespace {

Warp& warp_of(Lanes& lanes) { return static_cast<Warp&>(lanes); }
ptx::Space space_of(const Instruction& instruction) { return ptx::Space(instruction.flags & kSpaceMask); }
uint32_t register_bytes(const Instruction& instruction) { return instruction.flags >> kRegisterShift; }

uint64_t read_register(const Lanes& lanes, RegisterCode code, uint32_t bytes, int lane) {
    switch (bytes) {
        case 2:
            return lanes.at<uint16_t>(code)[lane];
        case 4:
            return lanes.at<uint32_t>(code)[lane];
        default:
            return lanes.at<uint64_t>(code)[lane];
    }
}
void write_register(const Lanes& lanes, RegisterCode code, uint32_t bytes, int lane, uint64_t value) {
    switch (bytes) {
        case 2:
            lanes.at<uint16_t>(code)[lane] = uint16_t(value);
            break;
        case 4:
            lanes.at<uint32_t>(code)[lane] = uint32_t(value);
            break;
        default:
            lanes.at<uint64_t>(code)[lane] = value;
    }
}

// The value in memory, extended to a register.
uint64_t extended(const std::byte* place, uint32_t bytes, bool with_sign) {
    uint64_t value = 0;
    std::memcpy(&value, place, bytes);
    if (!with_sign || bytes == 8) return value;
    const int shift = 64 - int(bytes) * 8;
    return uint64_t(int64_t(value << shift) >> shift);
}

bool is_checked_together(ptx::Space space, Access access) {
    return space != ptx::Space::Local && space != ptx::Space::Param && access != Access::LoadReadOnly;
}

// The common loads: one number, as wide as its register.
template <class T>
void load_words(Warp& warp, const Instruction& instruction, Access access) {
    const uint64_t* base = warp.at<uint64_t>(instruction.source[0]);
    T* result = warp.at<T>(instruction.result);
    const ptx::Space space = space_of(instruction);
    uint64_t addresses[kLanes];
    for (int lane = 0; lane < kLanes; ++lane) addresses[lane] = base[lane] + uint64_t(instruction.immediate);
    const Allocation* all =
        is_checked_together(space, access) ? warp.reach_all(space, addresses, sizeof(T), access) : nullptr;
    for (Mask rest = warp.mask; rest; rest &= rest - 1) {
        const int lane = __builtin_ctz(rest);
        const std::byte* place = all ? all->data + (addresses[lane] - all->address)
                                     : warp.reach(space, lane, addresses[lane], sizeof(T), access);
        std::memcpy(&result[lane], place, sizeof(T));
    }
}
template <class T>
void store_words(Warp& warp, const Instruction& instruction, RegisterCode code, Access access) {
    const uint64_t* base = warp.at<uint64_t>(instruction.source[0]);
    const T* values = warp.at<T>(code);
    const ptx::Space space = space_of(instruction);
    uint64_t addresses[kLanes];
    for (int lane = 0; lane < kLanes; ++lane) addresses[lane] = base[lane] + uint64_t(instruction.immediate);
    const Allocation* all =
        is_checked_together(space, access)
            ? warp.reach_all(space, addresses, sizeof(T), access, reinterpret_cast<const std::byte*>(values))
            : nullptr;
    if (all) return;
    for (Mask rest = warp.mask; rest; rest &= rest - 1) {
        const int lane = __builtin_ctz(rest);
        warp.reach(space, lane, addresses[lane], sizeof(T), access, &values[lane]);
    }
}

const uint32_t* list_of(Warp& warp, const Instruction& instruction) {
    return warp.frame().function->lists.data() + instruction.extra;
}

}  // namespace

void load(Lanes& lanes, const Instruction& instruction) {
    Warp& warp = warp_of(lanes);
    const Access access = instruction.flags & kReadOnly ? Access::LoadReadOnly
                          : instruction.flags & kStrong ? Access::LoadStrong
                                                        : Access::Load;
    if (instruction.flags & kOrders) warp.fence(warp.mask);
    const uint32_t width = instruction.width, bytes = register_bytes(instruction);
    if (instruction.count == 1 && width == bytes) {
        if (width == 4) return load_words<uint32_t>(warp, instruction, access);
        if (width == 8) return load_words<uint64_t>(warp, instruction, access);
    }
    const uint32_t* list = list_of(warp, instruction);
    // the base may be one of the results
    uint64_t base[kLanes];
    std::memcpy(base, warp.at<uint64_t>(instruction.source[0]), sizeof base);
    for (Mask rest = warp.mask; rest; rest &= rest - 1) {
        const int lane = __builtin_ctz(rest);
        const std::byte* place = warp.reach(space_of(instruction), lane, base[lane] + uint64_t(instruction.immediate),
                                            width * instruction.count, access);
        for (uint32_t i = 0; i < instruction.count; ++i) {
            write_register(warp, list[i], bytes, lane, extended(place + i * width, width, instruction.flags & kSigned));
        }
    }
}

void store(Lanes& lanes, const Instruction& instruction) {
    Warp& warp = warp_of(lanes);
    const Access access = instruction.flags & kStrong ? Access::StoreStrong : Access::Store;
    if (instruction.flags & kOrders) warp.fence(warp.mask);
    const uint32_t width = instruction.width, bytes = register_bytes(instruction);
    const uint32_t* list = list_of(warp, instruction);
    if (instruction.count == 1 && width == bytes) {
        if (width == 4) return store_words<uint32_t>(warp, instruction, list[0], access);
        if (width == 8) return store_words<uint64_t>(warp, instruction, list[0], access);
    }
    const uint64_t* base = warp.at<uint64_t>(instruction.source[0]);
    for (Mask rest = warp.mask; rest; rest &= rest - 1) {
        const int lane = __builtin_ctz(rest);
        std::byte values[64];
        for (uint32_t i = 0; i < instruction.count; ++i) {
            const uint64_t value = read_register(warp, list[i], bytes, lane);
            std::memcpy(values + i * width, &value, width);
        }
        warp.reach(space_of(instruction), lane, base[lane] + uint64_t(instruction.immediate), width * instruction.count,
                   access, values);
    }
}

// A parameter of the entry: mostly the same for all lanes.
void load_parameter(Lanes& lanes, const Instruction& instruction) {
    Warp& warp = warp_of(lanes);
    const std::vector<std::byte>& parameters = warp.block().launch.parameters;
    const uint64_t* base = warp.at<uint64_t>(instruction.source[0]);
    const uint32_t* list = list_of(warp, instruction);
    const uint32_t width = instruction.width, size = width * instruction.count;
    uint64_t offsets[kLanes];
    std::memcpy(offsets, base, sizeof offsets);
    for (Mask rest = warp.mask; rest; rest &= rest - 1) {
        const int lane = __builtin_ctz(rest);
        const uint64_t offset = offsets[lane] + uint64_t(instruction.immediate);
        if (size > parameters.size() || offset > parameters.size() - size) {
            throw Fault(FaultKind::OutOfBounds, lane,
                        "a load of " + std::to_string(size) + " bytes at " + std::to_string(offset) +
                            " of the parameters, which have " + std::to_string(parameters.size()));
        }
        for (uint32_t i = 0; i < instruction.count; ++i) {
            write_register(warp, list[i], register_bytes(instruction), lane,
                           extended(parameters.data() + offset + i * width, width, instruction.flags & kSigned));
        }
    }
}

void fence(Lanes& lanes, const Instruction&) { warp_of(lanes).fence(lanes.mask); }
void nothing(Lanes&, const Instruction&) {}

}  // namespace weft::emulator::handlers
