// Refits of trees: a thread has a block of items, then a node.
#include "devlib/spatial/refit.h"

#include "devlib/cuda/geometry.h"
#include "devlib/cuda/threads.h"

namespace weft::devlib {

namespace {

template <typename T, typename Visit>
void for_each_block(const RefitPlan& plan, const Visit& visit) {
    for (std::int64_t i = thread_index(); i < plan.count; i += threads()) {
        const Int32 place = plan.places[i];
        visit(i, static_cast<Node<T>*>(plan.nodes)[place / kWidth].bounds, place % kWidth);
    }
}

template <typename T>
void refit_triangle_blocks(const RefitPlan& plan) {
    const T* const points = static_cast<const T*>(plan.first);
    for_each_block<T>(plan, [&](std::int64_t i, T(&bounds)[2][3][kWidth], int slot) {
        refit_triangles(
            static_cast<TriangleBlock<T>*>(plan.blocks)[i], plan.corners + i * 3 * kWidth,
            [&](Int32 point) { return points + 3 * Int64(point); }, bounds, slot);
    });
}

template <typename T>
void refit_box_blocks(const RefitPlan& plan) {
    const T *const lowers = static_cast<const T*>(plan.first), *const uppers = static_cast<const T*>(plan.second);
    for_each_block<T>(plan, [&](std::int64_t i, T(&bounds)[2][3][kWidth], int slot) {
        refit_boxes(
            static_cast<BoxBlock<T>*>(plan.blocks)[i], [&](Int32 item) { return lowers + 3 * Int64(item); },
            [&](Int32 item) { return uppers + 3 * Int64(item); }, bounds, slot);
    });
}

template <typename T>
void describe_box(const RefitPlan& plan, const T (&of)[2][3][kWidth]) {
    T whole[2][3][kWidth];
    set_union(whole, 0, of);
    for (void* const to : plan.described) {
        if (to == nullptr) continue;
        auto& tree = *static_cast<Tree<T>*>(to);
        for (int axis = 0; axis < 3; ++axis) {
            const bool is_empty = whole[0][axis][0] > whole[1][axis][0];
            tree.lower[axis] = is_empty ? 0 : whole[0][axis][0];
            tree.upper[axis] = is_empty ? 0 : whole[1][axis][0];
        }
    }
}

template <typename T>
void refit_nodes(const RefitPlan& plan) {
    auto* const nodes = static_cast<Node<T>*>(plan.nodes);
    for (std::int64_t i = thread_index(); i < plan.count; i += threads()) {
        const Int32 number = plan.by_level[plan.begin + i];
        const Node<T>& node = nodes[number];
        if (node.parent >= 0)
            set_union(nodes[node.parent].bounds, node.slot, node.bounds);
        else if (number == 0)
            describe_box(plan, node.bounds);
        if (plan.moments != nullptr)
            sum_up_moments(nodes, static_cast<const TriangleBlock<T>*>(plan.blocks),
                           static_cast<Moments<T>*>(plan.moments), number);
    }
}

}  // namespace

extern "C" {

[[clang::device_kernel]] void weft_refit_triangles_f32(RefitPlan plan) { refit_triangle_blocks<float>(plan); }
[[clang::device_kernel]] void weft_refit_triangles_f64(RefitPlan plan) { refit_triangle_blocks<double>(plan); }
[[clang::device_kernel]] void weft_refit_boxes_f32(RefitPlan plan) { refit_box_blocks<float>(plan); }
[[clang::device_kernel]] void weft_refit_boxes_f64(RefitPlan plan) { refit_box_blocks<double>(plan); }
[[clang::device_kernel]] void weft_refit_nodes_f32(RefitPlan plan) { refit_nodes<float>(plan); }
[[clang::device_kernel]] void weft_refit_nodes_f64(RefitPlan plan) { refit_nodes<double>(plan); }

}  // extern "C"

}  // namespace weft::devlib
