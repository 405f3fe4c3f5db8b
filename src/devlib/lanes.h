// The types in which functions of the device library are written: W lanes of numbers at once.
//
// A function of the library computes its results for W threads. It must not have branches on lanes' values: it selects
// values instead (choose()). clang compiles it at build time, for the host with each W of WEFT_FOR_EACH_WIDTH and for
// GPUs with W = 1, without any system header.
//
//     void symbol_w<W>(T* result, const T* argument, ...)
//
// Each argument and the result is an array of components, one after the other, each of W neighbouring numbers. All
// lanes are computed, including inactive ones, whose arguments are arbitrary and whose results are ignored.
#pragma once

namespace weft::devlib {

template <typename T, int W>
struct OfLanes {
    typedef T Type __attribute__((ext_vector_type(W)));
};
template <typename T>
struct OfLanes<T, 1> {
    using Type = T;
};
template <typename T, int W>
using Lanes = typename OfLanes<T, W>::Type;

// The same value in all lanes.
template <typename T, int W>
Lanes<T, W> all(T value) {
    return Lanes<T, W>(value);
}

template <typename V>
V square_root(V value) {
    return __builtin_elementwise_sqrt(value);
}
template <typename V>
V clamp(V value, V low, V high) {
    return __builtin_elementwise_min(__builtin_elementwise_max(value, low), high);
}
// `condition` is the result of a comparison: a number per lane, or a bool.
template <typename C, typename V>
V choose(C condition, V yes, V no) {
    return condition ? yes : no;
}

template <typename V>
struct Vec3 {
    V x, y, z;

    friend Vec3 operator+(Vec3 a, Vec3 b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
    friend Vec3 operator-(Vec3 a, Vec3 b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
    friend Vec3 operator-(Vec3 a) { return {-a.x, -a.y, -a.z}; }
    friend Vec3 operator*(V s, Vec3 a) { return {s * a.x, s * a.y, s * a.z}; }
};
template <typename V>
V dot(Vec3<V> a, Vec3<V> b) {
    return a.x * b.x + a.y * b.y + a.z * b.z;
}

template <int W, typename T>
Lanes<T, W> load(const T* from) {
    return *reinterpret_cast<const Lanes<T, W>*>(from);
}
template <int W, typename T>
Vec3<Lanes<T, W>> load3(const T* from) {
    return {load<W>(from), load<W>(from + W), load<W>(from + 2 * W)};
}
template <int W, typename T>
void store(T* to, Lanes<T, W> value) {
    *reinterpret_cast<Lanes<T, W>*>(to) = value;
}
template <int W, typename T>
void store3(T* to, Vec3<Lanes<T, W>> value) {
    store<W>(to, value.x);
    store<W>(to + W, value.y);
    store<W>(to + 2 * W, value.z);
}

}  // namespace weft::devlib

#if defined(__NVPTX__)
#define WEFT_FOR_EACH_WIDTH(define) define(1)
#else
#define WEFT_FOR_EACH_WIDTH(define) define(1) define(2) define(4) define(8) define(16) define(32) define(64)
#endif
