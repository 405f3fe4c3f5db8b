#include "transform/jvp/jvp.h"

#include <algorithm>
#include <unordered_set>

#include "ir/copier.h"
#include "ir/typing.h"
#include "support/error.h"
#include "transform/adjoint/derivative.h"
#include "transform/analysis/lost_views.h"
#include "types/objects.h"
#include "types/tree_of_mesh.h"

namespace weft::transform {
namespace {

using ir::Op;
using ir::Operation;
using ir::Region;
using ir::Value;

// Whether values of this type have a tangent: floats, and arrays or structs that lead to them.
bool has_tangent(Type type) {
    if (type.is_array()) return has_tangent(type.element());
    return ir::is_smooth(type) || (ir::holds_array(type) && !type.is_array());
}

class Forward : ir::Copier {
public:
    Forward(const ir::Function& source, const JvpOptions& options)
        : Copier(source), options_(options), tangents_(source) {
        WEFT_CHECK(options.active.size() + source.implicit_parameters.size() == source.parameters().size(),
                   "jvp() takes one flag for each parameter");
    }

    std::unique_ptr<ir::Function> run() {
        const std::vector<Value*>& parameters = source_.parameters();
        const std::size_t own = options_.active.size();
        const auto append_tangent_array = [&](const Value* parameter, bool is_active) {
            Value* tangent_array = made_->add_argument(&made_->body, parameter->type, parameter->name);
            if (is_active && has_tangent(parameter->type)) tangents_.set(parameter, tangent_array);
        };
        for (std::size_t i = 0; i < own; ++i) append_parameter(parameters[i]);
        for (std::size_t i = 0; i < own; ++i) append_tangent_array(parameters[i], options_.active[i]);
        refuse_lost_views(source_, [](const Value* array) { return ir::is_smooth(array->type.element()); });
        made_->implicit_parameters = source_.implicit_parameters;
        for (std::size_t i = own; i < parameters.size(); ++i) append_parameter(parameters[i]);
        // Recorded results of atomics have no tangent (adjoint/atomic_results.h). The tangent array of a copy is a copy
        // of the tangent array.
        for (std::size_t i = own; i < parameters.size(); ++i) {
            const ir::ImplicitParameter& implicit = source_.implicit_parameters[i - own];
            if (implicit.is_returned()) continue;
            append_tangent_array(parameters[i], options_.active[static_cast<std::size_t>(implicit.of)]);
            made_->implicit_parameters.push_back({implicit.kind, implicit.of + static_cast<int>(own)});
        }
        region(source_.body);
        b_.return_({});
        return std::move(made_);
    }

private:
    [[noreturn]] void fail(const Operation& operation, const std::string& what) const {
        throw CompileError(operation.span, "kernel '" + source_.name + "' has no tangent: " + what);
    }

    // Null stands for zero.
    Value* tangent(const Value* value) const { return tangents_.find(value); }
    Value* tangent_or_zero(const Value* value) {
        Value* found = tangent(value);
        return found ? found : b_.zero(value->type);
    }
    void set_tangent(const Value* value, Value* tangent) {
        if (tangent && has_tangent(value->type)) tangents_.set(value, tangent);
    }
    bool any_tangent(const Operation& operation) const {
        return std::any_of(operation.operands.begin(), operation.operands.end(),
                           [&](const Value* operand) { return tangent(operand) != nullptr; });
    }

    void region(const Region& region) {
        for (const Operation* operation : region.operations) {
            if (operation->op == Op::yield || operation->op == Op::return_) continue;
            b_.span = operation->span;
            visit(*operation);
        }
    }

    void visit(const Operation& operation) {
        if (!operation.regions.empty()) return structured(operation);
        if (operation.op == Op::call) return call(operation);
        append_copy(operation);
        if (operation.op == Op::array_at) return set_tangent(operation.result(), of_descriptor(operation));
        if (ir::writes(operation.op)) return written(operation);
        if (operation.results.size() != 1 || !has_tangent(operation.result()->type)) return;
        set_tangent(operation.result(), derived(operation));
    }

    // ---- values ----

    // The same operation on tangents, for operations that are linear in the operands from `first` to before `last`.
    Value* same_on_tangents(const Operation& operation, std::size_t first = 0,
                            std::size_t last = static_cast<std::size_t>(-1)) {
        Operation* made = made_->new_operation(operation.op, operation.span);
        for (std::size_t i = 0; i < operation.operands.size(); ++i) {
            const Value* operand = operation.operands[i];
            made->operands.push_back(i >= first && i < last ? tangent_or_zero(operand) : copy(operand));
        }
        made->ints = operation.ints;
        made->parent = &b_.region();
        b_.region().operations.push_back(made);
        return made_->add_result(made, operation.result()->type);
    }

    Value* derived(const Operation& operation) {
        const auto& operands = operation.operands;
        switch (operation.op) {
#define WEFT_DERIVATIVE_none(id) case Op::id:
#include "ir/ops.def"
            return nullptr;
#define WEFT_DERIVATIVE_partial(id) case Op::id:
#include "ir/ops.def"
            return by_partials(operation);
            case Op::detach_reverse:
                return tangent(operands[0]);
            case Op::local_array:
                return b_.local_array(operation.result()->type, operation.ints);
            case Op::stack: {
                Value* least = operands.size() > 1 ? copy(operands[1]) : nullptr;
                Value* tangent_array = b_.stack(operation.result()->type, copy(operands[0]));
                if (least) tangent_array->definition->operands.push_back(least);
                return tangent_array;
            }
            case Op::load:
                if (!tangent(operands[0])) return nullptr;
                // Of the fields of a descriptor only arrays have tangents, and these may be null.
                if (descriptors_.contains(ir::root_of(operands[0])))
                    return operation.result()->type.is_array() ? same_on_tangents(operation, 0, 1) : nullptr;
                return where_there(operands[0], operation.result()->type,
                                   [&] { return same_on_tangents(operation, 0, 1); });
            case Op::view:
            case Op::slice:
            case Op::overlay:
                return tangent(operands[0]) ? same_on_tangents(operation, 0, 1) : nullptr;
            case Op::select:
                return any_tangent(operation) ? same_on_tangents(operation, 1) : nullptr;
            case Op::cast:
                if (!tangent(operands[0])) return nullptr;
                return b_.cast(tangent(operands[0]), operation.result()->type.scalar());
            case Op::extract_at:
                return tangent(operands[0]) ? same_on_tangents(operation, 0, 1) : nullptr;
            case Op::insert_at:
                return any_tangent(operation) ? same_on_tangents(operation, 0, 2) : nullptr;
            case Op::components:
            case Op::member:
            case Op::grad_of:
            case Op::make:
            case Op::splat:
            case Op::extract:
            case Op::insert:
            case Op::reduce_add:
            case Op::transpose:
                return any_tangent(operation) ? same_on_tangents(operation) : nullptr;
            case Op::call_library:
                return any_tangent(operation) ? of_library(operation) : nullptr;
            case Op::matmul: {
                Value *left = tangent(operands[0]), *right = tangent(operands[1]);
                return total(left ? b_.matmul(left, copy(operands[1])) : nullptr,
                             right ? b_.matmul(copy(operands[0]), right) : nullptr);
            }
            case Op::loaded:         // only exists between two passes of reverse mode
            case Op::tile_generate:  // transform/tiles has replaced these
            case Op::tile_each:
            case Op::tile_reduce:
            case Op::tile_matmul:
            case Op::if_:
            case Op::for_:
            case Op::while_:
            case Op::call:
            case Op::store:
#define WEFT_CLASS_atomic(id) case Op::id:
#include "ir/ops.def"
                break;  // visit() handles these
        }
        throw InternalError(std::string("forward mode: no rule for '") + ir::op_name(operation.op) + "'");
    }

    // For the descriptor of a mesh, the descriptor of the mesh's tangents; else null.
    Value* of_descriptor(const Operation& operation) {
        const Operation* object = operation.operands[0]->definition;
        if (!object || object->op != Op::object || object->ints[0] != static_cast<std::int64_t>(ObjectKind::mesh))
            return nullptr;
        Value* id = copy(object->operands[0]);
        Value* bit = b_.constant(id->type, {Number::integer(static_cast<std::int64_t>(kTangentsOfMesh))});
        std::vector<Value*> extents = copies(operation.operands);
        extents.erase(extents.begin());
        descriptors_.insert(operation.result());
        return b_.array_at(operation.result()->type, b_.object(ObjectKind::mesh, b_.binary(Op::or_, id, bit)),
                           std::move(extents));
    }

    Value* by_partials(const Operation& operation) {
        const auto& operands = operation.operands;
        const std::vector<Value*> values = copies(operands);
        Value* result = nullptr;
        for (std::size_t i = 0; i < operands.size(); ++i) {
            if (Value* t = tangent(operands[i]))
                result = total(result, times_partial(b_, operation.op, values, copy(operation.result()), i, t));
        }
        return result;
    }

    Value* of_library(const Operation& operation) {
        const ir::LibraryFunction& function = *operation.library;
        if (!has_tangent(operation.result()->type) || ir::has_constant_result(operation)) return nullptr;
        if (function.tangent.empty())
            fail(operation, "it calls " + ir::named(function) + ", whose derivative is not known");
        std::vector<Value*> arguments = copies(operation.operands);
        for (const Value* operand : operation.operands)
            if (ir::is_smooth(operand->type)) arguments.push_back(tangent_or_zero(operand));
        auto tangent = std::make_shared<ir::LibraryFunction>(function);
        tangent->symbol = function.tangent;
        tangent->adjoint.clear();
        tangent->tangent.clear();
        return b_.call_library(std::move(tangent), operation.result()->type, std::move(arguments));
    }

    Value* total(Value* a, Value* b) {
        if (!a || !b) return a ? a : b;
        return sum(b_, a, b);
    }

    // For a function with custom derivatives, the gradient is called once for each component of the results.
    void call(const Operation& operation) {
        append_copy(operation);
        const std::vector<Value*> values = copies(operation.operands);
        for (const Value* operand : operation.operands)
            if (ir::holds_array(operand->type) && tangent(operand))
                fail(operation, "it passes an array with tangents to a function with a derivative of its own");
        if (operation.results.empty() || !any_tangent(operation) || !has_tangent(operation.result()->type)) return;
        const Type type = operation.result()->type;
        if (!type.is_tuple()) return set_tangent(operation.result(), returned_tangent(operation, values, {type}, 0));
        const std::vector<Type> types(type.elements().begin(), type.elements().end());
        std::vector<Value*> parts;
        for (std::size_t i = 0; i < types.size(); ++i)
            parts.push_back(ir::is_smooth(types[i]) ? returned_tangent(operation, values, types, i)
                                                    : b_.zero(types[i]));
        set_tangent(operation.result(), b_.make(type, std::move(parts)));
    }

    Value* returned_tangent(const Operation& operation, const std::vector<Value*>& values,
                            const std::vector<Type>& types, std::size_t which) {
        const Type type = types[which];
        if (type.is_struct()) fail(operation, "it calls a function with a derivative of its own that returns a struct");
        ir::Function& gradient = *operation.function->gradient;
        const auto component = [&](std::int64_t at) {
            std::vector<Value*> arguments = values;
            for (std::size_t i = 0; i < types.size(); ++i) {
                if (i != which || type.is_scalar()) {
                    arguments.push_back(i == which ? b_.one(type) : b_.zero(types[i]));
                    continue;
                }
                std::vector<Number> unit(static_cast<std::size_t>(type.components()), Number::real(0.0));
                unit[static_cast<std::size_t>(at)] = Number::real(1.0);
                arguments.push_back(b_.constant(type, std::move(unit)));
            }
            Value* adjoints = b_.call(&gradient, std::move(arguments));
            Value* result = nullptr;
            std::int64_t next = 0;
            for (const Value* operand : operation.operands) {
                if (!ir::is_smooth(operand->type)) continue;
                Value* by = gradient.result.is_tuple() ? b_.extract(adjoints, {next}) : adjoints;
                ++next;
                Value* t = tangent(operand);
                if (!t) continue;
                if (operand->type.is_struct()) fail(operation, "it passes a struct with tangents to such a function");
                Value* product = b_.binary(Op::mul, by, t);
                result = total(result, operand->type.is_scalar() ? product : b_.reduce_add(product));
            }
            return result ? result : b_.zero(Type::scalar(type.scalar()));
        };
        if (type.is_scalar()) return component(0);
        std::vector<Value*> components;
        for (std::int64_t at = 0; at < type.components(); ++at) components.push_back(component(at));
        return b_.make(type, std::move(components));
    }

    // ---- memory ----

    void written(const Operation& operation) {
        const Value* array = operation.operands[0];
        const Type element = array->type.element();
        if (!operation.results.empty()) map_.set(operation.result(), copy(operation.result()));
        Value* tangent_array = tangent(array);
        if (!tangent_array || !has_tangent(element)) return;
        std::vector<Value*> indices;
        for (int i = 1; i <= array->type.ndim(); ++i)
            indices.push_back(copy(operation.operands[static_cast<std::size_t>(i)]));
        Value* t = tangent_or_zero(operation.operands.back());
        const bool adds = operation.op == Op::atomic_add || operation.op == Op::atomic_sub;
        // The adjoint of a minimum or maximum moves the gradient, and with it the tangent, to the thread that it
        // belongs to.
        const bool takes = options_.of_adjoint && operation.op == Op::atomic_exch;
        if (operation.op == Op::store) {
            where_there(array, {}, [&]() -> Value* {
                b_.store(tangent_array, indices, t);
                return nullptr;
            });
        } else if (adds || takes) {
            set_tangent(operation.result(), where_there(array, element, [&] {
                            return b_.atomic(operation.op, tangent_array, indices, {t});
                        }));
        } else {
            fail(operation, "it depends on which thread gave the value that the array ends up with");
        }
    }

    // The result of `body` if the tangent array of `array` exists, otherwise zero. Tangent arrays of arrays that come
    // from a struct, a branch or memory may be null.
    template <class Body>
    Value* where_there(const Value* array, Type type, const Body& body) {
        const Value* root = ir::root_of(array);
        const bool is_parameter = root->region == &source_.body && root->type.is_array();
        if (ir::is_of_thread(array) || is_parameter) return body();
        Value* tangent_array = tangent(array);
        Value* gradient = ir::gradient_holding(tangent_array);
        Value* whole = gradient ? gradient : const_cast<Value*>(ir::root_of(tangent_array));
        const std::vector<Type> types = type.is_none() ? std::vector<Type>() : std::vector<Type>{type};
        Operation* made = b_.if_(b_.is_null(whole), types);
        const auto yield = [&](Value* value) {
            b_.yield(type.is_none() ? std::vector<Value*>() : std::vector<Value*>{value});
        };
        {
            ir::Builder::Inside inside(b_, made->body(0));
            yield(type.is_none() ? nullptr : b_.zero(type));
        }
        ir::Builder::Inside inside(b_, made->body(1));
        yield(body());
        return type.is_none() ? nullptr : made->result();
    }

    // ---- control ----

    // Tangents are carried behind the values that have one.
    void structured(const Operation& operation) {
        std::vector<std::size_t> smooth;
        for (std::size_t i = 0; i < operation.results.size(); ++i)
            if (has_tangent(operation.results[i]->type)) smooth.push_back(i);
        const auto tangents_of = [&](const std::vector<Value*>& values, std::size_t first) {
            std::vector<Value*> result;
            for (const std::size_t i : smooth) result.push_back(tangent_or_zero(values[first + i]));
            return result;
        };
        const bool is_loop = operation.op != Op::if_;
        const auto fill = [&](const Region& from, const std::vector<Value*>& tangent_arrays) -> std::vector<Value*> {
            for (std::size_t k = 0; k < tangent_arrays.size(); ++k)
                tangents_.set(from.arguments[ir::carried_arguments(operation) + smooth[k]], tangent_arrays[k]);
            region(from);
            const bool is_condition = operation.op == Op::while_ && &from == operation.regions[0];
            return is_condition ? std::vector<Value*>() : tangents_of(from.terminator()->operands, 0);
        };
        const std::vector<Value*> tangent_arrays = append_structured(
            operation,
            is_loop ? tangents_of(operation.operands, ir::carried_operands(operation)) : std::vector<Value*>(), fill);
        for (std::size_t k = 0; k < smooth.size(); ++k) tangents_.set(operation.results[smooth[k]], tangent_arrays[k]);
    }

    const JvpOptions& options_;
    ir::ValueMap tangents_;
    std::unordered_set<const Value*> descriptors_;  // of meshes, in the source
};

}  // namespace

std::unique_ptr<ir::Function> jvp(const ir::Function& kernel, const JvpOptions& options) {
    return Forward(kernel, options).run();
}

}  // namespace weft::transform
