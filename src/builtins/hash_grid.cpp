// Neighbours of a point, from a hash grid (runtime/spatial/hash_grid.h).
//
// Space is cut into cells, and along each axis cell numbers wrap around the grid. Cells that are contiguous along x are
// contiguous in the grid, so a query walks over rows:
//
//   for z, y in the cells near the query point: for the row's one or two parts: for the points of the part
//
// Points with groups are in a grid of their own, in which each group shifts its cells. Points of other groups in the
// same cells are skipped.
//
// The user's own distance is rounded, and a query must not miss a point for that: the radius is widened by some ulps.
// Cells are computed in float64, as during the grid's construction, so that both agree.
#include "builtins/groups.h"
#include "builtins/objects.h"

namespace weft::builtins {

namespace {

// The largest cell number, so that float64 counts exactly. As in runtime/spatial/hash_grid.cpp.
constexpr double kFarthest = 0x1p50;

double rounding(Scalar scalar) { return scalar == Scalar::f64 ? 0x1p-50 : scalar == Scalar::f32 ? 0x1p-21 : 0x1p-8; }

E cell(E place) { return min(max(floor(place), -kFarthest), kFarthest); }

// The shift of a group's cells along each axis. As in runtime/spatial/hash_grid.cpp.
constexpr std::int32_t kGroupSteps[] = {73856093, 19349663, 83492791};

// `group` is null for a query over all points.
ir::Value* query(Call& call, ir::Value* group) {
    const E place = argument(call, 1), given = argument(call, 2);
    E address = object(ObjectKind::hash_grid, argument(call, 0));
    if (group) address = Descriptor(ObjectKind::hash_grid, address)["grouped"];
    const Descriptor grid(ObjectKind::hash_grid, address);
    const E inverse_width = grid["inverse_width"], dims = grid["dims"];
    const E radius = cast(given, Scalar::f64);
    std::vector<E> first, counts;
    for (int axis = 0; axis < 3; ++axis) {
        const E at = cast(place.component(axis), Scalar::f64);
        const E reach = radius + (abs(at) + abs(radius)) * rounding(place.type().scalar());
        const E from = cell((at - reach) * inverse_width), to = cell((at + reach) * inverse_width);
        const E moved = group ? cast(argument(call, 3) * kGroupSteps[axis], Scalar::f64) : at.zero();
        const E low = from + moved, high = to + moved;
        const E dim = cast(dims[axis], Scalar::f64);
        const E count = min(max(high - low + 1.0, 0.0), dim);
        // Wraps around: low modulo dim. A rounded quotient can be off by one.
        const E rest = low - floor(low / dim) * dim;
        const E inside = select(rest < 0.0, rest + dim, select(rest >= dim, rest - dim, rest));
        first.push_back(cast(select(count >= dim, 0.0 * dim, inside), Scalar::i32));
        counts.push_back(cast(count, Scalar::i32));
    }
    const E any = counts[0] > 0 && counts[1] > 0 && grid["count"] > 0;
    counts[2] = select(any, counts[2], 0);
    const E zero = counts[2].zero();
    return make(find_known_struct("HashGridQuery")->type(),
                {address, make_vector(first), make_vector(counts), zero, zero, zero, zero, zero,
                 zero.wrap(call.builder.integer(group ? 1 : 0)), group ? zero.wrap(group) : zero});
}
ir::Value* expand_query(Call& call) { return query(call, nullptr); }
ir::Value* expand_query_of_group(Call& call) { return query(call, call.arguments[3]); }

enum Field { kGrid, kFirst, kCounts, kPart, kY, kZ, kAt, kEnd, kHasGroup, kGroup };

ir::Value* expand_next(Call& call) {
    ir::Builder& b = call.builder;
    const E query = argument(call, 0), index = argument(call, 1);
    const Descriptor grid(ObjectKind::hash_grid, query[kGrid]);
    const E starts = grid["starts"], points = grid["points"], dims = grid["dims"];
    const E first = query[kFirst], counts = query[kCounts];
    const auto around = [](E cell, E dim) { return select(cell >= dim, cell - dim, cell); };
    const auto start_of = [&](E cell) { return starts.wrap(b.load(starts, {cell})); };

    // Whether the point is one of another group, or the part has no more points and another part follows.
    const auto goes_on = [&](const std::vector<E>& carried) {
        const E at = carried[3], is_inside = at < carried[4];
        ir::Operation* passed = b.if_(is_inside && query[kHasGroup] != 0, {bool_type()});
        {
            ir::Builder::Inside arm(b, passed->body(0));
            b.yield({at.wrap(b.load(grid["groups"], {at})) != query[kGroup]});
        }
        {
            ir::Builder::Inside arm(b, passed->body(1));
            b.yield({!is_inside && carried[2] < counts[2]});
        }
        return index.wrap(passed->result(0));
    };
    // Skips a point of another group; after the last point of a part goes to the next part.
    const auto advance = [&](const std::vector<E>& carried) -> std::vector<E> {
        const E part = carried[0], y = carried[1], z = carried[2];
        ir::Operation* step = b.if_(query[kHasGroup] != 0 && carried[3] < carried[4], std::vector<Type>(5, i32_type()));
        {
            ir::Builder::Inside arm(b, step->body(0));
            b.yield({part, y, z, carried[3] + 1, carried[4]});
        }
        {
            ir::Builder::Inside arm(b, step->body(1));
            const E row = (around(first[2] + z, dims[2]) * dims[1] + around(first[1] + y, dims[1])) * dims[0];
            const E end = first[0] + counts[0], beyond = end - dims[0];
            const E is_first = part == 0, wraps = is_first && beyond > 0;
            const E at = start_of(row + select(is_first, first[0], 0));
            const E until = start_of(row + select(is_first, min(end, dims[0]), beyond));
            const E next_y = select(wraps, y, y + 1), is_last = next_y == counts[1];
            b.yield({select(wraps, part + 1, 0), select(is_last, next_y.zero(), next_y), select(is_last, z + 1, z), at,
                     until});
        }
        std::vector<E> next;
        for (ir::Value* value : step->results) next.push_back(index.wrap(value));
        return next;
    };
    const std::vector<E> after =
        while_loop({query[kPart], query[kY], query[kZ], query[kAt], query[kEnd]}, goes_on, advance);
    const E at = after[3], found = at < after[4];
    E state = query;
    const auto set = [&](Field field, E value) { state = state.wrap(b.insert(state, value, {field})); };
    set(kPart, after[0]);
    set(kY, after[1]);
    set(kZ, after[2]);
    set(kAt, at + 1);
    set(kEnd, after[4]);

    ir::Operation* taken = b.if_(found, {i32_type()});
    {
        ir::Builder::Inside inside(b, taken->body(0));
        b.yield({b.load(points, {at})});
    }
    {
        ir::Builder::Inside inside(b, taken->body(1));
        b.yield({index});
    }
    call.inout = {state, taken->result(0)};
    return found;
}

ir::Value* expand_point_id(Call& call) {
    const E id = argument(call, 0), index = argument(call, 1);
    const Descriptor grid(ObjectKind::hash_grid, object(ObjectKind::hash_grid, id));
    ir::Builder& b = call.builder;
    ir::Operation* inside_grid = b.if_(index >= 0 && index < grid["count"], {i32_type()});
    {
        ir::Builder::Inside inside(b, inside_grid->body(0));
        b.yield({b.load(grid["points"], {index})});
    }
    {
        ir::Builder::Inside inside(b, inside_grid->body(1));
        b.yield({index.number(-1)});
    }
    return inside_grid->result(0);
}

constexpr Entry kEntries[] = {
    {"hash_grid_query", "(id: uint64, point: Vec[3,F], max_dist: F) -> HashGridQuery",
     "The points of a hash grid that may be within max_dist of a point: all that are, and others of the same cells.",
     expand_query, false},
    {"hash_grid_query", "(id: uint64, point: Vec[3,F], max_dist: F, group: int32) -> HashGridQuery",
     "The same for the points of one group.", expand_query_of_group, false},
    {"hash_grid_query_next", "(query: inout HashGridQuery, index: inout int32) -> B",
     "Whether there is another point; its number is assigned to index.", expand_next, false},
    {"hash_grid_point_id", "(id: uint64, index: int32) -> int32",
     "The number of the point at this index in the order of cells; -1 for an index outside of the grid's points. "
     "Threads that take their points in this order share the memory that they read.",
     expand_point_id, false},
};

}  // namespace

std::span<const Entry> hash_grid_entries() { return kEntries; }

}  // namespace weft::builtins
