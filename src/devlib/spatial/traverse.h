// Going through a tree from the top down: the only traverser with a stack.
//
//   shape.enter(node, limit, entry)  which children the query meets, as bits, and the place of each in the order in
//   which
//                                    they are looked at: the least first
//   visitor.limit                    children with a greater entry are left out
//   visitor.leaf(block, place)       may lower the limit; true ends the query. The place of a child is the number of
//   its
//                                    parent times kWidth, plus the slot
#pragma once

#include "devlib/spatial/simd.h"

namespace weft::devlib {

template <typename T>
WideMask<T> slots() {
    return {0, 1, 2, 3, 4, 5, 6, 7};
}

// Asks for the memory of what will probably be next.
template <typename T>
void prefetch(const Tree<T>& tree, Int32 child) {
    constexpr int kLines = sizeof(TriangleBlock<T>) / 64;
    const char* const at = child >= 0 ? reinterpret_cast<const char*>(tree.nodes + child)
                                      : reinterpret_cast<const char*>(tree.triangles + (-1 - child));
    for (int line = 0; line < kLines; ++line) __builtin_prefetch(at + 64 * line);
}

template <bool kOrdered, typename T, typename Shape, typename Visitor>
void traverse(const Tree<T>& tree, Shape& shape, Int32 root, Visitor& visitor) {
    struct Entry {
        T entry;
        UInt32 place;
    };
    Entry stack[kStackSize];
    int size = 0;
    Int32 current = root;
    UInt32 place = 0;
    const auto child_at = [&](UInt32 of) { return tree.nodes[of / kWidth].child[of % kWidth]; };
    while (true) {
        if (current >= 0) {
            const Node<T>& node = tree.nodes[current];
            Wide<T> entry;
            unsigned found = shape.enter(node, visitor.limit, entry);
            if (found != 0) {
                const UInt32 here = UInt32(current) * kWidth;
                const int first = lowest_bit(found);
                found &= found - 1;
                current = node.child[first];
                place = here + first;
                if (found == 0) continue;
                if ((found & (found - 1)) == 0) {
                    const int second = lowest_bit(found);
                    const bool is_nearer = kOrdered && entry[second] < entry[first];
                    stack[size++] = {entry[is_nearer ? first : second], here + (is_nearer ? first : second)};
                    if (is_nearer) current = node.child[second], place = here + second;
                    continue;
                }
                // The others wait, the nearest on top of the stack: sorted without branches, each goes to the place
                // that the number of nearer ones says. Of equal ones that with the lower slot is nearer.
                found |= 1u << first;
                const int last = size + __builtin_popcount(found) - 1;
                WideMask<T> nearer = 0;
                if (kOrdered) {
                    for (unsigned rest = found; rest != 0; rest &= rest - 1) {
                        const int other = lowest_bit(rest);
                        const Wide<T> key = entry[other];
                        nearer -= (key < entry) | ((key == entry) & (slots<T>() > other));
                    }
                }
                for (unsigned rest = found; rest != 0; rest &= rest - 1) {
                    const int slot = lowest_bit(rest);
                    const int at = kOrdered ? last - int(nearer[slot]) : size++;
                    stack[at] = {entry[slot], here + slot};
                }
                size = last;
                place = stack[last].place;
                prefetch(tree, child_at(stack[last - 1].place));
                current = child_at(place);
                continue;
            }
        } else {
            if (size > 0) prefetch(tree, child_at(stack[size - 1].place));
            if (visitor.leaf(-1 - current, place)) return;
        }
        do {
            if (size == 0) return;
            --size;
        } while (stack[size].entry > visitor.limit);
        place = stack[size].place;
        current = child_at(place);
    }
}

}  // namespace weft::devlib
