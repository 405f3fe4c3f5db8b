// Atomics: the new value is computed from the old one, and stored by compare-and-exchange in a loop.
#include <cstring>

#include "engine/decoder.h"
#include "engine/halves.h"
#include "engine/warp.h"

namespace weft::emulator {

namespace {

struct Atomic {
    AtomicOp op;
    char kind;  // u, s, f, b
    uint32_t bytes;
    bool pair;
};

template <class T>
T from_bits(uint64_t bits) {
    T value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}
template <class T>
uint64_t to_bits(T value) {
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    return bits;
}

template <class T>
T of_numbers(AtomicOp op, T a, T b) {
    switch (op) {
        case AtomicOp::Min:
            return b < a ? b : a;
        case AtomicOp::Max:
            return b > a ? b : a;
        default:
            return a + b;
    }
}

uint64_t of_integers(const Atomic& atomic, uint64_t old, uint64_t b, uint64_t c) {
    const uint64_t ones = atomic.bytes == 8 ? ~uint64_t(0) : (uint64_t(1) << atomic.bytes * 8) - 1;
    switch (atomic.op) {
        case AtomicOp::Exchange:
            return b;
        case AtomicOp::CompareExchange:
            return old == b ? c : old;
        case AtomicOp::And:
            return old & b;
        case AtomicOp::Or:
            return old | b;
        case AtomicOp::Xor:
            return old ^ b;
        case AtomicOp::Increment:
            return old >= b ? 0 : old + 1;
        case AtomicOp::Decrement:
            return old == 0 || old > b ? b : old - 1;
        case AtomicOp::Add:
            return (old + b) & ones;
        default:
            break;
    }
    if (atomic.kind != 's') return of_numbers(atomic.op, old, b);
    const int shift = 64 - int(atomic.bytes) * 8;
    return uint64_t(of_numbers(atomic.op, int64_t(old << shift) >> shift, int64_t(b << shift) >> shift)) & ones;
}

uint64_t of_halves(const Atomic& atomic, uint64_t old, uint64_t b) {
    const bool brain = atomic.kind == 'b';
    return half_bits(of_numbers(atomic.op, half_value(uint16_t(old), brain), half_value(uint16_t(b), brain)), brain);
}

uint64_t computed(const Atomic& atomic, uint64_t old, uint64_t b, uint64_t c) {
    const bool floating = atomic.kind == 'f' || atomic.kind == 'b';
    if (!floating || atomic.op >= AtomicOp::Exchange) return of_integers(atomic, old, b, c);
    if (atomic.pair) return of_halves(atomic, old & 0xffff, b & 0xffff) | of_halves(atomic, old >> 16, b >> 16) << 16;
    if (atomic.bytes == 8) return to_bits(of_numbers(atomic.op, from_bits<double>(old), from_bits<double>(b)));
    if (atomic.bytes == 4) return to_bits(of_numbers(atomic.op, from_bits<float>(old), from_bits<float>(b)));
    return of_halves(atomic, old, b);
}

template <class T>
void run(Warp& warp, const Instruction& instruction, const Atomic& atomic) {
    const uint64_t* base = warp.at<uint64_t>(instruction.source[0]);
    const T* b = warp.at<T>(instruction.source[1]);
    const T* c = warp.at<T>(instruction.source[atomic.op == AtomicOp::CompareExchange ? 2 : 1]);
    const ptx::Space space = ptx::Space(instruction.flags & kSpaceMask);
    for (Mask rest = warp.mask; rest; rest &= rest - 1) {
        const int lane = __builtin_ctz(rest);
        T* place = reinterpret_cast<T*>(
            warp.reach(space, lane, base[lane] + uint64_t(instruction.immediate), sizeof(T), Access::Atomic));
        T old = __atomic_load_n(place, __ATOMIC_RELAXED);
        T next;
        do {
            next = T(computed(atomic, old, b[lane], c[lane]));
        } while (!__atomic_compare_exchange_n(place, &old, next, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
        if (instruction.result != 0xffffffff) warp.at<T>(instruction.result)[lane] = old;
    }
}

}  // namespace

void handlers::atomic(Lanes& lanes, const Instruction& instruction) {
    Warp& warp = static_cast<Warp&>(lanes);
    if (instruction.flags & kOrders) warp.fence(warp.mask);
    const Atomic atomic{AtomicOp(instruction.operation), char(instruction.extra), instruction.width,
                        instruction.count == 2};
    if (instruction.width == 8)
        run<uint64_t>(warp, instruction, atomic);
    else if (instruction.width == 4)
        run<uint32_t>(warp, instruction, atomic);
    else
        run<uint16_t>(warp, instruction, atomic);
}

}  // namespace weft::emulator
