// How functions of the library are called that are not compiled with every kernel.
//
//     extern "C" void weft_lib_name_type(R* result, const A* argument, ..., std::uint64_t mask, std::int32_t width)
//
// They get all lanes of a kernel at once. The result and each argument is an array of its components, one after the
// other, each of `width` neighbouring numbers. Bit l of the mask says that lane l is on; arguments of the others are
// not looked at, and their results stay as they are. Objects are given by the address of their descriptor.
#pragma once

#include "devlib/spatial/simd.h"

namespace weft::devlib {

// The name of a function as it is exported: on the host with the level of processors that it is compiled for.
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

// Of a lane, in numbers of type `As`.
template <typename As, typename T>
Vec<As> lane3_as(const T* argument, Int32 width, int lane) {
    return {As(argument[lane]), As(argument[width + lane]), As(argument[2 * width + lane])};
}
template <typename T>
Vec<T> lane3(const T* argument, Int32 width, int lane) {
    return lane3_as<T>(argument, width, lane);
}

// The other type that an object's numbers may be of.
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

// The tree of an object; one with nothing in it where its numbers are of another type.
template <typename T, template <typename> typename Descriptor>
Tree<T> tree_of(UInt64 address) {
    return is_of<T, Descriptor>(address) ? reinterpret_cast<const Descriptor<T>*>(address)->tree : Tree<T>();
}

// The node from which a query starts: -1 is everything. Another number that is no node is none.
template <typename T>
bool find_root(const Tree<T>& tree, Int32& root) {
    if (root == -1) root = 0;
    return root >= 0 && root < tree.node_count;
}

}  // namespace weft::devlib
