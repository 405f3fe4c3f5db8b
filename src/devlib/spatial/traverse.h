// Going through a tree from the top down: the only traverser with a stack.
//
//   shape.enter(node, limit, entry)  which children the query meets, as bits, and the place of each in the order in
//   which
//                                    they are looked at: the least first
//   visitor.limit                    children with a greater entry are left out
//   visitor.leaf(block number)       may lower the limit; true ends the query
#pragma once

#include "devlib/spatial/simd.h"

namespace weft::devlib {

template <bool kOrdered, typename T, typename Shape, typename Visitor>
void traverse(const Tree<T>& tree, Shape& shape, Int32 root, Visitor& visitor) {
    struct Entry {
        T entry;
        Int32 node;
    };
    Entry stack[kStackSize];
    int size = 0;
    Int32 current = root;
    while (true) {
        if (current >= 0) {
            const Node<T>& node = tree.nodes[current];
            Wide<T> entry;
            unsigned found = shape.enter(node, visitor.limit, entry);
            if (found != 0) {
                const int first = lowest_bit(found);
                found &= found - 1;
                current = node.child[first];
                if (found == 0) continue;
                // The nearest child is next; the others wait, the farthest lowest in the stack.
                T nearest = entry[first];
                const int bottom = size;
                for (; found != 0; found &= found - 1) {
                    const int other = lowest_bit(found);
                    Entry added{entry[other], node.child[other]};
                    if (kOrdered) {
                        if (added.entry < nearest) {
                            const Entry passed{nearest, current};
                            nearest = added.entry, current = added.node;
                            added = passed;
                        }
                        int at = size;
                        for (; at > bottom && stack[at - 1].entry < added.entry; --at) stack[at] = stack[at - 1];
                        stack[at] = added;
                        ++size;
                    } else {
                        stack[size++] = added;
                    }
                }
                continue;
            }
        } else if (visitor.leaf(-1 - current)) {
            return;
        }
        do {
            if (size == 0) return;
            --size;
        } while (stack[size].entry > visitor.limit);
        current = stack[size].node;
    }
}

}  // namespace weft::devlib
