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

template <typename T>
Vec<T> lane3(const T* argument, Int32 width, int lane) {
    return {argument[lane], argument[width + lane], argument[2 * width + lane]};
}

// The tree of an object; one with nothing in it where its numbers are of another type.
template <typename T, template <typename> typename Descriptor>
Tree<T> tree_of(UInt64 address) {
    const auto* const descriptor = reinterpret_cast<const Descriptor<T>*>(address);
    return descriptor->scalar_bytes == sizeof(T) ? descriptor->tree : Tree<T>();
}

// The node from which a query starts: -1 is everything. Another number that is no node is none.
template <typename T>
bool find_root(const Tree<T>& tree, Int32& root) {
    if (root == -1) root = 0;
    return root >= 0 && root < tree.node_count;
}

}  // namespace weft::devlib
