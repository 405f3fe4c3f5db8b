// Traversal of a tree from the top down, with a stack.
//
//   shape.enter(node, number, at, limit, entry)  a mask of the children from slot `at` on that the query meets, and
//                                                their keys: smaller ones are visited first
//   visitor.limit                                children with a greater key are skipped
//   visitor.leaf(block, place)                   may lower the limit; true ends the query. The place of a child is the
//                                                number of its parent times kWidth, plus the slot
//
// traverse() runs one query to its end. traverse_each() interleaves several independent queries: while one waits for
// its next node from memory, the others continue.
#pragma once

#include "devlib/spatial/simd.h"

namespace weft::devlib {

#if defined(__NVPTX__)
// A thread of a GPU has its stack in local memory, which is slow and reserved for all threads: it keeps one entry for
// each level, and computes the key of a child again when it comes to it.
struct Level {
    Int32 node;
    UInt32 left;  // slots of the children that are left, 3 bits each, the nearest in the lowest; their number above
};
inline constexpr int kSlotBits = 3, kCountShift = kSlotBits * kWidth;

// The children of a mask, nearest first. Among equal ones the lower slot is nearer.
template <bool kOrdered, typename T>
UInt32 in_order(unsigned found, const T (&entry)[kWidth]) {
    UInt32 order = 0;
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
        UInt32 nearer = 0;
#pragma unroll
        for (int other = 0; other < kWidth; ++other) {
            const bool is_nearer = !kOrdered   ? other < i
                                   : other < i ? entry[other] <= entry[i]
                                               : other > i && entry[other] < entry[i];
            nearer += UInt32(is_nearer) & (found >> other);
        }
        order |= (found >> i & 1) != 0 ? UInt32(i) << (kSlotBits * nearer) : 0;
    }
    return order | UInt32(__builtin_popcount(found)) << kCountShift;
}

// Inline, as the query is in registers then.
template <bool kOrdered, typename T, typename Shape, typename Visitor>
__attribute__((always_inline)) inline void traverse(const Tree<T>& tree, Shape& shape, Int32 root, Visitor& visitor) {
    Level levels[kMostLevels];
    int depth = 0;
    Int32 current = root;
    UInt32 place = 0;
    while (true) {
        if (current >= 0) {
            const Node<T>& node = tree.nodes[current];
            T entry[kWidth];
            unsigned found = 0;
            Node<T> held;
#pragma unroll
            for (int side = 0; side < 2; ++side)
#pragma unroll
                for (int axis = 0; axis < 3; ++axis) load_row<kWidth>(held.bounds[side][axis], node.bounds[side][axis]);
#pragma unroll
            for (int at = 0; at < kWidth; ++at) found |= shape.enter(held, current, at, visitor.limit, entry[at]) << at;
            if (found != 0) levels[depth++] = {current, in_order<kOrdered>(found, entry)};
        } else {
            bool is_done = false;
            [[clang::always_inline]] is_done = visitor.leaf(-1 - current, place);
            if (is_done) return;
        }
        while (true) {
            if (depth == 0) return;
            const Level level = levels[depth - 1];
            const Node<T>& node = tree.nodes[level.node];
            const int slot = int(level.left & (kWidth - 1));
            const UInt32 count = (level.left >> kCountShift) - 1;
            const UInt32 rest = (level.left & ((1u << kCountShift) - 1)) >> kSlotBits;
            --depth;
            if (kOrdered) {
                T entry;
                if (shape.enter(node, level.node, slot, visitor.limit, entry) == 0)
                    continue;  // the others are no nearer
            }
            if (count != 0) levels[depth++] = {level.node, rest | count << kCountShift};
            place = UInt32(level.node) * kWidth + UInt32(slot);
            current = node.child[slot];
            break;
        }
    }
}
#else
template <typename T>
WideMask<T> slots() {
    return {0, 1, 2, 3, 4, 5, 6, 7};
}

// Prefetches the memory that is probably needed next.
template <typename T>
void prefetch(const Tree<T>& tree, Int32 child) {
    constexpr int kLines = sizeof(TriangleBlock<T>) / 64;
    const char* const at = child >= 0 ? reinterpret_cast<const char*>(tree.nodes + child)
                                      : reinterpret_cast<const char*>(tree.triangles + (-1 - child));
    for (int line = 0; line < kLines; ++line) __builtin_prefetch(at + 64 * line);
}

// A child on the stack, and its key.
template <typename T>
struct Waiting {
    T entry;
    UInt32 place;
};

// The position of a query: the next node or leaf, and the stack.
template <typename T>
struct Position {
    Waiting<T>* stack;
    Int32 current;  // encoded as Node::child
    int size = 0;
    UInt32 place = 0;
};

// Visits one node or leaf. False at the end of the query.
template <bool kOrdered, typename T, typename Shape, typename Visitor>
__attribute__((always_inline)) inline bool step(const Tree<T>& tree, Shape& shape, Visitor& visitor, Position<T>& at) {
    const auto child_at = [&](UInt32 of) { return tree.nodes[of / kWidth].child[of % kWidth]; };
    if (at.current >= 0) {
        const Node<T>& node = tree.nodes[at.current];
        Wide<T> entry;
        unsigned found = shape.enter(node, at.current, 0, visitor.limit, entry);
        if (found != 0) {
            const UInt32 here = UInt32(at.current) * kWidth;
            const int first = lowest_bit(found);
            found &= found - 1;
            at.current = node.child[first];
            at.place = here + first;
            if (found == 0) return true;
            if ((found & (found - 1)) == 0) {
                const int second = lowest_bit(found);
                const bool is_nearer = kOrdered && entry[second] < entry[first];
                at.stack[at.size++] = {entry[is_nearer ? first : second], here + (is_nearer ? first : second)};
                if (is_nearer) at.current = node.child[second], at.place = here + second;
                return true;
            }
            // The other children are pushed, the nearest on top: sorted without branches, as the number of nearer ones
            // gives the place of each. Among equal ones the lower slot is nearer.
            found |= 1u << first;
            const int last = at.size + __builtin_popcount(found) - 1;
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
                const int to = kOrdered ? last - int(nearer[slot]) : at.size++;
                at.stack[to] = {entry[slot], here + slot};
            }
            at.size = last;
            at.place = at.stack[last].place;
            prefetch(tree, child_at(at.stack[last - 1].place));
            at.current = child_at(at.place);
            return true;
        }
    } else {
        if (at.size > 0) prefetch(tree, child_at(at.stack[at.size - 1].place));
        if (visitor.leaf(-1 - at.current, at.place)) return false;
    }
    do {
        if (at.size == 0) return false;
        --at.size;
    } while (at.stack[at.size].entry > visitor.limit);
    at.place = at.stack[at.size].place;
    at.current = child_at(at.place);
    return true;
}

template <bool kOrdered, typename T, typename Shape, typename Visitor>
void traverse(const Tree<T>& tree, Shape& shape, Int32 root, Visitor& visitor) {
    Waiting<T> stack[kStackSize];
    Position<T> at{stack, root};
    while (step<kOrdered>(tree, shape, visitor, at)) {
    }
}
#endif

// Number of interleaved queries: the others' steps take about as long as loading a node from the third-level cache.
inline constexpr int kTogether = 8;

// Runs queries for the lanes of a mask, kTogether of them at a time:
//
//   start(lane, query)   sets query.tree, .shape, .visitor and .root; false if there is nothing to visit
//   finish(lane, query)  receives the result
template <bool kOrdered, typename T, typename Query, typename Start, typename Finish>
void traverse_each(UInt64 lanes, const Start& start, const Finish& finish) {
#if defined(__NVPTX__)  // a thread has one lane, and other warps hide its latency
    for (; lanes != 0; lanes &= lanes - 1) {
        const int lane = __builtin_ctzll(lanes);
        Query query;
        if (start(lane, query)) traverse<kOrdered>(query.tree, query.shape, query.root, query.visitor);
        finish(lane, query);
    }
#else
    Waiting<T> stacks[kTogether][kStackSize];
    Query queries[kTogether];
    Position<T> at[kTogether];
    int lane[kTogether];
    // Starts the query of the next lane that has anything to visit. False: there is none.
    const auto begin = [&](int i) {
        for (; lanes != 0;) {
            lane[i] = __builtin_ctzll(lanes);
            lanes &= lanes - 1;
            if (start(lane[i], queries[i])) {
                at[i] = {stacks[i], queries[i].root};
                prefetch(queries[i].tree, at[i].current);
                return true;
            }
            finish(lane[i], queries[i]);
        }
        return false;
    };
    int count = 0;
    while (count < kTogether && begin(count)) ++count;
    int order[kTogether];
    for (int i = 0; i < count; ++i) order[i] = i;
    while (count > 0) {
        for (int turn = 0; turn < count;) {
            const int i = order[turn];
            Query& query = queries[i];
            if (step<kOrdered>(query.tree, query.shape, query.visitor, at[i])) {
                prefetch(query.tree, at[i].current);
                ++turn;
                continue;
            }
            finish(lane[i], query);
            if (!begin(i)) order[turn] = order[--count];
        }
    }
#endif
}

}  // namespace weft::devlib
