#pragma once
// Decoded instructions, and their access to the registers of a warp.
//
// A register of a warp is an array of 32 numbers, one for each lane; a predicate is one word with a bit for each lane.
// Both are in the frame of a function (base[0]). Constants are registers too, stored with the code (base[1]). So an
// instruction without control flow is a loop over 32 lanes that the host's compiler turns into SIMD.
#include <cstddef>
#include <cstdint>

namespace weft::emulator {

constexpr int kLanes = 32;
using Mask = uint32_t;
constexpr Mask kAllLanes = 0xffffffff;

// The location of a register: its offset in bytes, with bit 0 set for a constant. Offsets are multiples of 4.
using RegisterCode = uint32_t;

struct Lanes;
struct Instruction;
using Handler = void (*)(Lanes&, const Instruction&);

// Modifiers that a handler reads when it runs. Common combinations have handlers of their own.
enum Flags : uint16_t {
    kRoundNearest = 0,
    kRoundZero = 1,
    kRoundDown = 2,
    kRoundUp = 3,
    kRoundMask = 3,
    kFlush = 4,        // .ftz
    kSaturate = 8,     // .sat
    kRelu = 16,        // .relu
    kNan = 32,         // .NaN
    kAway = 128,       // .rna; of extremes: .abs and .xorsign.abs
    kUnrounded = 256,  // a conversion without a rounding
};

struct Instruction {
    // Plain: the next instruction follows. The others change masks and counters, in engine/warp.cpp.
    enum class Kind : uint8_t { Plain, Guarded, Control };
    Handler run = nullptr;
    RegisterCode result = 0;
    RegisterCode source[4] = {0, 0, 0, 0};
    RegisterCode guard = 0;  // a predicate, if has_guard
    int64_t immediate = 0;   // offset of an address, counter to branch to, …
    uint32_t extra = 0;      // index into CodeFunction::lists, or defined by the handler
    uint32_t statement = 0;  // of ptx::Function::statements
    uint16_t flags = 0;
    uint8_t width = 0;  // bytes in memory
    uint8_t count = 1;  // elements of a vector
    Kind kind = Kind::Plain;
    uint8_t operation = 0;  // of an atomic, a control instruction
    bool has_guard = false, guard_negated = false;
};

struct Lanes {
    std::byte* base[2] = {nullptr, nullptr};
    Mask mask = kAllLanes;
    Mask carry = 0;  // the condition code, a bit for each lane

    template <class T>
    T* at(RegisterCode code) const {
        return reinterpret_cast<T*>(base[code & 1] + (code & ~RegisterCode(1)));
    }
    Mask& predicate(RegisterCode code) const { return *at<Mask>(code); }
    void set_predicate(RegisterCode code, Mask value) const {
        Mask& old = predicate(code);
        old = (old & ~mask) | (value & mask);
    }
};

// The type of an operand: width of the register in bits (1: a predicate) and kind: u, s, f (float), b (brain float), p,
// x (bits).
struct Slot {
    uint8_t bits = 0;  // 0: no operand
    char kind = 0;
    uint8_t size = 0;  // bits of the value if it is smaller: 8 in a register of 16
};

// An opcode of the tables *.def in this folder.
struct Row {
    const char* pattern;
    Handler handler;
    Slot result, source[4];
    bool slow;  // one lane after the other
};

struct RowTable {
    const Row* rows;
    size_t count;
};

}  // namespace weft::emulator
