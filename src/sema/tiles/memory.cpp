// Tiles and arrays: loads, stores and atomic additions. Elements outside of the array are zero, or are dropped.
#include <algorithm>

#include "sema/analyzer.h"

namespace weft::sema {

namespace {

using ir::Op;

// The indices of the array, and whether they lie inside: null if that is known.
struct Location {
    std::vector<ir::Value*> indices;
    ir::Value* is_inside;
};

// Writes the access of the elements of a tile at `offset`.
class ArrayAccess {
public:
    ArrayAccess(ir::Builder& builder, ir::Value* array, std::vector<ir::Value*> offset, bool checks, ir::Extents shape)
        : b_(builder), array_(array), offset_(std::move(offset)), checks_(checks), shape_(std::move(shape)) {
        for (int axis = 0; axis < array->type.ndim(); ++axis)
            extents_.push_back(checks_ ? b_.dim(array, axis) : nullptr);
    }
    // Along this axis `positions` gives the index to be added to the offset.
    void along(std::size_t axis, ir::Value* positions) {
        axis_ = axis;
        positions_ = positions;
        if (!extents_[axis]) extents_[axis] = b_.dim(array_, static_cast<int>(axis));
    }

    Location locate(const std::vector<ir::Value*>& at) {
        Location location{{}, nullptr};
        for (std::size_t axis = 0; axis < at.size(); ++axis) {
            const bool is_chosen = positions_ && axis == axis_;
            ir::Value* const step = is_chosen ? b_.extract_at(positions_, {at[axis]}) : at[axis];
            location.indices.push_back(b_.binary(Op::add, offset_[axis], step));
            const auto require = [&](ir::Value* holds) {
                location.is_inside = location.is_inside ? b_.binary(Op::and_, location.is_inside, holds) : holds;
            };
            if (!extents_[axis]) continue;
            require(b_.compare(Op::cmp_ge, location.indices.back(), b_.integer(0)));
            require(b_.compare(Op::cmp_lt, location.indices.back(), extents_[axis]));
        }
        return location;
    }

    // The value of `inside`, or zero outside.
    template <typename Inside>
    ir::Value* guarded(const Location& location, Type type, const Inside& inside) {
        if (!location.is_inside) return inside();
        ir::Operation* const branch = b_.if_(location.is_inside, {type});
        {
            ir::Builder::Inside then(b_, branch->body(0));
            b_.yield({inside()});
        }
        ir::Builder::Inside otherwise(b_, branch->body(1));
        b_.yield({b_.zero(type)});
        return branch->result();
    }
    template <typename Inside>
    void only_inside(const Location& location, const Inside& inside) {
        if (!location.is_inside) return inside();
        ir::Operation* const branch = b_.if_(location.is_inside, {});
        {
            ir::Builder::Inside then(b_, branch->body(0));
            inside();
            b_.yield({});
        }
        ir::Builder::Inside otherwise(b_, branch->body(1));
        b_.yield({});
    }

    ir::Value* load() {
        return ir::build_tile(b_, shape_, [&](const std::vector<ir::Value*>& at) {
            const Location found = locate(at);
            return guarded(found, array_->type.element(), [&] { return b_.load(array_, found.indices); });
        });
    }
    void store(ir::Value* tile) {
        ir::build_each(b_, shape_, [&](const std::vector<ir::Value*>& at) {
            const Location found = locate(at);
            only_inside(found, [&] { b_.store(array_, found.indices, element(tile, at)); });
        });
    }
    // Adds, and gives the old values.
    ir::Value* add(ir::Value* tile) {
        return ir::build_tile(b_, shape_, [&](const std::vector<ir::Value*>& at) {
            const Location found = locate(at);
            const Type type = array_->type.element();
            return guarded(found, type, [&] { return added(array_, type, found.indices, element(tile, at)); });
        });
    }

private:
    ir::Value* element(ir::Value* tile, const std::vector<ir::Value*>& at) {
        return b_.extract_at(tile, {ir::flat_index(b_, shape_, at)});
    }
    // Of structs the fields that have an addition; the others keep their value.
    ir::Value* added(ir::Value* array, Type type, const std::vector<ir::Value*>& indices, ir::Value* value) {
        if (type.is_struct()) {
            std::vector<ir::Value*> fields;
            for (std::size_t i = 0; i < type.fields().size(); ++i) {
                const int field = static_cast<int>(i);
                fields.push_back(added(b_.member(array, field), type.fields()[i].type, indices,
                                       b_.extract(value, {static_cast<std::int64_t>(i)})));
            }
            return b_.make(type, std::move(fields));
        }
        if (type.scalar() == Scalar::boolean || (!info(type.scalar()).is_float() && info(type.scalar()).bits < 32))
            return b_.load(array, indices);
        return b_.atomic(Op::atomic_add, array, indices, {value});
    }

    ir::Builder& b_;
    ir::Value* array_;
    std::vector<ir::Value*> offset_, extents_;
    bool checks_;
    ir::Extents shape_;
    std::size_t axis_ = 0;
    ir::Value* positions_ = nullptr;
};

void check_rank(const TileArguments& call, Type array, const ir::Extents& shape) {
    if (static_cast<int>(shape.size()) == array.ndim()) return;
    call.refuse_all("a tile of shape " + shape_text(shape) + " has " + std::to_string(shape.size()) +
                        (shape.size() == 1 ? " dimension, and " : " dimensions, and ") + array.python_name() + " has " +
                        std::to_string(array.ndim()),
                    {help("index the array first, as in a[i], or reshape the tile")});
}

void check_element(const TileArguments& call, Type array, Type tile) {
    if (tile.element() == array.element()) return;
    call.refuse_all("the elements of the array are " + array.element().python_name() + ", and those of the tile " +
                        tile.element().python_name(),
                    {help("wp.tile_astype(t, a.dtype) converts scalars")}, ErrorCategory::type);
}

}  // namespace

Value FunctionAnalyzer::tile_load(TileArguments& call) {
    call.check_storage();
    call.flag("aligned", false);
    ir::Value* const array = values_.array_of(call.array("a"));
    const ir::Extents shape = call.shape();
    check_rank(call, array->type, shape);
    ArrayAccess access(builder_, array, call.offset(shape.size()),
                       call.flag("bounds_check", true) || module_.options.debug, shape);
    return Value::runtime(access.load());
}

Value FunctionAnalyzer::tile_store(TileArguments& call) {
    call.flag("aligned", false);
    ir::Value* const array = values_.array_of(call.array("a"));
    const Type type = call.tile("t").type;
    check_rank(call, array->type, type.shape());
    check_element(call, array->type, type);
    ArrayAccess access(builder_, array, call.offset(type.shape().size()),
                       call.flag("bounds_check", true) || module_.options.debug, type.shape());
    access.store(call.value("t"));
    return {};
}

Value FunctionAnalyzer::tile_atomic_add(TileArguments& call) {
    ir::Value* const array = values_.array_of(call.array("a"));
    const Type type = call.tile("t").type;
    check_rank(call, array->type, type.shape());
    check_element(call, array->type, type);
    ArrayAccess access(builder_, array, call.offset(type.shape().size()),
                       call.flag("bounds_check", true) || module_.options.debug, type.shape());
    return Value::runtime(access.add(call.value("t")));
}

namespace {

std::size_t indexed_axis(const TileArguments& call, const ir::Extents& shape) {
    const std::int64_t axis = call.axis().value_or(0);
    if (axis < 0 || axis >= static_cast<std::int64_t>(shape.size()))
        call.refuse_value("axis", "0 to " + std::to_string(shape.size() - 1));
    const Type type = call.tile("indices").type;
    if (!(type == Type::tile(i32_type(), {shape[static_cast<std::size_t>(axis)]}))) {
        call.refuse_value("indices", "a tile of " + std::to_string(shape[static_cast<std::size_t>(axis)]) +
                                         " int32 values, one for each position along axis " + std::to_string(axis));
    }
    return static_cast<std::size_t>(axis);
}

ArrayAccess indexed(const TileArguments& call, ir::Builder& builder, ir::Value* array, const ir::Extents& shape) {
    check_rank(call, array->type, shape);
    const std::size_t axis = indexed_axis(call, shape);
    ArrayAccess access(builder, array, call.offset(shape.size()), true, shape);
    access.along(axis, call.value("indices"));
    return access;
}

}  // namespace

Value FunctionAnalyzer::tile_load_indexed(TileArguments& call) {
    call.check_storage();
    return Value::runtime(indexed(call, builder_, values_.array_of(call.array("a")), call.shape()).load());
}

Value FunctionAnalyzer::tile_store_indexed(TileArguments& call) {
    ir::Value* const array = values_.array_of(call.array("a"));
    check_element(call, array->type, call.tile("t").type);
    indexed(call, builder_, array, call.tile("t").type.shape()).store(call.value("t"));
    return {};
}

Value FunctionAnalyzer::tile_atomic_add_indexed(TileArguments& call) {
    ir::Value* const array = values_.array_of(call.array("a"));
    check_element(call, array->type, call.tile("t").type);
    return Value::runtime(indexed(call, builder_, array, call.tile("t").type.shape()).add(call.value("t")));
}

// tile_scatter_add(t, i, ..., value, has_value, atomic) and tile_scatter_masked(t, i, ..., value, has_value).
Value FunctionAnalyzer::tile_scatter(TileArguments& call) {
    const Type type = call.tile("a").type;
    const std::size_t rank = type.shape().size();
    const bool adds = call.name() == "tile_scatter_add";
    std::vector<Actual> rest = call.rest();
    for (const char* parameter : {"i", "j", "k", "l", "value", "has_value", "atomic"})
        if (call.has(parameter)) rest.push_back(call[parameter]);
    if (adds && rest.size() == rank + 3) rest.pop_back();  // atomic: the lanes add one after the other
    if (rest.size() != rank + 2)
        call.refuse_all("takes a tile, " + std::to_string(rank) + (rank == 1 ? " index" : " indices") +
                        ", a value and whether it counts");
    const auto& to = call["a"].place;
    if (!to) call.refuse("a", "a tile in a variable, which the call changes");
    std::vector<ir::Value*> indices;
    for (std::size_t axis = 0; axis < rank; ++axis) {
        std::int64_t fixed = 0;
        ir::Value* const at = tile_position(rest[axis].value, type.shape()[axis], rest[axis].span, fixed);
        indices.push_back(at ? at : builder_.integer(fixed));
    }
    const Actual& given = rest[rank];
    const std::string what = "the value of wp." + call.name() + "()";
    ir::Value* value = values_.materialize(expect(given.value, type.element(), given.span, what), given.span);
    ir::Value* const counts = values_.truth(rest[rank + 1].value, rest[rank + 1].span);
    ir::Value* const number = ir::flat_index(builder_, type.shape(), indices);
    ir::Value* const tile = call.tile("a").ir;
    if (lanes() > 1) {
        ir::Value* const after = scattered_by_lanes(tile, number, value, counts, adds, call.span());
        write_tile(*to, Value::runtime(after), call.span());
        return {};
    }
    ir::Operation* const branch = builder_.if_(counts, {type});
    {
        ir::Builder::Inside then(builder_, branch->body(0));
        if (adds) {
            const Value old = Value::runtime(builder_.extract_at(tile, {number}));
            value = values_.materialize(by_fields(syntax::BinaryOperator::add, old, Value::runtime(value), call.span(),
                                                  call.span(), given.span),
                                        call.span());
        }
        builder_.yield({builder_.insert_at(tile, value, {number})});
    }
    {
        ir::Builder::Inside otherwise(builder_, branch->body(1));
        builder_.yield({tile});
    }
    write_tile(*to, Value::runtime(branch->result()), call.span());
    return {};
}

}  // namespace weft::sema
