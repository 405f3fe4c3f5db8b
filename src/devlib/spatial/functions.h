// The calling convention of library functions that are not compiled with every kernel.
//
//     extern "C" void weft_lib_name_type(R* result, const A* argument, ..., std::uint64_t mask, std::int32_t width)
//
// A call handles all lanes of a kernel. The result and each argument is an array of components, one after the other,
// each of `width` neighbouring numbers. Bit l of the mask is set if lane l is active; arguments of inactive lanes are
// not read, and their results not written. Objects are passed by the address of their descriptor.
#pragma once

#include "devlib/spatial/simd.h"

namespace weft::devlib {

// The exported name of a function: on the host, with the level of processors that it is compiled for.
#if defined(WEFT_LEVEL)
#define WEFT_JOIN(name, level) name##_##level
#define WEFT_WITH_LEVEL(name, level) WEFT_JOIN(name, level)
#define WEFT_LIBRARY(name) extern "C" __attribute__((visibility("hidden"))) void WEFT_WITH_LEVEL(name, WEFT_LEVEL)
#else
#define WEFT_LIBRARY(name) extern "C" void name
#endif

template <typename Body>
void for_each_lane(UInt64 mask, const Body& body) {
    for (; mask != 0; mask &= mask - 1) body(__builtin_ctzll(mask));
}

// The vector of a lane, in numbers of type `As`.
template <typename As, typename T>
Vec<As> lane3_as(const T* argument, Int32 width, int lane) {
    return {As(argument[lane]), As(argument[width + lane]), As(argument[2 * width + lane])};
}
template <typename T>
Vec<T> lane3(const T* argument, Int32 width, int lane) {
    return lane3_as<T>(argument, width, lane);
}

// The other floating-point type of objects.
template <typename T>
struct OtherReal;
template <>
struct OtherReal<float> {
    using Type = double;
};
template <>
struct OtherReal<double> {
    using Type = float;
};

template <typename T, template <typename> typename Descriptor>
bool is_of(UInt64 address) {
    return reinterpret_cast<const Descriptor<T>*>(address)->scalar_bytes == sizeof(T);
}

// The tree of an object; an empty one if the object's numbers are of another type.
template <typename T, template <typename> typename Descriptor>
Tree<T> tree_of(UInt64 address) {
    return is_of<T, Descriptor>(address) ? reinterpret_cast<const Descriptor<T>*>(address)->tree : Tree<T>();
}

// The node from which a query starts: -1 is the whole tree. False for other numbers that are no node's.
template <typename T>
bool find_root(const Tree<T>& tree, Int32& root) {
    if (root == -1) root = 0;
    return root >= 0 && root < tree.node_count;
}

}  // namespace weft::devlib
