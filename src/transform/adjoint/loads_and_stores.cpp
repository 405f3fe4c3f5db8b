// Loads, stores and atomics.
//
// The gradient of an element is the sum over all of its readers. If no other thread can reach the element, the addition
// is plain; otherwise it is atomic.
#include <algorithm>
#include <array>
#include <optional>

#include "ir/component_loops.h"
#include "ir/origins.h"
#include "ir/typing.h"
#include "support/error.h"
#include "transform/adjoint/atomic_results.h"
#include "transform/adjoint/derivative.h"
#include "transform/adjoint/reverse.h"
#include "transform/analysis/underlying_memory.h"

namespace weft::transform {

using ir::Op;
using ir::Operation;
using ir::Region;
using ir::Value;

std::string Reverser::name_of(const Value& array) const {
    const Value* root = ir::root_of(&array);
    return root->name.empty() ? "" : "'" + root->name + "'";
}

std::vector<Value*> Reverser::indices_of(const Operation& operation) const {
    std::vector<Value*> indices;
    const int ndim = operation.operands[0]->type.ndim();
    for (int i = 1; i <= ndim; ++i) indices.push_back(copy(operation.operands[static_cast<std::size_t>(i)]));
    return indices;
}

// ---- which arrays have gradients ----

Gradient Reverser::gradient_of(const Value* array) const {
    if (!ir::is_smooth(array->type.element())) return Gradient::none;
    const Value* root = ir::root_of(array);
    if (root->definition) {
        switch (root->definition->op) {
            case Op::null:
            case Op::array_at:
            case Op::stack:
                return Gradient::none;
            default:
                return Gradient::used;
        }
    }
    if (const ir::ImplicitParameter* implicit = source_.implicit(root))
        return implicit->kind == ir::ImplicitParameter::Kind::number ? Gradient::used : Gradient::none;
    if (root->region == &source_.body && root->type.is_array())
        return options_.gradients[static_cast<std::size_t>(root->index)];
    return Gradient::used;
}

bool Reverser::has_gradient(const Value* array) const { return gradient_of(array) != Gradient::none; }

// Gradients of parameters are known; for arrays from memory or a struct only the launch knows.
bool Reverser::may_lack_gradient(const Value* array) const {
    const Value* root = ir::root_of(array);
    return !source_.is_kernel || root->definition || root->region != &source_.body || !root->type.is_array();
}

bool Reverser::writes_gradients(const Operation& operation) const {
    for (const Region* region : operation.regions)
        for (const Operation* inner : region->operations)
            if ((ir::writes(inner->op) && has_gradient(inner->operands[0])) || passes_gradients(*inner) ||
                writes_gradients(*inner))
                return true;
    return false;
}

// ---- elements that belong to one thread ----

// The positions of the thread's coordinates among the indices of an access, if all of them are there. The element is
// then the thread's own, provided that all accesses to the array have the coordinates at the same positions.
std::optional<Reverser::CoordinatePositions> Reverser::coordinate_positions(const Operation& access) const {
    if (!memory_of(source_, access.operands[0]).is_known()) return std::nullopt;
    const std::vector<const Value*> indices = indices_from_start(access);
    CoordinatePositions positions;
    positions.fill(-1);
    for (std::size_t i = 0; i < indices.size(); ++i) {
        const Operation* index = indices[i]->definition;
        if (!index || index->op != Op::tid) continue;
        int& axis = positions[static_cast<std::size_t>(index->ints[0])];
        if (axis < 0) axis = static_cast<int>(i);
    }
    if (source_.tid_rank == 0) return std::nullopt;
    for (int axis = 0; axis < source_.tid_rank; ++axis)
        if (positions[static_cast<std::size_t>(axis)] < 0) return std::nullopt;
    return positions;
}

void Reverser::find_uncontended_accesses() {
    bool any_unknown = false;
    ir::for_each_operation(source_.body, [&](const Operation& operation) {
        if (operation.op == Op::call) {
            // The gradient of a function may add to any element.
            for (const Value* operand : operation.operands)
                if (ir::holds_array(operand->type)) uncontended_[ir::root_of(operand)].reset();
            return;
        }
        if (operation.op != Op::load && operation.op != Op::loaded && !ir::writes(operation.op)) return;
        if (!has_gradient(operation.operands[0])) return;
        const Value* root = ir::root_of(operation.operands[0]);
        if (root->definition && root->definition->op == Op::local_array) {
            uncontended_[root] = CoordinatePositions{};
            return;
        }
        any_unknown |= root->definition != nullptr || root->region != &source_.body;
        const std::optional<CoordinatePositions> positions = coordinate_positions(operation);
        const auto [at, fresh] = uncontended_.try_emplace(root, positions);
        if (!fresh && at->second != positions) at->second.reset();
    });
    if (any_unknown || !options_.noalias || !source_.is_kernel)
        std::erase_if(uncontended_, [](const auto& entry) { return entry.first->definition == nullptr; });
}

bool Reverser::is_uncontended(const Operation& access) const {
    const auto found = uncontended_.find(ir::root_of(access.operands[0]));
    return found != uncontended_.end() && found->second.has_value();
}

// ---- reverse ----

namespace {

bool is_zero(const Value* value) {
    const Operation* made = value->definition;
    const auto is_none = [](const Number& number) { return number.i == 0 && number.f == 0.0; };
    return made && made->op == Op::constant && std::ranges::all_of(made->numbers, is_none);
}

// A branch, and the direction of it in which a value may differ from zero.
struct Way {
    const Value* condition = nullptr;
    bool holds = true;
    bool operator==(const Way&) const = default;
};

// The branch that a contribution depends on: it is zero if the branch goes the other way. Searches at most `steps`
// deep.
std::optional<Way> way_to(const Value* value, int steps = 12) {
    const Operation* made = value->definition;
    if (!made || steps == 0) return {};
    // Of a sum, a vector or a struct: the branch that all of its nonzero parts depend on.
    const auto common = [&]() -> std::optional<Way> {
        std::optional<Way> all;
        for (const Value* operand : made->operands) {
            if (is_zero(operand)) continue;
            const std::optional<Way> one = way_to(operand, steps - 1);
            if (!one || (all && !(*all == *one))) return {};
            all = one;
        }
        return all;
    };
    const auto between = [&](const Value* first, const Value* second) -> std::optional<Way> {
        if (is_zero(first) == is_zero(second)) return {};
        return Way{made->operands[0], !is_zero(first)};
    };
    switch (made->op) {
        case Op::if_: {
            const auto which = static_cast<std::size_t>(value->index);
            return between(made->body(0).terminator()->operands[which], made->body(1).terminator()->operands[which]);
        }
        case Op::select:
            return between(made->operands[1], made->operands[2]);
        case Op::neg:
        case Op::extract:
        case Op::splat:
        case Op::cast:
        case Op::div:
            return way_to(made->operands[0], steps - 1);
        case Op::mul:
            if (const auto first = way_to(made->operands[0], steps - 1)) return first;
            return way_to(made->operands[1], steps - 1);
        case Op::add:
        case Op::sub:
        case Op::insert:
        case Op::make:
            return common();
        default:
            return {};
    }
}

}  // namespace

void Reverser::add_to_gradient(Value* gradient, const std::vector<Value*>& indices, Value* d, bool is_uncontended) {
    if (d->type.is_struct()) {
        const auto& fields = d->type.fields();
        for (std::size_t i = 0; i < fields.size(); ++i) {
            if (!ir::is_smooth(fields[i].type)) continue;
            add_to_gradient(b_.member(gradient, static_cast<int>(i)), indices,
                            b_.extract(d, {static_cast<std::int64_t>(i)}), is_uncontended);
        }
    } else if (is_uncontended) {
        b_.store(gradient, indices, b_.binary(Op::add, b_.load(gradient, indices), d));
    } else if (const std::optional<Way> way = way_to(d)) {
        // A condition on neighbours lets few of them through, and an atomic costs more than a branch.
        Operation* made = b_.if_(const_cast<Value*>(way->condition), {});
        for (const bool arm : {true, false}) {
            ir::Builder::Inside inside(b_, made->body(arm ? 0 : 1));
            if (arm == way->holds) b_.atomic(Op::atomic_add, gradient, indices, {d});
            b_.yield({});
        }
    } else {
        b_.atomic(Op::atomic_add, gradient, indices, {d});
    }
}

// Runs `body`, which gives values of these types, if the array has a gradient; gives zeros otherwise.
std::vector<Value*> Reverser::where_it_has_one(const Value* array, const std::vector<Type>& types,
                                               const std::function<std::vector<Value*>(Value* gradient)>& body) {
    // A local array is made anew in the backward pass, and its copy holds the gradient.
    const Value* root = ir::root_of(array);
    if (root->definition && root->definition->op == Op::local_array) return body(copy(array));
    Value* gradient = b_.grad_of(copy(array));
    if (!may_lack_gradient(array)) return body(gradient);
    Operation* made = b_.if_(b_.is_null(gradient), types);
    {
        ir::Builder::Inside inside(b_, made->body(0));
        std::vector<Value*> zeros;
        for (const Type type : types) zeros.push_back(b_.zero(type));
        b_.yield(std::move(zeros));
    }
    ir::Builder::Inside inside(b_, made->body(1));
    b_.yield(body(gradient));
    return made->results;
}

void Reverser::reverse_load(const Operation& operation, Value* d) {
    const Value* array = operation.operands[0];
    if (!has_gradient(array)) return;
    where_it_has_one(array, {}, [&](Value* gradient) -> std::vector<Value*> {
        add_to_gradient(gradient, indices_of(operation), d, is_uncontended(operation));
        return {};
    });
}

void Reverser::reverse_store(const Operation& operation) {
    const Value *array = operation.operands[0], *value = operation.operands.back();
    const Gradient kind = gradient_of(array);
    if (kind == Gradient::none) return;
    const std::vector<Value*> taken = where_it_has_one(array, {value->type}, [&](Value* gradient) {
        const std::vector<Value*> indices = indices_of(operation);
        Value* d = b_.load(gradient, indices);
        if (kind != Gradient::retained) b_.store(gradient, indices, b_.zero(value->type));
        return std::vector<Value*>{d};
    });
    accumulate(value, taken[0]);
}

void Reverser::reverse_atomic(const Operation& operation) {
    const Value *array = operation.operands[0], *value = operation.operands.back();
    if (!has_gradient(array)) return;
    if (offer_of(operation)) return reverse_extreme(operation);
    if (operation.op != Op::atomic_add && operation.op != Op::atomic_sub) {
        fail(operation, "it depends on which thread gave the value that " + name_of(*array) + " ends up with");
    }
    if (!is_active(value)) return;
    const std::vector<Value*> read = where_it_has_one(array, {value->type}, [&](Value* gradient) {
        return std::vector<Value*>{b_.load(gradient, indices_of(operation))};
    });
    accumulate(value, operation.op == Op::atomic_add ? read[0] : b_.unary(Op::neg, read[0]));
}

// The gradient of a minimum or maximum goes to the thread whose operand equals the final value. If there are several,
// the first one in the backward pass takes it. If the array had that value before, it keeps the gradient.
void Reverser::reverse_extreme(const Operation& operation) {
    const Value *array = operation.operands[0], *value = operation.operands.back();
    if (!is_active(value)) return;
    ir::for_each_operation(source_.body, [&](const Operation& other) {
        if (&other == &operation || !ir::writes(other.op)) return;
        if (ir::origin_of(other.operands[0]) == ir::origin_of(array) && other.op != operation.op)
            fail(other, "it writes " + name_of(*array) + ", of which another atomic makes an extreme");
    });
    Value* offered = copy(offer_of(operation));
    const Type type = value->type;
    const std::vector<Value*> taken = where_it_has_one(array, {type}, [&](Value* gradient) {
        std::vector<Value*> indices = indices_of(operation);
        Value *before = b_.load(copy(array), indices), *after = b_.load(as_after(operation, array), indices);
        const bool keeps = gradient_of(array) == Gradient::retained;
        const auto take = [&](Value* from, const std::vector<Value*>& at, Value* o, Value* b, Value* a) {
            Value* is_mine = b_.binary(Op::and_, b_.compare(Op::cmp_eq, o, a), b_.compare(Op::cmp_ne, b, a));
            Operation* made = b_.if_(is_mine, {o->type});
            {
                ir::Builder::Inside inside(b_, made->body(0));
                b_.yield({keeps ? b_.load(from, at) : b_.atomic(Op::atomic_exch, from, at, {b_.zero(o->type)})});
            }
            ir::Builder::Inside inside(b_, made->body(1));
            b_.yield({b_.zero(o->type)});
            return made->result();
        };
        if (type.is_scalar()) return std::vector<Value*>{take(gradient, indices, offered, before, after)};
        Value* components = b_.components(gradient);
        if (type.components() > ir::kMostUnrolled) {
            const auto step = [&](const std::vector<Value*>& carried, const std::vector<Value*>& at) {
                std::vector<Value*> place = indices;
                place.insert(place.end(), at.begin(), at.end());
                Value* part = take(components, place, b_.extract_at(offered, at), b_.extract_at(before, at),
                                   b_.extract_at(after, at));
                return std::vector<Value*>{b_.insert_at(carried[0], part, at)};
            };
            return ir::over_components(b_, type, {b_.zero(type)}, step);
        }
        std::vector<Value*> parts;
        for (std::int64_t i = 0; i < type.components(); ++i) {
            std::vector<std::int64_t> path{i};
            if (type.is_matrix()) path = {i / type.cols(), i % type.cols()};
            std::vector<Value*> at = indices;
            for (const std::int64_t step : path) at.push_back(b_.integer(step));
            parts.push_back(
                take(components, at, b_.extract(offered, path), b_.extract(before, path), b_.extract(after, path)));
        }
        return std::vector<Value*>{b_.make(type, std::move(parts))};
    });
    accumulate(value, taken[0]);
}

// Whether the array is the descriptor of an object, not an array that the descriptor leads to.
static bool shows_descriptor(const Value* array) {
    const Operation* made = ir::root_of(array)->definition;
    return made && made->op == Op::array_at;
}

std::vector<Contents> contents_read(const ir::Function& adjoint) {
    const std::size_t own = adjoint.parameters().size() - adjoint.implicit_parameters.size();
    std::vector<Contents> read(own);
    const auto mark = [&](const Value* parameter) {
        const ir::ImplicitParameter* implicit = adjoint.implicit(parameter);
        using Kind = ir::ImplicitParameter::Kind;
        if (implicit && (implicit->is_returned() || implicit->is_for_order() || implicit->kind == Kind::number)) return;
        // A copy holds the contents before the launch.
        Contents& of = read[static_cast<std::size_t>(implicit ? implicit->of : parameter->index)];
        (implicit && implicit->kind == Kind::after ? of.after : of.before) = true;
    };
    const auto mark_object = [&](const Operation& object) {
        const std::set<std::size_t> named = ir::parameters_behind(adjoint, *object.operands[0]);
        for (std::size_t i = 0; i < own; ++i)
            if (named.empty() || named.contains(i)) read[i].within = true;
    };
    const auto mark_objects = [&] {
        ir::for_each_operation(adjoint.body, [&](const Operation& operation) {
            if (operation.op == Op::object) mark_object(operation);
        });
    };
    const ir::Origins origins(adjoint);
    ir::for_each_operation(adjoint.body, [&](const Operation& operation) {
        // The IR does not say which objects a library function reads.
        if (operation.op == Op::call_library && operation.library->reaches_memory()) mark_objects();
        if (operation.op != Op::load || ir::gradient_holding(operation.operands[0])) return;
        const Value* origin = ir::origin_of(operation.operands[0]);
        if (ir::is_parameter(adjoint, origin)) return mark(origin);
        if (const Operation* object = object_behind(operation.operands[0])) {
            if (!shows_descriptor(operation.operands[0])) mark_object(*object);
            return;
        }
        mark_objects();
        // The array was chosen at run time.
        origins.for_each(*origin, [&](std::size_t parameter) { mark(adjoint.parameters()[parameter]); });
        // An array from memory may lead anywhere except to parameters that are arrays.
        for (const Value* parameter : adjoint.parameters()) {
            const Type type = parameter->type;
            if (!ir::holds_array(type.is_array() ? type.element() : type)) continue;
            if (!type.is_array()) mark(parameter);
            if (!adjoint.implicit(parameter)) read[static_cast<std::size_t>(parameter->index)].within = true;
        }
    });
    return read;
}

}  // namespace weft::transform
