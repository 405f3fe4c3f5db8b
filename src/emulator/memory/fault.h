#pragma once
// What a kernel did wrong. Handlers throw it; the launch adds which kernel, line, thread and block (engine/launch.cpp).
#include <cstdint>
#include <stdexcept>
#include <string>

namespace weft::emulator {

enum class FaultKind : uint8_t {
    OutOfBounds,  // beside an allocation, or nowhere near one
    UseAfterFree,
    HostAddress,  // memory of the host that was not registered
    PeerAccess,   // memory of another device that is not open to this one
    Misaligned,
    WrongSpace,       // a store to constants, an address of another space
    Uninitialised,    // a read of what was never written
    Race,             // plain accesses of two threads, not ordered by a barrier
    ReadOnlyWritten,  // ld.global.nc of what the launch writes
    DivergentBarrier,
    BarrierDeadlock,
    MissingLane,  // a lane of a mask that is not there
    StackOverflow,
    BadCall,  // an address that is no function
    Trap,
    Breakpoint,
    Assertion,
    Timeout,
    Unsupported,  // what the reader could not know to be unsupported
};

const char* name_of(FaultKind kind);

struct Fault : std::runtime_error {
    Fault(FaultKind kind, int lane, const std::string& text) : std::runtime_error(text), kind(kind), lane(lane) {}
    FaultKind kind;
    int lane;  // -1: no lane in particular
};

std::string hexadecimal(uint64_t value);

}  // namespace weft::emulator
