// Vectors of kLanes numbers, for traversals. Comparisons give masks, from which bits() makes an integer with one bit
// for each number. A processor's vectors have all of a node or a block; a thread of a GPU has its numbers one by one.
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

// Copies neighbouring numbers of memory that all threads share, by the widest loads.
template <int kCount, typename T>
void load_row(T* to, const T* from) {
    typedef T Part __attribute__((ext_vector_type(16 / sizeof(T))));
    constexpr int kNumbers = 16 / sizeof(T);
    using Global = const __attribute__((address_space(1))) Part*;
#pragma unroll
    for (int i = 0; i < kCount; i += kNumbers) {
        const Part part = *(Global)(from + i);
#pragma unroll
        for (int k = 0; k < kNumbers; ++k) to[i + k] = part[k];
    }
}
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
// The triangles of a block in parts: visit(of, at, slot) gives a mask of those from slot `at` of a block on, which are
// those from `slot` on here. A thread of a GPU loads a few at a time, with coordinates along these axes.
template <typename T, typename Visit>
__attribute__((always_inline)) inline unsigned for_each_triangle(const TriangleBlock<T>& block,
                                                                 [[maybe_unused]] const int (&axes)[3],
                                                                 const Visit& visit) {
#if defined(__NVPTX__)
    constexpr int kHeld = 4;
    unsigned found = 0;
#pragma clang loop unroll(disable)
    for (int first = 0; first < kWidth; first += kHeld) {
        TriangleBlock<T> held;
#pragma unroll
        for (int corner = 0; corner < 3; ++corner)
#pragma unroll
            for (int axis = 0; axis < 3; ++axis)
                load_row<kHeld>(held.corner[corner][axis], block.corner[corner][axes[axis]] + first);
#pragma unroll
        for (int i = 0; i < kHeld; ++i) found |= visit(held, i, first + i) << (first + i);
    }
    return found;
#else
    return visit(block, 0, 0);
#endif
}
inline constexpr int kOwnAxes[3] = {0, 1, 2};

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
// The component of an axis that is found at run time: a thread of a GPU has them in registers, which have no addresses.
template <typename Components>
auto component(const Components& of, int axis) {
#if defined(__NVPTX__)
    return axis == 0 ? of[0] : axis == 1 ? of[1] : of[2];
#else
    return of[axis];
#endif
}
template <typename T>
T dot(Vec<T> a, Vec<T> b) {
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}
template <typename T>
Vec<T> cross(Vec<T> a, Vec<T> b) {
    return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}

}  // namespace weft::devlib
