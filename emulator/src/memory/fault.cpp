#include "memory/fault.h"

#include <cstdio>

namespace weft::emulator {

const char* name_of(FaultKind kind) {
    switch (kind) {
        case FaultKind::OutOfBounds:
            return "out of bounds";
        case FaultKind::UseAfterFree:
            return "use after free";
        case FaultKind::HostAddress:
            return "host address";
        case FaultKind::PeerAccess:
            return "no peer access";
        case FaultKind::Misaligned:
            return "misaligned address";
        case FaultKind::WrongSpace:
            return "wrong address space";
        case FaultKind::Uninitialised:
            return "uninitialised read";
        case FaultKind::Race:
            return "race";
        case FaultKind::ReadOnlyWritten:
            return "read-only load of written memory";
        case FaultKind::DivergentBarrier:
            return "divergent barrier";
        case FaultKind::BarrierDeadlock:
            return "barrier deadlock";
        case FaultKind::MissingLane:
            return "missing lane";
        case FaultKind::StackOverflow:
            return "stack overflow";
        case FaultKind::BadCall:
            return "call of no function";
        case FaultKind::Trap:
            return "trap";
        case FaultKind::Breakpoint:
            return "breakpoint";
        case FaultKind::Assertion:
            return "assertion";
        case FaultKind::Timeout:
            return "timeout";
        case FaultKind::Unsupported:
            return "unsupported";
    }
    return "";
}

std::string hexadecimal(uint64_t value) {
    char text[24];
    std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
    return text;
}

}  // namespace weft::emulator
