// Vectors of kLanes numbers, for traversals. Comparisons give masks, from which bits() makes an integer with one bit for
// each number. A processor's vectors have all of a node or a block; a thread of a GPU has its numbers one by one.
#pragma once

#include "devlib/spatial/layout.h"

namespace weft::devlib {

#if defined(__NVPTX__)
inline constexpr int kLanes = 1;
template <typename T>
using Wide = T;
template <typename T>
using WideMask = bool;

template <typename T>
T wide(const T* from, int at) {
    return from[at];
}
template <typename V>
V lane_of(V values, int) {
    return values;
}
template <typename V>
void set_lane(V& values, int, V value) {
    values = value;
}
inline unsigned bits(bool mask) { return mask ? 1 : 0; }
#else
inline constexpr int kLanes = kWidth;
template <typename T>
struct WideOf {
    typedef T Type __attribute__((ext_vector_type(kWidth)));
};
template <typename T>
using Wide = typename WideOf<T>::Type;
template <typename T>
using WideMask = decltype(Wide<T>() < Wide<T>());

// The numbers from slot `at` on, a multiple of kLanes.
template <typename T>
Wide<T> wide(const T* from, int at) {
    return *reinterpret_cast<const Wide<T>*>(from + at);
}
template <typename V>
auto lane_of(V values, int lane) {
    return values[lane];
}
template <typename V, typename T>
void set_lane(V& values, int lane, T value) {
    values[lane] = value;
}
template <typename M>
unsigned bits(M mask) {
    typedef bool Bits __attribute__((ext_vector_type(kWidth)));
    static_assert(kWidth == 8);
    return __builtin_bit_cast(unsigned char, __builtin_convertvector(mask, Bits));
}
#endif

// The slots of a node or a block in parts of kLanes: visit(at) gives a mask, and the result is that of all slots.
template <typename Visit>
unsigned for_each_part(const Visit& visit) {
    unsigned found = 0;
#pragma clang loop unroll(disable)
    for (int at = 0; at < kWidth; at += kLanes) found |= visit(at) << at;
    return found;
}

template <typename V>
V least(V a, V b) {
    return a < b ? a : b;  // compiles to one instruction; gives the second operand if either is NaN
}
template <typename V>
V greatest(V a, V b) {
    return a > b ? a : b;
}
inline int lowest_bit(unsigned mask) { return __builtin_ctz(mask); }

template <typename T>
inline constexpr T kInfinity = __builtin_inff();
template <typename T>
struct Limits;
template <>
struct Limits<float> {
    static constexpr float kEpsilon = 0x1p-23f, kSmallest = 0x1p-126f, kSteepest = 1e18f;
};
template <>
struct Limits<double> {
    static constexpr double kEpsilon = 0x1p-52, kSmallest = 0x1p-1022, kSteepest = 1e150;
};

template <typename T>
T absolute(T value) {
    return value < 0 ? -value : value;
}

template <typename T>
struct Vec {
    T x[3];

    T operator[](int i) const { return x[i]; }
    T& operator[](int i) { return x[i]; }
    friend Vec operator+(Vec a, Vec b) { return {a[0] + b[0], a[1] + b[1], a[2] + b[2]}; }
    friend Vec operator-(Vec a, Vec b) { return {a[0] - b[0], a[1] - b[1], a[2] - b[2]}; }
    friend Vec operator*(T s, Vec a) { return {s * a[0], s * a[1], s * a[2]}; }
};
template <typename T>
T dot(Vec<T> a, Vec<T> b) {
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}
template <typename T>
Vec<T> cross(Vec<T> a, Vec<T> b) {
    return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}

}  // namespace weft::devlib
