#pragma once
// Makes handlers of 32 lanes from functions of one: pure<fn>() and slow<fn>(). Types of operands follow from the
// function's type, so that rows of the table need not repeat them.
//
// The files of this folder are compiled once for each level of processors, each in its own namespace (WEFT_LEVEL). They
// use no templates of the standard library, which would be shared between the levels.
#include <type_traits>
#include <utility>

#include "lanes/formats.h"
#include "lanes/lanes.h"

namespace weft::emulator::WEFT_LEVEL {

struct CarryIn {
    uint32_t bit;
};
template <class T>
struct Carried {
    T value;
    uint32_t carry;
};

// The numbers in a register, for each type of a lane function.
template <class T>
struct Stored {
    using type = T;
    static constexpr Slot slot{sizeof(T) * 8,
                               std::is_floating_point_v<T> ? 'f'
                               : std::is_signed_v<T>       ? 's'
                                                           : 'u',
                               sizeof(T) * 8};
};
template <>
struct Stored<int8_t> {
    using type = int16_t;
    static constexpr Slot slot{16, 's', 8};
};
template <>
struct Stored<uint8_t> {
    using type = uint16_t;
    static constexpr Slot slot{16, 'u', 8};
};
template <>
struct Stored<bool> {
    static constexpr Slot slot{1, 'p', 1};
};
template <>
struct Stored<Half> {
    using type = Half;
    static constexpr Slot slot{16, 'f', 16};
};
template <>
struct Stored<Brain> {
    using type = Brain;
    static constexpr Slot slot{16, 'b', 16};
};
template <class T>
struct Stored<Pair<T>> {
    using type = Pair<T>;
    static constexpr Slot slot{sizeof(Pair<T>) * 8, 'x', sizeof(Pair<T>) * 8};
};
template <>
struct Stored<void> {
    static constexpr Slot slot{};
};
template <>
struct Stored<CarryIn> : Stored<void> {};
template <>
struct Stored<Flags> : Stored<void> {};
template <class T>
struct Stored<Carried<T>> : Stored<T> {};

inline constexpr struct LaneBits {
    Mask bit[kLanes];
    constexpr LaneBits() : bit() {
        for (int i = 0; i < kLanes; ++i) bit[i] = Mask(1) << i;
    }
} kLaneBits;

template <class T>
struct Source {
    const typename Stored<T>::type* values;
    Source(const Lanes& lanes, const Instruction& instruction, int index)
        : values(lanes.at<const typename Stored<T>::type>(instruction.source[index])) {}
    T operator[](int lane) const { return T(values[lane]); }
};
template <>
struct Source<bool> {
    Mask mask;
    Source(const Lanes& lanes, const Instruction& instruction, int index)
        : mask(lanes.predicate(instruction.source[index])) {}
    bool operator[](int lane) const { return (mask & kLaneBits.bit[lane]) != 0; }
};
template <>
struct Source<CarryIn> {
    Mask mask;
    Source(const Lanes& lanes, const Instruction&, int) : mask(lanes.carry) {}
    CarryIn operator[](int lane) const { return {mask >> lane & 1}; }
};
template <>
struct Source<Flags> {
    Flags flags;
    Source(const Lanes&, const Instruction& instruction, int) : flags(Flags(instruction.flags)) {}
    Flags operator[](int) const { return flags; }
};

template <class T>
inline void blend(T* out, const T* values, Mask mask) {
    for (int lane = 0; lane < kLanes; ++lane) {
        if (mask & kLaneBits.bit[lane]) out[lane] = values[lane];
    }
}

// An operand may alias the result. Lanes are independent, as the pragma tells the compiler.
#if defined(__clang__)
#define WEFT_LANE_LOOP _Pragma("clang loop vectorize(assume_safety)") for (int lane = 0; lane < kLanes; ++lane)
#else
#define WEFT_LANE_LOOP _Pragma("GCC ivdep") for (int lane = 0; lane < kLanes; ++lane)
#endif

template <auto fn, class R, class... S>
inline void all_lanes(Lanes& lanes, const Instruction& instruction, const S... sources) {
    if constexpr (std::is_same_v<R, bool>) {
        Mask result = 0;
        WEFT_LANE_LOOP result |= fn(sources[lane]...) ? kLaneBits.bit[lane] : 0;
        lanes.set_predicate(instruction.result, result);
    } else {
        using T = typename Stored<R>::type;
        T* out = lanes.at<T>(instruction.result);
        if (lanes.mask == kAllLanes) {
            WEFT_LANE_LOOP out[lane] = T(fn(sources[lane]...));
        } else {
            T values[kLanes];
            WEFT_LANE_LOOP values[lane] = T(fn(sources[lane]...));
            blend(out, values, lanes.mask);
        }
    }
}

template <auto fn, class R, class... S>
inline void active_lanes(Lanes& lanes, const Instruction& instruction, const S... sources) {
    if constexpr (std::is_same_v<R, bool>) {
        Mask result = 0;
        for (Mask rest = lanes.mask; rest; rest &= rest - 1) {
            const int lane = __builtin_ctz(rest);
            result |= Mask(fn(sources[lane]...)) << lane;
        }
        lanes.set_predicate(instruction.result, result);
    } else {
        using T = typename Stored<R>::type;
        T* out = lanes.at<T>(instruction.result);
        for (Mask rest = lanes.mask; rest; rest &= rest - 1) {
            const int lane = __builtin_ctz(rest);
            out[lane] = T(fn(sources[lane]...));
        }
    }
}

template <auto fn, class T, class... S>
inline void carried_lanes(Lanes& lanes, const Instruction& instruction, const S... sources) {
    T* out = lanes.at<T>(instruction.result);
    Mask carry = 0;
    for (Mask rest = lanes.mask; rest; rest &= rest - 1) {
        const int lane = __builtin_ctz(rest);
        const Carried<T> made = fn(sources[lane]...);
        out[lane] = made.value;
        carry |= made.carry << lane;
    }
    lanes.carry = (lanes.carry & ~lanes.mask) | carry;
}

template <class F>
struct Signature;
template <class R, class... A>
struct Signature<R (*)(A...)> {
    template <auto fn, bool one_by_one>
    static void run(Lanes& lanes, const Instruction& instruction) {
        [&]<size_t... I>(std::index_sequence<I...>) {
            if constexpr (one_by_one)
                active_lanes<fn, R>(lanes, instruction, Source<A>(lanes, instruction, I)...);
            else
                all_lanes<fn, R>(lanes, instruction, Source<A>(lanes, instruction, I)...);
        }(std::index_sequence_for<A...>{});
    }
    static constexpr Row row(const char* pattern, Handler handler, bool slow) {
        Row made{pattern, handler, Stored<R>::slot, {}, slow};
        const Slot slots[] = {Stored<A>::slot..., Slot{}};
        for (size_t i = 0; i < sizeof...(A) && i < 4; ++i) made.source[i] = slots[i];
        return made;
    }
};
template <class T, class... A>
struct Signature<Carried<T> (*)(A...)> : Signature<T (*)(A...)> {
    template <auto fn, bool>
    static void run(Lanes& lanes, const Instruction& instruction) {
        [&]<size_t... I>(std::index_sequence<I...>) {
            carried_lanes<fn, T>(lanes, instruction, Source<A>(lanes, instruction, I)...);
        }(std::index_sequence_for<A...>{});
    }
};

// pure: all 32 lanes are computed at once, including inactive ones. slow: active lanes are computed one after the
// other, because the function is long or must not be called with arbitrary values.
template <auto fn>
constexpr Row pure(const char* pattern) {
    using S = Signature<std::decay_t<decltype(fn)>>;
    return S::row(pattern, &S::template run<fn, false>, false);
}
template <auto fn>
constexpr Row slow(const char* pattern) {
    using S = Signature<std::decay_t<decltype(fn)>>;
    return S::row(pattern, &S::template run<fn, true>, true);
}

#define LANES(pattern, ...) pure<__VA_ARGS__>(pattern),
#define SLOW(pattern, ...) slow<__VA_ARGS__>(pattern),

}  // namespace weft::emulator::WEFT_LEVEL
