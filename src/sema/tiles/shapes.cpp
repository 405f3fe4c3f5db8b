// Views, copies and elements of tiles by name.
#include <algorithm>

#include "sema/analyzer.h"

namespace weft::sema {

namespace {

std::vector<std::int64_t> strides_of(const Value& tile) {
    return tile.view ? tile.view->strides : row_major(tile.type.shape());
}

}  // namespace

// tile_extract(t, i, ...): negative indices do not count from the end; more indices than dimensions go into the
// element.
Value FunctionAnalyzer::tile_extract(TileArguments& call) {
    const Value& tile = call.tile("a");
    const ir::Extents& shape = tile.type.shape();
    std::vector<Actual> indices = call.rest();
    for (const char* parameter : {"i", "j", "k", "l", "m", "n"})
        if (call.has(parameter)) indices.push_back(call[parameter]);
    if (indices.size() < shape.size()) call.refuse_all("takes one index for each dimension of " + describe(tile));
    std::vector<ir::Value*> at;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        const Value& index = indices[axis].value;
        if (index.is_constant_integer() && (index.numbers[0].i < 0 || index.numbers[0].i >= shape[axis])) {
            fail(indices[axis].span,
                 "index " + std::to_string(index.numbers[0].i) + " is outside axis " + std::to_string(axis) + " of " +
                     describe(tile),
                 {}, ErrorCategory::index);
        }
        std::int64_t fixed = 0;
        ir::Value* position = values_.index(index, indices[axis].span);
        if (index.is_constant_integer()) tile_position(index, shape[axis], indices[axis].span, fixed);
        if (!(position->type == i32_type())) position = builder_.cast(position, Scalar::i32);
        at.push_back(position);
    }
    Value element = Value::runtime(builder_.extract_at(tile.ir, {ir::flat_index(builder_, shape, at)}));
    std::vector<ir::Value*> inner;
    for (std::size_t i = shape.size(); i < indices.size(); ++i)
        inner.push_back(values_.index(indices[i].value, indices[i].span));
    if (inner.empty()) return element;
    if (!element.type.is_numeric_aggregate() || inner.size() > (element.type.is_matrix() ? 2u : 1u))
        call.refuse_all("too many indices for " + describe(tile));
    return Value::runtime(builder_.extract_at(element.ir, inner));
}

// slice(start, stop, step): a tuple that says so, for tile_view() and tile_slice_indexed().
Value FunctionAnalyzer::slice_object(const syntax::Call& call, Span span) {
    std::vector<Value> parts;
    Binding none;
    none.kind = Binding::Kind::none;
    for (const Actual& actual : actuals(call)) {
        if (!actual.value.is_constant_integer() && !actual.value.is_binding(Binding::Kind::none))
            fail(actual.span, "slice() takes integers known at compile time, not " + describe(actual.value), {},
                 ErrorCategory::index);
        parts.push_back(actual.value);
    }
    if (parts.empty() || parts.size() > 3)
        fail(span, "slice() takes 1 to 3 arguments, got " + std::to_string(parts.size()));
    if (parts.size() == 1) parts.insert(parts.begin(), Value::of_binding(none));
    if (parts.size() == 2) parts.push_back(Value::of_binding(none));
    Value slice = Value::tuple(std::move(parts));
    Binding marker;
    marker.kind = Binding::Kind::object;
    marker.text = "slice";
    slice.binding = std::make_shared<const Binding>(std::move(marker));
    return slice;
}

// The positions that a slice() takes; empty for other values.
std::optional<std::vector<std::int64_t>> FunctionAnalyzer::chosen_by(const Value& slice, std::int64_t extent,
                                                                     Span span) {
    if (!slice.is_tuple() || !slice.binding || slice.binding->text != "slice") return std::nullopt;
    const auto bound = [&](std::size_t i) {
        const Value& value = slice.elements[i];
        return value.is_constant_integer() ? std::optional(value.numbers[0].i) : std::nullopt;
    };
    std::vector<std::int64_t> chosen = positions_of_slice(bound(0), bound(1), bound(2), extent, span);
    if (chosen.empty()) fail(span, "this slice of a tile is empty", {}, ErrorCategory::value);
    return chosen;
}

// tile_view(t, offset=(i,)) is t[i]; with a shape it is a rectangle.
Value FunctionAnalyzer::tile_view(TileArguments& call) {
    Value tile = call.tile("t");
    if (call["t"].place) tile.view = call["t"].place->tile;
    const ir::Extents& shape = tile.type.shape();
    const std::vector<std::int64_t> strides = strides_of(tile);
    const Actual& given = call["offset"];
    const bool is_slice = given.value.is_tuple() && given.value.binding;
    const std::vector<Value> entries =
        given.value.is_tuple() && !is_slice ? given.value.elements : std::vector<Value>{given.value};
    if (entries.size() > shape.size())
        call.refuse_value("offset", "at most one entry for each dimension of " + describe(tile));
    std::optional<ir::Extents> wanted;
    if (call.has("shape")) {
        wanted = call.shape();
        if (wanted->size() != shape.size())
            call.refuse_value("shape", "one extent for each dimension of " + describe(tile));
    }
    std::int64_t base = 0;
    ir::Value* offset = nullptr;
    ir::Extents kept, kept_strides;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        if (axis < entries.size() && !wanted) {
            if (const auto chosen = chosen_by(entries[axis], shape[axis], given.span)) {
                base += (*chosen)[0] * strides[axis];
                kept.push_back(static_cast<std::int64_t>(chosen->size()));
                kept_strides.push_back((chosen->size() > 1 ? (*chosen)[1] - (*chosen)[0] : 1) * strides[axis]);
                continue;
            }
        }
        const std::int64_t extent = wanted ? (*wanted)[axis] : 1;
        if (wanted || axis >= entries.size()) {
            kept.push_back(wanted ? extent : shape[axis]);
            kept_strides.push_back(strides[axis]);
        }
        if (extent > shape[axis]) call.refuse_value("shape", "extents within those of " + describe(tile));
        if (axis >= entries.size()) continue;
        const Value& entry = entries[axis];
        if (entry.is_constant_integer()) {
            const std::int64_t at = entry.numbers[0].i;
            if (at < 0 || at + extent > shape[axis]) {
                fail(given.span,
                     "the view begins at " + std::to_string(at) + " of axis " + std::to_string(axis) + " and has " +
                         std::to_string(extent) + " elements there; " + describe(tile) + " has " +
                         std::to_string(shape[axis]),
                     {}, ErrorCategory::value);
            }
            base += at * strides[axis];
            continue;
        }
        ir::Value* at = values_.index(entry, given.span);
        if (!(at->type == i32_type())) at = builder_.cast(at, Scalar::i32);
        if (strides[axis] != 1) at = builder_.binary(ir::Op::mul, at, builder_.integer(strides[axis]));
        offset = offset ? builder_.binary(ir::Op::add, offset, at) : at;
    }
    if (kept.empty()) {
        kept = {1};
        kept_strides = {1};
    }
    return view_of_tile(tile, kept, base, offset, std::move(kept_strides));
}

Value FunctionAnalyzer::tile_assign(TileArguments& call) {
    const auto& to = call["dst"].place;
    if (!to) call.refuse("dst", "a tile in a variable, which the call changes");
    Value into = call.tile("dst");
    into.view = to->tile;
    const Value& source = call.tile("src");
    const ir::Extents &shape = into.type.shape(), &part = source.type.shape();
    if (shape.size() != part.size())
        call.refuse_value("src", "a tile of " + std::to_string(shape.size()) + " dimensions, as " + describe(into));
    const std::vector<ir::Value*> offset = call.offset(shape.size());
    if (const auto fixed = call.has("offset") ? constant_extents(call["offset"].value) : std::nullopt) {
        for (std::size_t axis = 0; axis < shape.size(); ++axis)
            if ((*fixed)[axis] < 0 || (*fixed)[axis] + part[axis] > shape[axis])
                call.refuse_value("offset", "places at which " + describe(source) + " lies within " + describe(into));
    }
    const std::vector<std::int64_t> strides = strides_of(into);
    ir::Value* sum = nullptr;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        if (part[axis] > shape[axis]) call.refuse_value("src", "extents within those of " + describe(into));
        ir::Value* const step = builder_.binary(ir::Op::mul, offset[axis], builder_.integer(strides[axis]));
        sum = sum ? builder_.binary(ir::Op::add, sum, step) : step;
    }
    Value values = source;
    const Type wanted = into.type.element(), given = source.type.element();
    if (!(wanted == given)) {
        const bool fits = (given.is_scalar() || given.is_numeric_aggregate()) &&
                          (wanted.is_scalar() || wanted.is_numeric_aggregate()) &&
                          given.with_scalar(wanted.scalar()) == wanted;
        if (!fits) call.refuse("src", "a tile of " + wanted.python_name());
        values = map_tiles(
            {source},
            [&](const std::vector<Value>& x) { return Value::runtime(builder_.cast(x[0].ir, wanted.scalar())); },
            call.span());
    }
    const Value view = view_of_tile(into, part, 0, call.has("offset") ? sum : nullptr, strides);
    write_tile(target_of_view(view, call.span()), values, call.span());
    return {};
}

Value FunctionAnalyzer::tile_transpose(TileArguments& call) {
    Value tile = call.tile("a");
    if (call["a"].place) tile.view = call["a"].place->tile;
    if (tile.type.ndim() != 2) call.refuse("a", "a tile of two dimensions");
    const std::vector<std::int64_t> strides = strides_of(tile);
    return view_of_tile(tile, {tile.type.shape()[1], tile.type.shape()[0]}, 0, nullptr, {strides[1], strides[0]});
}

Value FunctionAnalyzer::tile_reshape(TileArguments& call) {
    Value tile = call.tile("a");
    if (call["a"].place) tile.view = call["a"].place->tile;
    std::optional<ir::Extents> shape = constant_extents(call["shape"].value);
    if (!shape || shape->empty()) call.refuse_value("shape", "integers known at compile time");
    std::int64_t count = 1;
    std::optional<std::size_t> open;
    for (std::size_t i = 0; i < shape->size(); ++i) {
        if ((*shape)[i] == -1 && !open)
            open = i;
        else if ((*shape)[i] < 1)
            call.refuse_value("shape", "extents of at least 1, and at most one -1");
        else
            count *= (*shape)[i];
    }
    if (open) (*shape)[*open] = tile.type.size() / count;
    if ((open && tile.type.size() % count != 0) || ir::count_of(*shape) != tile.type.size())
        call.refuse_all(describe(tile) + " has " + std::to_string(tile.type.size()) + " elements, and the shape " +
                        shape_text(*shape) + " has " + std::to_string(ir::count_of(*shape)));
    // Extents of 1 have any stride.
    const ir::Extents own = strides_of(tile), packed = row_major(tile.type.shape());
    for (std::size_t i = 0; i < own.size(); ++i) {
        if (own[i] == packed[i] || tile.type.shape()[i] == 1) continue;
        call.refuse_all("requires a contiguous tile, and this is a view with other strides",
                        {help("copy it first: wp.tile_astype(t, t.dtype), or assign it to a tile of zeros")});
    }
    return view_of_tile(tile, *shape, 0, nullptr, row_major(*shape));
}

Value FunctionAnalyzer::tile_squeeze(TileArguments& call) {
    Value tile = call.tile("a");
    if (call["a"].place) tile.view = call["a"].place->tile;
    const ir::Extents& shape = tile.type.shape();
    std::vector<bool> drops(shape.size(), !call.has("axis"));
    if (call.has("axis")) {
        const std::optional<ir::Extents> axes = constant_extents(call["axis"].value);
        if (!axes) call.refuse_value("axis", "integers known at compile time");
        for (std::int64_t axis : *axes) {
            if (axis < 0) axis += tile.type.ndim();
            if (axis < 0 || axis >= tile.type.ndim()) call.refuse_value("axis", "axes of " + describe(tile));
            if (shape[static_cast<std::size_t>(axis)] != 1) call.refuse_value("axis", "axes of extent 1");
            drops[static_cast<std::size_t>(axis)] = true;
        }
    }
    ir::Extents kept, kept_strides;
    const std::vector<std::int64_t> strides = strides_of(tile);
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        if (shape[axis] == 1 && drops[axis]) continue;
        kept.push_back(shape[axis]);
        kept_strides.push_back(strides[axis]);
    }
    if (kept.empty()) {
        kept = {1};
        kept_strides = {1};
    }
    return view_of_tile(tile, kept, 0, nullptr, std::move(kept_strides));
}

Value FunctionAnalyzer::tile_broadcast(TileArguments& call) {
    Value tile = call.tile("a");
    if (call["a"].place) tile.view = call["a"].place->tile;
    const ir::Extents shape = call.shape(), &own = tile.type.shape();
    const std::vector<std::int64_t> strides = strides_of(tile);
    if (shape.size() < own.size()) call.refuse_value("shape", "at least as many extents as " + describe(tile));
    const std::size_t added = shape.size() - own.size();
    std::vector<std::int64_t> result(shape.size(), 0);
    for (std::size_t axis = 0; axis < own.size(); ++axis) {
        if (own[axis] != 1 && own[axis] != shape[axis + added])
            call.refuse_all(describe(tile) + " does not broadcast to the shape " + shape_text(shape));
        if (own[axis] == shape[axis + added]) result[axis + added] = strides[axis];
    }
    return view_of_tile(tile, shape, 0, nullptr, std::move(result));
}

Value FunctionAnalyzer::tile_astype(TileArguments& call) {
    const Value& tile = call.tile("t");
    const Type from = tile.type.element(), to = call.dtype({});
    if (!from.is_scalar() || !to.is_scalar()) {
        if (from == to) return map_tiles({tile}, [&](const std::vector<Value>& x) { return x[0]; }, call.span());
        call.refuse("t", "a tile of scalars, and a scalar type");
    }
    if (from == to) return map_tiles({tile}, [&](const std::vector<Value>& x) { return x[0]; }, call.span());
    return map_tiles(
        {tile}, [&](const std::vector<Value>& x) { return Value::runtime(builder_.cast(x[0].ir, to.scalar())); },
        call.span());
}

// A copy of the elements at these positions along one axis; negative ones count from the end.
Value FunctionAnalyzer::gather_along(const Value& tile, std::size_t axis, ir::Value* indices, Span span) {
    const Type type = indices->type;
    if (type.ndim() != 1 || !type.element().is_int())
        fail(span, "a tile of indices must be a tile of one dimension of integers, not " + type.python_name(), {},
             ErrorCategory::index);
    ir::Extents shape = tile.type.shape();
    const std::int64_t extent = shape[axis];
    shape[axis] = type.shape()[0];
    return Value::runtime(ir::build_tile(builder_, shape, [&](const std::vector<ir::Value*>& at) {
        std::vector<ir::Value*> from = at;
        std::int64_t fixed = 0;
        from[axis] = tile_position(Value::runtime(builder_.extract_at(indices, {at[axis]})), extent, span, fixed);
        return builder_.extract_at(tile.ir, {ir::flat_index(builder_, tile.type.shape(), from)});
    }));
}

// tile_slice_indexed(t, (slice or tile, ...)): as t[..., indices].
Value FunctionAnalyzer::tile_slice_indexed(TileArguments& call) {
    const Value& tile = call.tile("t");
    const Actual& given = call["slices"];
    const std::vector<Value> entries = given.value.is_tuple() ? given.value.elements : std::vector<Value>{given.value};
    for (std::size_t axis = 0; axis < entries.size(); ++axis)
        if (entries[axis].type.is_tile() && axis < tile.type.shape().size())
            return gather_along(tile, axis, entries[axis].ir, given.span);
    call.refuse("slices", "a tile of indices among the entries");
}

}  // namespace weft::sema
