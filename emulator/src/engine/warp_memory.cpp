// Translates addresses of lanes to memory of the host, with all checks.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "engine/warp.h"

namespace weft::emulator {

namespace {

bool is_store(Access access) { return access == Access::Store || access == Access::StoreStrong; }
bool is_plain(Access access) {
    return access == Access::Load || access == Access::LoadReadOnly || access == Access::Store;
}

const char* verb(Access access) {
    if (is_store(access)) return "a store";
    return access == Access::Atomic ? "an atomic" : "a load";
}

std::string what(Access access, uint64_t address, uint32_t bytes) {
    return std::string(verb(access)) + " of " + std::to_string(bytes) + " bytes at " + hexadecimal(address);
}

// Calls `function` with the size of the parts that the shadow memory has for such an access: a word, or the access if
// it is smaller.
template <typename Function>
void in_parts(uint32_t bytes, Function&& function) {
    if (bytes == 1) return function(std::integral_constant<uint32_t, 1>());
    if (bytes == 2) return function(std::integral_constant<uint32_t, 2>());
    function(std::integral_constant<uint32_t, 4>());
}

// "thread 5 of block 3", for an entry of the shadow memory, which keeps 18 bits of block numbers.
std::string who(Actor actor, Actor now) {
    if (actor.several_blocks()) return "threads of several blocks";
    const std::string block =
        actor.block() == now.block() ? "the same block" : "block " + std::to_string(actor.block());
    if (actor.several_threads()) return "several threads of " + block;
    return "thread " + std::to_string(actor.thread()) + " of " + block;
}

}  // namespace

std::string Warp::describe(const Allocation& allocation) const {
    return &allocation == &block_.shared ? "the shared memory of " + std::to_string(allocation.size) + " bytes"
                                         : allocation.describe();
}

void Warp::fail_access(int lane, uint64_t address, uint32_t bytes, Access access, const Allocation* found) {
    const AddressSpace& space = AddressSpace::instance();
    const std::string text = what(access, address, bytes);
    if (found && found->freed) {
        throw Fault(FaultKind::UseAfterFree, lane,
                    text + ", " + std::to_string(address - found->address) + " bytes into " + found->describe() +
                        ", which was freed");
    }
    const int device = block_.launch.device;
    if (found && !space.can_reach(*found, device)) {
        const std::string owner = std::to_string(found->device), here = std::to_string(device);
        throw Fault(FaultKind::PeerAccess, lane,
                    text + " by a kernel on device " + here + ", in " + found->describe() + " on device " + owner +
                        ", which is not open to it: " +
                        (found->is_pooled ? "memory of a pool, which needs cuMemPoolSetAccess"
                                          : "plain memory, which needs cuCtxEnablePeerAccess"));
    }
    if (found) {
        const uint64_t end = found->end() - found->padding;
        throw Fault(FaultKind::OutOfBounds, lane,
                    text + ", " +
                        (address + bytes > end && address < end ? "across the end of "
                                                                : std::to_string(address - end) + " bytes behind ") +
                        describe(*found));
    }
    if (address < 4096) throw Fault(FaultKind::OutOfBounds, lane, text + ", a null pointer");
    if (address & kWindowMask)
        throw Fault(FaultKind::WrongSpace, lane, text + ", which is an address of another space");
    if (!space.is_device_address(address)) {
        throw Fault(FaultKind::HostAddress, lane,
                    text + ", which is no address of a device: memory of the host has to be pinned or registered");
    }
    throw Fault(FaultKind::OutOfBounds, lane, text + ", " + space.describe_near(address));
}

template <uint32_t kPart>
void Warp::check_words(Allocation& allocation, int lane, uint64_t offset, uint32_t bytes, Access access,
                       const void* value) {
    const Actor now = actor_.of_lane(lane, offset & 3, kPart);
    std::byte* data = allocation.data + offset;
    for (uint32_t at = 0; at < bytes; at += kPart) {
        ShadowWord& word = allocation.words[(offset + at) / 4];
        const Actor writer = writer_of(word), reader = reader_of(word);
        const uint64_t address = allocation.address + offset + at;
        if (access == Access::LoadReadOnly && writer.meets(now)) {
            throw Fault(FaultKind::ReadOnlyWritten, lane,
                        "ld.global.nc at " + hexadecimal(address) + ", which " + who(writer, now) +
                            " has written in this launch");
        }
        if (is_store(access)) {
            const std::byte* part = static_cast<const std::byte*>(value) + at;
            const bool fine = may_write(word, now);
            if (std::memcmp(data + at, part, kPart) == 0) continue;
            if (fine) {
                std::memcpy(data + at, part, kPart);
                note_write(word, now);
                continue;
            }
        } else if (note_read(word, now)) {
            continue;
        }
        const bool wrote = conflicts(writer, now);
        throw Fault(FaultKind::Race, lane,
                    what(access, address, kPart) + " that " + who(wrote ? writer : reader, now) +
                        (wrote ? " has written" : " has read") + ", with no barrier between, in " +
                        describe(allocation));
    }
}

std::byte* Warp::check(Allocation& allocation, int lane, uint64_t address, uint32_t bytes, Access access,
                       const void* value) {
    const uint64_t offset = address - allocation.address, size = allocation.size_for(bytes);
    if (bytes > size || offset > size - bytes || allocation.freed.load(std::memory_order_relaxed)) {
        fail_access(lane, address, bytes, access, &allocation);
    }
    if (address & (bytes - 1)) {
        throw Fault(FaultKind::Misaligned, lane,
                    what(access, address, bytes) + ", which is no multiple of " + std::to_string(bytes));
    }
    if (allocation.kind == Allocation::Kind::Constant &&
        !(access == Access::Load || access == Access::LoadReadOnly || access == Access::LoadStrong)) {
        throw Fault(FaultKind::WrongSpace, lane, what(access, address, bytes) + " to " + allocation.describe());
    }
    if (!allocation.complete.load(std::memory_order_relaxed)) {
        uint8_t* written = allocation.written + offset;
        if (is_store(access)) {
            std::memset(written, 1, bytes);
        } else if (const void* hole = std::memchr(written, 0, bytes)) {
            const uint64_t at = uint64_t(static_cast<const uint8_t*>(hole) - allocation.written);
            throw Fault(FaultKind::Uninitialised, lane,
                        what(access, address, bytes) + ", of which byte " + std::to_string(at) + " of " +
                            describe(allocation) + " was never written");
        }
    }
    if (allocation.words && is_plain(access) && !(fenced_ >> lane & 1)) {
        in_parts(bytes, [&](auto part) { check_words<part()>(allocation, lane, offset, bytes, access, value); });
    } else if (is_store(access)) {
        std::memcpy(allocation.data + offset, value, bytes);
    }
    return allocation.data + offset;
}

// Whether no lane races. The racing access is not noted, so that reach() finds the same race.
template <uint32_t kPart>
bool Warp::note_words(Allocation& allocation, const uint64_t* addresses, uint32_t bytes, Access access,
                      const std::byte* values) {
    for (Mask rest = mask & ~fenced_; rest; rest &= rest - 1) {
        const int lane = __builtin_ctz(rest);
        const uint64_t offset = addresses[lane] - allocation.address;
        const Actor now = actor_.of_lane(lane, offset & 3, kPart);
        for (uint32_t at = 0; at < bytes; at += kPart) {
            ShadowWord& word = allocation.words[(offset + at) / 4];
            if (access == Access::Load) {
                if (!note_read(word, now)) return false;
                continue;
            }
            const std::byte* part = values + size_t(lane) * bytes + at;
            const bool fine = may_write(word, now);
            if (std::memcmp(allocation.data + offset + at, part, kPart) == 0) continue;
            if (!fine) return false;
            std::memcpy(allocation.data + offset + at, part, kPart);
            note_write(word, now);
        }
    }
    return true;
}

Allocation* Warp::reach_all(ptx::Space space, const uint64_t* addresses, uint32_t bytes, Access access,
                            const std::byte* values) {
    uint64_t least = ~uint64_t(0), most = 0, bits = 0;
    if (mask == kAllLanes) {
        for (int lane = 0; lane < kLanes; ++lane) {
            least = std::min(least, addresses[lane]);
            most = std::max(most, addresses[lane]);
            bits |= addresses[lane];
        }
    } else {
        for (Mask rest = mask; rest; rest &= rest - 1) {
            const uint64_t address = addresses[__builtin_ctz(rest)];
            least = std::min(least, address);
            most = std::max(most, address);
            bits |= address;
        }
    }
    Allocation* found = &block_.shared;
    if (space != ptx::Space::Shared) {
        if (!recent_ || least - recent_->address >= recent_->size) {
            Allocation* const other = AddressSpace::instance().find(least);
            if (!other || !AddressSpace::instance().can_reach(*other, block_.launch.device)) return nullptr;
            recent_ = other;
        }
        found = recent_;
    }
    if (!found || least < found->address) return nullptr;
    const uint64_t size = found->size_for(bytes);
    if (size < bytes || most - found->address > size - bytes || (bits & (bytes - 1)) ||
        found->freed.load(std::memory_order_relaxed)) {
        return nullptr;
    }
    const bool stores = is_store(access);
    if (stores && found->kind == Allocation::Kind::Constant) return nullptr;
    if (!found->complete.load(std::memory_order_relaxed)) {
        for (Mask rest = mask; rest; rest &= rest - 1) {
            uint8_t* written = found->written + (addresses[__builtin_ctz(rest)] - found->address);
            if (stores)
                std::memset(written, 1, bytes);
            else if (std::memchr(written, 0, bytes))
                return nullptr;
        }
    }
    if (stores) acted_ |= mask;
    const bool plain = access == Access::Load || access == Access::Store;
    const Mask noted = found->words && plain ? mask & ~fenced_ : 0;
    bool is_fine = true;
    if (noted)
        in_parts(bytes, [&](auto part) { is_fine = note_words<part()>(*found, addresses, bytes, access, values); });
    if (!is_fine) return nullptr;
    if (!stores) return found;
    for (Mask rest = mask & ~noted; rest; rest &= rest - 1) {
        const int lane = __builtin_ctz(rest);
        std::memcpy(found->data + (addresses[lane] - found->address), values + size_t(lane) * bytes, bytes);
    }
    return found;
}

std::byte* Warp::reach(ptx::Space space, int lane, uint64_t address, uint32_t bytes, Access access, const void* value) {
    if (is_store(access) || access == Access::Atomic) acted_ |= Mask(1) << lane;
    switch (space) {
        case ptx::Space::Global:
        case ptx::Space::Const:
            break;
        case ptx::Space::Shared:
            return check(block_.shared, lane, address, bytes, access, value);
        case ptx::Space::Local:
            return reach_local(lane, address, bytes, is_store(access) ? value : nullptr);
        default:
            return reach_generic(lane, address, bytes, access, value);
    }
    // mostly all lanes and the next instructions access one allocation
    if (!recent_ || address - recent_->address >= recent_->size) {
        Allocation* found = AddressSpace::instance().find(address);
        if (!found || !AddressSpace::instance().can_reach(*found, block_.launch.device))
            fail_access(lane, address, bytes, access, found);
        recent_ = found;
    }
    return check(*recent_, lane, address, bytes, access, value);
}

std::byte* Warp::reach_generic(int lane, uint64_t address, uint32_t bytes, Access access, const void* value) {
    const uint64_t window = address & kWindowMask, offset = address & ~kWindowMask;
    if (window == 0) return reach(ptx::Space::Global, lane, address, bytes, access, value);
    if (window == kSharedWindow) return reach(ptx::Space::Shared, lane, offset, bytes, access, value);
    if (window == kLocalWindow) return reach_local(lane, offset, bytes, is_store(access) ? value : nullptr);
    if (window == kParamWindow && !is_store(access) && access != Access::Atomic) {
        std::vector<std::byte>& parameters = block_.launch.parameters;
        if (bytes <= parameters.size() && offset <= parameters.size() - bytes) return parameters.data() + offset;
    }
    fail_access(lane, address, bytes, access, nullptr);
}

std::byte* Warp::reach_local(int lane, uint64_t address, uint32_t bytes, const void* value) {
    const uint64_t size = current_.frame->local_base + current_.frame->function->local_size;
    if (bytes > size || address > size - bytes) {
        throw Fault(FaultKind::OutOfBounds, lane,
                    what(Access::Load, address, bytes) + " or a store like it, of local memory, of which " +
                        std::to_string(size) + " bytes are in use");
    }
    if (address & (bytes - 1)) {
        throw Fault(FaultKind::Misaligned, lane,
                    "an access of " + std::to_string(bytes) + " bytes of local memory at " + hexadecimal(address));
    }
    std::byte* place = local_.data() + size_t(lane) * local_size_ + address;
    if (value) std::memcpy(place, value, bytes);
    return place;
}

}  // namespace weft::emulator
