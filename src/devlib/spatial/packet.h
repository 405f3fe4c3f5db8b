// Packets: rays of a kernel's lanes in nearly the same direction are traced together, so that a node's boxes are tested
// once for all of them.
//
// For each axis the packet has the range of origins and of inverse directions. The products of their ends bound the
// entry and exit of any ray in a slab. So the packet meets every box that one of its rays meets. At a leaf each ray is
// tested with the leaf's box, and those that meet it with its triangles, exactly as single rays are: the results are
// the same.
#pragma once

#include "devlib/spatial/ray.h"

namespace weft::devlib {

// The maximum and the minimum of numbers without NaN, half against half. The compiler's own reductions handle NaN, and
// so process the numbers one after the other.
template <typename V>
auto greatest_of(V values) {
    if constexpr (sizeof values == 2 * sizeof values[0]) {
        return values[0] > values[1] ? values[0] : values[1];
    } else {
        const auto low = values.lo, high = values.hi;
        return greatest_of(greatest(low, high));
    }
}
template <typename V>
auto least_of(V values) {
    return -greatest_of(V(-values));
}

template <typename T, int kRays>
struct Packet {
    typedef T Rays __attribute__((ext_vector_type(kRays)));

    Rays origin[3], inverse[3], margin[3], shear_x, shear_y;
    Rays limit;  // < 0: no ray
    Int32 face[kRays];
    int near[3], axes[3];
    T sign;
    // Ranges over all rays: of origins, at the sides of entry and exit, and of inverses.
    T near_origin[3], far_origin[3], least_inverse[3], greatest_inverse[3], greatest_margin[3];

    // Loads rays from `first` on; arguments have `width` numbers per component. False if the rays are too different for
    // a packet to pay off.
    bool load(const Tree<T>& tree, const T* starts, const T* directions, const T* limits, UInt64 mask, int first,
              Int32 width) {
        const int some = first + __builtin_ctzll(mask >> first);
        WideOfRays on;
        for (int i = 0; i < kRays; ++i) on[i] = mask >> (first + i) & 1 ? -1 : 0;
        // Inactive lanes get the ray of an active one.
        const auto load_lanes = [&](const T* from) {
            Rays values;
            __builtin_memcpy(&values, from + first, sizeof values);
            return on ? values : Rays(from[some]);
        };
        Rays direction[3], length[3];
        Rays extent = 0;
        for (int axis = 0; axis < 3; ++axis) {
            origin[axis] = load_lanes(starts + axis * width);
            direction[axis] = load_lanes(directions + axis * width);
            length[axis] = direction[axis] < 0 ? -direction[axis] : direction[axis];
            const Rays below = tree.lower[axis] - origin[axis], above = tree.upper[axis] - origin[axis];
            extent = greatest<Rays>(extent, greatest<Rays>(below < 0 ? -below : below, above < 0 ? -above : above));
        }
        extent = least<Rays>(extent, Limits<T>::kSteepest);
        int z = length[1][0] > length[0][0] ? 1 : 0;
        if (length[2][0] > length[z][0]) z = 2;
        axes[0] = z == 2 ? 0 : z + 1, axes[1] = axes[0] == 2 ? 0 : axes[0] + 1, axes[2] = z;
        const Rays scale = length[z];
        sign = direction[z][0] < 0 ? T(-1) : T(1);
        // All rays need the same longest axis, finite numbers, and a length above 0. Ties go to the lower axis, as for
        // a single ray. This test rejects nearly all incoherent rays before anything else is computed.
        const Rays sum = length[0] + length[1] + length[2];
        auto alike = (scale > 0) & (sum < kInfinity<T>);
        for (int axis = 0; axis < 3; ++axis) {
            if (axis < z) alike &= length[axis] < scale;
            if (axis > z) alike &= length[axis] <= scale;
            near[axis] = direction[axis][0] < 0 ? 1 : 0;
            alike &= near[axis] ? direction[axis] < 0 : direction[axis] >= 0;
            alike &= origin[axis] - origin[axis] == 0;
        }
        if (!__builtin_reduce_and(alike)) return false;
        shear_x = direction[axes[0]] / scale * sign, shear_y = direction[axes[1]] / scale * sign;
        for (int axis = 0; axis < 3; ++axis) {
            const Rays slope = direction[axis] / scale, steepness = slope < 0 ? -slope : slope;
            const Rays steep = steepness < T(1) / Limits<T>::kSteepest ? Rays(Limits<T>::kSteepest) : T(1) / steepness;
            inverse[axis] = near[axis] ? -steep : steep;
            margin[axis] = T(6) * Limits<T>::kEpsilon * extent * steep;
            const T least_origin = least_of(origin[axis]), greatest_origin = greatest_of(origin[axis]);
            near_origin[axis] = near[axis] ? least_origin : greatest_origin;
            far_origin[axis] = near[axis] ? greatest_origin : least_origin;
            least_inverse[axis] = least_of(inverse[axis]);
            greatest_inverse[axis] = greatest_of(inverse[axis]);
            greatest_margin[axis] = greatest_of(margin[axis]);
            // Diverging rays would visit nodes that few of them meet.
            const T spread = greatest_of(slope) - least_of(slope);
            const T room = T(0.02) * (tree.upper[axis] - tree.lower[axis]);
            if (!(spread < T(0.1)) || !(greatest_origin - least_origin <= room)) return false;
        }
        Rays given;
        __builtin_memcpy(&given, limits + first, sizeof given);
        limit = (on & (given == given)) ? given * scale : Rays(-1);
        for (Int32& of : face) of = -1;
        return true;
    }

    // For traverse(): the boxes that any of the rays may meet.
    unsigned enter(const Node<T>& node, Int32, int at, T last_limit, Wide<T>& entry) const {
#pragma clang fp contract(fast)  // the margin exceeds any rounding error
        Wide<T> first = 0, last = last_limit;
        for (int axis = 0; axis < 3; ++axis) {
            const Wide<T> to_near = wide(node.bounds[near[axis]][axis], at) - near_origin[axis];
            const Wide<T> to_far = wide(node.bounds[1 - near[axis]][axis], at) - far_origin[axis];
            first = greatest<Wide<T>>(
                least<Wide<T>>(to_near * least_inverse[axis], to_near * greatest_inverse[axis]) - greatest_margin[axis],
                first);
            last = least<Wide<T>>(greatest<Wide<T>>(to_far * least_inverse[axis], to_far * greatest_inverse[axis]) +
                                      greatest_margin[axis],
                                  last);
        }
        entry = first;
        return bits(first <= last);
    }

    // The rays that meet one box.
    UInt64 meet(const Node<T>& node, int slot) const {
#pragma clang fp contract(fast)
        Rays first = 0, last = limit;
        for (int axis = 0; axis < 3; ++axis) {
            const Rays to_near = (node.bounds[near[axis]][axis][slot] - origin[axis]) * inverse[axis];
            const Rays to_far = (node.bounds[1 - near[axis]][axis][slot] - origin[axis]) * inverse[axis];
            first = greatest<Rays>(to_near - margin[axis], first);
            last = least<Rays>(to_far + margin[axis], last);
        }
        typedef bool Bits __attribute__((ext_vector_type(kRays)));
        using Number = decltype(number_of_bits());
        return __builtin_bit_cast(Number, __builtin_convertvector(first <= last, Bits));
    }

    Frame<T> frame(int ray) const {
        return {{origin[0][ray], origin[1][ray], origin[2][ray]},
                {axes[0], axes[1], axes[2]},
                shear_x[ray],
                shear_y[ray],
                sign};
    }

private:
    using WideOfRays = decltype(Rays() < Rays());
    static auto number_of_bits() {
        if constexpr (kRays == 16)
            return static_cast<unsigned short>(0);
        else
            return static_cast<unsigned char>(0);
    }
};

// The nearest face of each ray; or any face, after which a ray is done.
template <typename T, int kRays, bool kAny>
struct PacketTriangles {
    const Tree<T>& tree;
    Packet<T, kRays>& packet;
    T limit;  // of all rays

    bool leaf(Int32 block, UInt32 place) {
        for (UInt64 rays = packet.meet(tree.nodes[place / kWidth], int(place % kWidth)); rays != 0; rays &= rays - 1) {
            const int ray = __builtin_ctzll(rays);
            if constexpr (kAny) {
                AnyTriangle<T> visitor{tree.triangles, packet.frame(ray), packet.limit[ray]};
                if (!visitor.leaf(block, place)) continue;
                packet.face[ray] = visitor.face;
                packet.limit[ray] = -1;
            } else {
                NearestTriangle<T> visitor{tree.triangles, packet.frame(ray), packet.limit[ray], packet.face[ray]};
                visitor.leaf(block, place);
                packet.face[ray] = visitor.face;
                packet.limit[ray] = visitor.limit;
            }
        }
        limit = greatest_of(packet.limit);
        return limit < 0;
    }
};

}  // namespace weft::devlib
