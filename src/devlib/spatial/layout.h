// How trees over boxes and triangles lie in memory: written by the builders (runtime/spatial), read by traversals here.
//
// A tree is wide: a node has the boxes of up to kWidth children side by side, so that one instruction tests them all.
// Nodes stand in depth-first order below a few top nodes: children have larger numbers than their parent. A leaf is one
// block of up to kWidth items, also side by side. Slots that are not used hold empty boxes (lower = inf, upper = -inf),
// or triangles of NaN, so that every comparison with them fails.
//
// Plain structs without functions: they are compiled for the host's compiler and for devices.
#pragma once

namespace weft::devlib {

using Int32 = __INT32_TYPE__;
using UInt32 = __UINT32_TYPE__;
using Int64 = __INT64_TYPE__;
using UInt64 = __UINT64_TYPE__;

inline constexpr int kWidth = 8;

template <typename T>
struct alignas(64) Node {
    T bounds[2][3][kWidth];  // lower and upper, x y z, of each child
    Int32 child[kWidth];     // the number of a node; of a leaf -1 minus the number of its block
    Int32 parent;            // -1: none
    Int32 slot;              // where the parent has this node
    Int32 count;             // of children; they have the first slots
};

template <typename T>
struct alignas(64) BoxBlock {
    T bounds[2][3][kWidth];
    Int32 item[kWidth];  // -1: not used
};

template <typename T>
struct alignas(64) TriangleBlock {
    T corner[3][3][kWidth];  // which corner, x y z
    Int32 item[kWidth];      // the number of the face; -1: not used
};

// What is below each child of a node, as seen from far away (winding.h); c is the middle of the child's box.
template <typename T>
struct alignas(64) Moments {
    T normal[3][kWidth];  // the integral of the normal over the surface
    T spread[6][kWidth];  // of (x - c) n', the symmetric part: xx yy zz, and twice xy yz zx
};

// The deepest stack that a depth-first traversal needs, in nodes: builders keep to it.
inline constexpr int kMostLevels = 56;
inline constexpr int kStackSize = kMostLevels * (kWidth - 1) + kWidth;

template <typename T>
struct Tree {
    const Node<T>* nodes = nullptr;               // the first is the root of everything
    const BoxBlock<T>* boxes = nullptr;           // what leaves are: boxes or triangles, the other is null
    const TriangleBlock<T>* triangles = nullptr;  //
    const Moments<T>* moments = nullptr;          // of each node; null where no winding numbers are asked for
    const Int32* group_roots = nullptr;           // numbers of nodes
    const Int32* groups = nullptr;                // in ascending order; as many as roots
    Int32 node_count = 0;
    Int32 item_count = 0;
    Int32 group_count = 0;
    T lower[3] = {0, 0, 0};  // of everything that is finite
    T upper[3] = {0, 0, 0};
};

// An array as weft/array_view.h has it.
struct ArrayFields {
    void* data = nullptr;
    void* grad = nullptr;
    Int64 shape[4] = {0, 0, 0, 0};
    Int64 strides[4] = {0, 0, 0, 0};
};

// What ids of BVHs and meshes lead to. The arrays are the user's: kernels read them, traversals do not. One of zeros
// describes an object that has nothing in it.
template <typename T>
struct BvhDescriptor {
    ArrayFields lowers, uppers;
    Int32 scalar_bytes = 0;  // sizeof(T): functions for another T find nothing here
    Tree<T> tree;
};

template <typename T>
struct MeshDescriptor {
    ArrayFields points, velocities, indices;
    Int32 scalar_bytes = 0;
    const void* bvh = nullptr;  // the same tree in a BvhDescriptor
    Tree<T> tree;
};

}  // namespace weft::devlib
