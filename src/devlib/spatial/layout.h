// The layout of trees over boxes and triangles in memory: written by the builders (runtime/spatial), read by traversals
// here.
//
// A tree is wide: a node has the boxes of up to kWidth children in vectors, so that one instruction tests them all.
// Nodes are in depth-first order below a few top nodes: children have larger numbers than their parent. A leaf is one
// block of up to kWidth items, also in vectors. Unused slots hold empty boxes (lower = inf, upper = -inf), or triangles
// of NaN, so that every comparison with them fails.
//
// Plain structs without functions, as they are compiled by the host's compiler and for devices.
#pragma once

namespace weft::devlib {

using Int32 = __INT32_TYPE__;
using UInt32 = __UINT32_TYPE__;
using Int64 = __INT64_TYPE__;
using UInt64 = __UINT64_TYPE__;

inline constexpr int kWidth = 8;

template <typename T>
struct alignas(64) Node {
    T bounds[2][3][kWidth];  // lower and upper, x y z, for each child
    Int32 child[kWidth];     // the number of a node, or -1 minus the number of a leaf's block
    Int32 parent;            // -1: none
    Int32 slot;              // index of this node in its parent
    Int32 count;             // of children, which use the first slots
};

template <typename T>
struct alignas(64) BoxBlock {
    T bounds[2][3][kWidth];
    Int32 item[kWidth];  // -1: unused
};

template <typename T>
struct alignas(64) TriangleBlock {
    T corner[3][3][kWidth];  // corner, x y z
    Int32 item[kWidth];      // the number of the face; -1: unused
};

// The geometry below each child of a node as seen from far away (winding.h); c is the centre of the child's box.
template <typename T>
struct alignas(64) Moments {
    T normal[3][kWidth];  // the integral of the normal over the surface
    T spread[6][kWidth];  // of (x - c) n', the symmetric part: xx yy zz, and twice xy yz zx
};

// The limit of tree depth, which builders keep to; it bounds the stack of depth-first traversals.
inline constexpr int kMostLevels = 56;
inline constexpr int kStackSize = kMostLevels * (kWidth - 1) + kWidth;

template <typename T>
struct Tree {
    const Node<T>* nodes = nullptr;               // the first is the root of the whole tree
    const BoxBlock<T>* boxes = nullptr;           // leaves are boxes or triangles; the other pointer is null
    const TriangleBlock<T>* triangles = nullptr;  //
    const Moments<T>* moments = nullptr;          // of each node; null if winding numbers were not requested
    const Int32* group_roots = nullptr;           // numbers of nodes
    const Int32* groups = nullptr;                // ascending; one for each root
    Int32 node_count = 0;
    Int32 item_count = 0;
    Int32 group_count = 0;
    T lower[3] = {0, 0, 0};  // of all finite items
    T upper[3] = {0, 0, 0};
};

// An array, with the fields of weft/array_view.h.
struct ArrayFields {
    void* data = nullptr;
    void* grad = nullptr;
    Int64 shape[4] = {0, 0, 0, 0};
    Int64 strides[4] = {0, 0, 0, 0};
};

// Descriptors of BVHs and meshes, to which ids lead. The arrays are the user's: kernels read them, traversals do not. A
// descriptor of zeros is an empty object.
template <typename T>
struct BvhDescriptor {
    ArrayFields lowers, uppers;
    Int32 scalar_bytes = 0;  // sizeof(T): functions for another T treat the object as empty
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
