// Tiles in locals. A name holds a tile, or is a view of one that another name holds. Tiles are values, so a write makes
// a new version of the whole tile:
//
//   u = t[1]          u: a view of t
//   u += x            %t1 = tile %t0 with row 1 replaced       u and t both show it
//   t[0, 2] = 3.0     %t2 = insert_at %t1, 3.0 at 2
//
// Each use of a name of a view reads the present version of its tile.
#include <algorithm>
#include <set>

#include "ir/indices.h"
#include "ir/loop_builder.h"
#include "sema/analyzer.h"

namespace weft::sema {

namespace {

bool is_whole(const TileView& view, Type root, Type type) {
    return view.base == 0 && !view.offset && root == type && view.strides == row_major(type.shape());
}

ir::Value* number_in(ir::Builder& builder, const TileView& view, const std::vector<ir::Value*>& indices) {
    ir::Value* number = view.offset;
    const auto add = [&](ir::Value* more) { number = number ? builder.binary(ir::Op::add, number, more) : more; };
    for (std::size_t i = 0; i < indices.size(); ++i) {
        if (view.strides[i] == 0) continue;
        add(view.strides[i] == 1 ? indices[i]
                                 : builder.binary(ir::Op::mul, indices[i], builder.integer(view.strides[i])));
    }
    if (view.base != 0 || !number) add(builder.integer(view.base));
    return number;
}

}  // namespace

bool FunctionAnalyzer::is_tile_name(const std::string& name) const {
    const Local* local = locals_.find(name);
    return local && local->value.type.is_tile();
}

Value FunctionAnalyzer::tile_of_local(const std::string& name, const Value& local) {
    Value value = local;
    if (local.view) {
        value.ir = gathered(locals_.find(local.view->root)->value.ir, *local.view, local.type.shape());
    } else {
        value.view = std::make_shared<const TileView>(TileView{name, 0, nullptr, row_major(local.type.shape())});
    }
    return value;
}

// A parameter is a view of the caller's tile: `t += x` changes it, `t = x` gives the name another one.
void FunctionAnalyzer::take_tile(std::size_t number, const Value& parameter) {
    const std::string& name = tree_.parameters[number].name;
    const Span span = tree_.parameters[number].span;
    locals_.assign(tile_storage(name), parameter, span);
    reference_starts_[tile_storage(name)] = parameter.ir;
    Value view = parameter;
    view.view =
        std::make_shared<const TileView>(TileView{tile_storage(name), 0, nullptr, row_major(parameter.type.shape())});
    locals_.assign(name, std::move(view), span);
}

// The name is about to get another value: views of its present tile go on with one that no name holds.
void FunctionAnalyzer::keep_tile(const std::string& name, Value& value) {
    const Local* const local = locals_.find(name);
    if (!local || local->value.view) return;
    std::vector<Value*> views;
    if (value.view && value.view->root == name) views.push_back(&value);
    for (auto& [other, known] : locals_.scope)
        if (known.value.view && known.value.view->root == name) views.push_back(&known.value);
    if (views.empty()) return;
    std::string storage = tile_storage(name);
    while (locals_.find(storage)) storage += '\'';
    locals_.scope.insert_or_assign(storage, *local);
    for (Value* view : views) {
        auto moved = std::make_shared<TileView>(*view->view);
        moved->root = storage;
        view->view = std::move(moved);
    }
}

// The tiles that a block may change through the names in it.
void FunctionAnalyzer::add_tiles(const syntax::Block& body, const syntax::Expression* condition,
                                 std::set<std::string>& names) const {
    // Stacks and queries of blocks are tuples with a mark.
    const auto may_change = [](const Value& value) {
        return value.type.is_tile() || (value.is_tuple() && value.binding);
    };
    if (std::none_of(locals_.scope.begin(), locals_.scope.end(),
                     [&](const auto& local) { return may_change(local.second.value); }))
        return;
    const auto add = [&](const syntax::Expression& e) {
        const auto* name = std::get_if<syntax::Name>(&e.node);
        const Local* local = name ? locals_.find(name->id) : nullptr;
        if (!local || !may_change(local->value) || local->state != Local::State::assigned) return;
        const std::string& root = local->value.view ? local->value.view->root : name->id;
        names.insert(root);
        // Its views follow it: if the block gives the name another tile, they are of different tiles afterwards.
        for (const auto& [other, known] : locals_.scope)
            if (known.value.view && known.value.view->root == root) names.insert(other);
    };
    walk(body, [](const syntax::Statement&) {}, add);
    if (condition) walk(*condition, add);
}

ir::Value* FunctionAnalyzer::gathered(ir::Value* root, const TileView& view, const ir::Extents& shape) {
    if (is_whole(view, root->type, Type::tile(root->type.element(), shape))) return root;
    const auto at = [&](const std::vector<ir::Value*>& indices) {
        return builder_.extract_at(root, {number_in(builder_, view, indices)});
    };
    if (view.strides == row_major(shape)) {
        TileView flat = view;
        flat.strides = {1};
        return ir::build_flat_tile(
            builder_, shape, [&](ir::Value* k) { return builder_.extract_at(root, {number_in(builder_, flat, {k})}); });
    }
    return ir::build_tile(builder_, shape, at);
}

Value FunctionAnalyzer::view_of_tile(const Value& tile, const ir::Extents& shape, std::int64_t base, ir::Value* offset,
                                     std::vector<std::int64_t> strides) {
    TileView view{"", base, offset, std::move(strides)};
    if (!tile.view) return Value::runtime(gathered(tile.ir, view, shape));
    // The caller counts in the strides of the tile at hand, which may be a view itself: see strides_of().
    view.root = tile.view->root;
    view.base += tile.view->base;
    if (tile.view->offset)
        view.offset = offset ? builder_.binary(ir::Op::add, offset, tile.view->offset) : tile.view->offset;
    Value result = Value::runtime(gathered(locals_.find(view.root)->value.ir, view, shape));
    result.view = std::make_shared<const TileView>(std::move(view));
    return result;
}

// Element number `number` in the terms of the tile's own strides.
Value FunctionAnalyzer::tile_at(const Value& tile, ir::Value* number) {
    if (!tile.view) return Value::runtime(builder_.extract_at(tile.ir, {number}));
    ir::Value* at = number;
    if (tile.view->offset) at = builder_.binary(ir::Op::add, at, tile.view->offset);
    if (tile.view->base) at = builder_.binary(ir::Op::add, at, builder_.integer(tile.view->base));
    return Value::runtime(builder_.extract_at(locals_.find(tile.view->root)->value.ir, {at}));
}

// An index along one axis: fixed, or a value that counts from the start.
ir::Value* FunctionAnalyzer::tile_position(const Value& index, std::int64_t extent, Span span, std::int64_t& fixed) {
    if (index.is_constant_integer()) {
        fixed = index.numbers[0].i;
        if (fixed < -extent || fixed >= extent) {
            fail(span,
                 "index " + std::to_string(fixed) + " is outside a tile's axis of " + std::to_string(extent) +
                     " elements",
                 {}, ErrorCategory::index);
        }
        if (fixed < 0) fixed += extent;
        return nullptr;
    }
    ir::Value* at = values_.index(index, span);
    if (!(at->type == i32_type())) at = builder_.cast(at, Scalar::i32);
    at = ir::counted_from_end(builder_, at, [&] { return builder_.integer(extent); });
    if (module_.options.debug) {
        ir::Value* const inside =
            builder_.binary(ir::Op::and_, builder_.compare(ir::Op::cmp_ge, at, builder_.integer(0)),
                            builder_.compare(ir::Op::cmp_lt, at, builder_.integer(extent)));
        builder_.assert_(inside, "an index is outside a tile's axis of " + std::to_string(extent) + " elements");
    }
    return at;
}

FunctionAnalyzer::TilePartition FunctionAnalyzer::cut_tile(const Value& tile,
                                                           const std::vector<syntax::ExpressionPtr>& indices,
                                                           Span span) {
    const ir::Extents& shape = tile.type.shape();
    const std::vector<std::int64_t> strides = tile.view ? tile.view->strides : row_major(shape);
    const std::size_t rank = shape.size();
    if (has_slice(indices) && indices.size() > rank) {
        fail(span, std::to_string(indices.size()) + " indices for " + describe(tile), {}, ErrorCategory::index);
    }
    TilePartition cut;
    std::int64_t base = 0;
    ir::Value* offset = nullptr;
    ir::Extents kept, kept_strides;
    for (std::size_t axis = 0; axis < rank; ++axis) {
        if (axis >= indices.size()) {
            kept.push_back(shape[axis]);
            kept_strides.push_back(strides[axis]);
            continue;
        }
        ++cut.used;
        const Span place = indices[axis]->span;
        if (const auto* slice = std::get_if<syntax::Slice>(&indices[axis]->node)) {
            const std::vector<std::int64_t> chosen = static_slice(*slice, shape[axis], place);
            if (chosen.empty()) fail(place, "this slice of " + describe(tile) + " is empty", {}, ErrorCategory::value);
            const std::int64_t step = chosen.size() > 1 ? chosen[1] - chosen[0] : 1;
            base += chosen[0] * strides[axis];
            kept.push_back(static_cast<std::int64_t>(chosen.size()));
            kept_strides.push_back(step * strides[axis]);
            continue;
        }
        const Value index = expression(*indices[axis]);
        if (index.type.is_tile()) {
            // The other brackets apply first; then the elements along this axis are gathered.
            for (std::size_t other = 0; other < indices.size(); ++other) {
                const auto* all = std::get_if<syntax::Slice>(&indices[other]->node);
                if (other != axis && !(all && !all->start && !all->stop && !all->step)) {
                    fail(span, "beside a tile of indices, the other indices of a tile must be ':'",
                         {help("cut the tile first: u = t[1:3]; u[:, indices]")}, ErrorCategory::index);
                }
            }
            cut.view = gather_along(tile, axis, values_.materialize(index, place), place);
            return cut;
        }
        std::int64_t fixed = 0;
        ir::Value* at = tile_position(index, shape[axis], place, fixed);
        base += fixed * strides[axis];
        if (!at) continue;
        if (strides[axis] != 1) at = builder_.binary(ir::Op::mul, at, builder_.integer(strides[axis]));
        offset = offset ? builder_.binary(ir::Op::add, offset, at) : at;
    }
    if (!kept.empty()) {
        cut.view = view_of_tile(tile, kept, base, offset, std::move(kept_strides));
        return cut;
    }
    cut.number = offset;
    if (base != 0 || !offset)
        cut.number = offset ? builder_.binary(ir::Op::add, offset, builder_.integer(base)) : builder_.integer(base);
    return cut;
}

Value FunctionAnalyzer::part_of_tile(const Value& tile, const std::vector<syntax::ExpressionPtr>& indices, Span span) {
    const TilePartition cut = cut_tile(tile, indices, span);
    if (!cut.number) return cut.view;
    const Value element = tile_at(tile, cut.number);
    if (cut.used == indices.size()) return element;
    if (!element.type.is_numeric_aggregate())
        fail(span, std::to_string(indices.size()) + " indices for " + describe(tile), {}, ErrorCategory::index);
    return parts_.read(element, part_subscript(element.type, std::span(indices).subspan(cut.used), span));
}

std::optional<Value> FunctionAnalyzer::tile_attribute(Type type, const std::string& name) {
    if (name == "shape") {
        std::vector<Value> extents;
        for (const std::int64_t extent : type.shape()) extents.push_back(Value::integer(extent));
        return Value::tuple(std::move(extents));
    }
    if (name == "size") return Value::integer(type.size());
    if (name == "ndim") return Value::integer(type.ndim());
    if (name != "dtype") return std::nullopt;
    Binding element;
    element.kind = Binding::Kind::type;
    element.type = type.element();
    return Value::of_binding(std::move(element));
}

// ---- targets ----

AssignmentTarget FunctionAnalyzer::target_of_view(const Value& value, Span span) {
    AssignmentTarget target;
    target.name = value.view->root;
    target.tile = value.view;
    target.type = value.type;
    target.span = span;
    return target;
}

AssignmentTarget FunctionAnalyzer::target_in_tile(const AssignmentTarget& base,
                                                  const std::vector<syntax::ExpressionPtr>& indices, Span span) {
    const Value tile = read(base);
    if (!tile.view)
        fail(span, "this tile has no name, so a write to it would be lost", {help("assign it to a variable first")});
    const TilePartition cut = cut_tile(tile, indices, span);
    if (!cut.number) {
        if (!cut.view.view)
            fail(span, "elements chosen by a tile of indices are a copy and cannot be assigned",
                 {help("write them in a loop")});
        return target_of_view(cut.view, span);
    }
    AssignmentTarget target = base;
    target.span = span;
    target.type = tile.type.element();
    target.tile_element = cut.number;
    if (tile.view->offset) target.tile_element = builder_.binary(ir::Op::add, target.tile_element, tile.view->offset);
    if (tile.view->base)
        target.tile_element = builder_.binary(ir::Op::add, target.tile_element, builder_.integer(tile.view->base));
    if (cut.used == indices.size()) return target;
    PartStep step = part_subscript(target.type, std::span(indices).subspan(cut.used), span);
    return target_of_part(std::move(target), std::move(step));
}

Value FunctionAnalyzer::read_tile(const AssignmentTarget& place) {
    ir::Value* const root = locals_.find(place.name)->value.ir;
    if (place.tile_element) return Value::runtime(builder_.extract_at(root, {place.tile_element}));
    Value value = Value::runtime(gathered(root, *place.tile, place.type.shape()));
    value.view = place.tile;
    return value;
}

void FunctionAnalyzer::write_tile(const AssignmentTarget& place, const Value& value, Span value_span) {
    ir::Value* const root = locals_.find(place.name)->value.ir;
    const std::string what = "the value assigned to this part of a tile";
    // Numbers are converted, as in stores of tiles of another type.
    const auto converted = [&](Type type) {
        const Type given = type_of(value);
        if (!type.is_scalar() || !given.is_scalar() || given == type || adapt(value, type, value_span))
            return values_.materialize(expect(value, type, value_span, what), value_span);
        return builder_.cast(values_.materialize(value, value_span), type.scalar());
    };
    ir::Value* changed = nullptr;
    if (place.tile_element) {
        ir::Value* element = converted(place.type);
        if (!place.steps.empty())
            element = parts_.replace(builder_.extract_at(root, {place.tile_element}), place.steps, 0, element);
        changed = builder_.insert_at(root, element, {place.tile_element});
    } else {
        const Type type = place.type;
        const bool is_tile = value.type.is_tile();
        if (is_tile && !(value.type == type))
            fail(value_span, what + " is " + describe(value) + ", expected " + type.python_name());
        ir::Value* const source = is_tile ? values_.materialize(value, value_span) : converted(type.element());
        const auto element = [&](const std::vector<ir::Value*>& at) {
            return is_tile ? builder_.extract_at(source, {ir::flat_index(builder_, type.shape(), at)}) : source;
        };
        if (is_whole(*place.tile, root->type, type)) {
            changed =
                is_tile ? source : ir::build_flat_tile(builder_, type.shape(), [&](ir::Value*) { return source; });
        } else {
            changed = scattered(root, *place.tile, type.shape(), element);
        }
    }
    locals_.assign(place.name, Value::runtime(changed), place.span);
}

// The tile with the elements of a view replaced.
ir::Value* FunctionAnalyzer::scattered(ir::Value* root, const TileView& view, const ir::Extents& shape,
                                       const std::function<ir::Value*(const std::vector<ir::Value*>&)>& element) {
    std::vector<ir::Value*> at;
    const std::function<ir::Value*(std::size_t, ir::Value*)> along = [&](std::size_t axis,
                                                                         ir::Value* tile) -> ir::Value* {
        if (axis == shape.size()) {
            ir::Value* const replaced = element(at);
            return builder_.insert_at(tile, replaced, {number_in(builder_, view, at)});
        }
        const auto inside = [&](ir::Value* k, ir::Value* carried) {
            at.push_back(k);
            ir::Value* const result = along(axis + 1, carried);
            at.pop_back();
            return result;
        };
        if (shape[axis] == 1) return inside(builder_.integer(0), tile);
        return ir::build_for(builder_, builder_.integer(0), builder_.integer(shape[axis]), builder_.integer(1), {tile},
                             [&](ir::Value* k, const std::vector<ir::Value*>& carried) {
                                 return std::vector<ir::Value*>{inside(k, carried[0])};
                             })[0];
    };
    return along(0, root);
}

// A function gets a copy of each tile and gives back those that it changes: two that share elements would differ.
void FunctionAnalyzer::check_apart(const BoundCall& call, std::size_t changed) const {
    const auto& to = call.tiles[changed];
    if (!to) return;
    const auto elements = [](const AssignmentTarget& target) {
        std::set<std::int64_t> found;
        const ir::Extents& shape = target.type.shape();
        for (std::int64_t k = 0; k < target.type.size(); ++k) {
            std::int64_t rest = k, at = target.tile->base;
            for (std::size_t axis = shape.size(); axis-- > 0; rest /= shape[axis])
                at += rest % shape[axis] * target.tile->strides[axis];
            found.insert(at);
        }
        return found;
    };
    for (std::size_t i = 0; i < call.tiles.size(); ++i) {
        const auto& other = call.tiles[i];
        if (i == changed || !other || other->name != to->name) continue;
        const bool is_fixed = !to->tile->offset && !other->tile->offset;
        const std::set<std::int64_t> own = is_fixed ? elements(*to) : std::set<std::int64_t>();
        const std::set<std::int64_t> theirs = is_fixed ? elements(*other) : std::set<std::int64_t>();
        const auto is_shared = [&](std::int64_t at) { return theirs.contains(at); };
        if (is_fixed && std::none_of(own.begin(), own.end(), is_shared)) continue;
        const auto& parameters = call.callee->tree->parameters;
        fail(call.places[changed],
             "'" + call.callee->tree->name + "' changes its parameter '" + parameters[changed].name +
                 "', which may share elements with '" + parameters[i].name + "' here",
             {help("pass a copy of one of them: u = t")});
    }
}

}  // namespace weft::sema
