#pragma once
// Faults of kernels. Handlers throw them; the launch adds kernel, line, thread and block (engine/execution.cpp).
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
    WrongSpace,       // a store to constants, or an address of another space
    Uninitialised,    // a read of a byte that was never written
    Race,             // plain accesses of two threads, not ordered by a barrier
    ReadOnlyWritten,  // ld.global.nc of memory that the launch writes
    DivergentBarrier,
    BarrierDeadlock,
    MissingLane,  // a lane of a mask that has ended
    StackOverflow,
    BadCall,  // an address that is no function's
    Trap,
    Breakpoint,
    Assertion,
    Timeout,
    Unsupported,  // unsupported, but only detectable at run time
};

const char* name_of(FaultKind kind);

struct Fault : std::runtime_error {
    Fault(FaultKind kind, int lane, const std::string& text) : std::runtime_error(text), kind(kind), lane(lane) {}
    FaultKind kind;
    int lane;  // -1: no lane in particular
};

std::string hexadecimal(uint64_t value);

// A fault with the kernel, the thread and the line in its text.
struct Report {
    FaultKind kind;
    std::string text;
};

}  // namespace weft::emulator
