#include "transform/jvp/jvp.h"

#include <algorithm>

#include "ir/builder.h"
#include "ir/typing.h"
#include "ir/walk.h"
#include "support/error.h"
#include "transform/adjoint/derivative.h"
#include "transform/adjoint/stale.h"

namespace weft::transform {
namespace {

using ir::Op;
using ir::Operation;
using ir::Region;
using ir::Value;

// Whether values of this type have a tangent: floats, and the ways to them.
bool has_tangent(Type type) {
    if (type.is_array()) return has_tangent(type.element());
    return is_smooth(type) || (ir::holds_array(type) && !type.is_array());
}

class Forward {
public:
    Forward(const ir::Function& source, const JvpOptions& options)
        : source_(source),
          options_(options),
          made_(std::make_unique<ir::Function>()),
          b_(*made_, made_->body),
          map_(source),
          tangents_(source) {
        made_->name = source.name;
        made_->is_kernel = true;
        made_->tid_rank = source.tid_rank;
        made_->span = source.span;
        if (!source.copies.empty()) {
            throw CompileError(source.span, "kernel '" + source.name +
                                                "' has no second derivative here: it reads what "
                                                "it may have written itself");
        }
        WEFT_CHECK(options.active.size() == source.parameters().size(), "jvp() takes one flag for each parameter");
    }

    std::unique_ptr<ir::Function> run() {
        for (const Value* parameter : source_.parameters())
            map_.set(parameter, made_->add_argument(&made_->body, parameter->type, parameter->name));
        for (std::size_t i = 0; i < source_.parameters().size(); ++i) {
            const Value* parameter = source_.parameters()[i];
            Value* twin = made_->add_argument(&made_->body, parameter->type, parameter->name);
            if (options_.active[i] && has_tangent(parameter->type)) tangents_.set(parameter, twin);
        }
        region(source_.body);
        b_.return_({});
        return std::move(made_);
    }

private:
    [[noreturn]] void fail(const Operation& operation, const std::string& what) const {
        throw CompileError(operation.span, "kernel '" + source_.name + "' has no tangent: " + what);
    }

    Value* copy(const Value* value) const { return map_[const_cast<Value*>(value)]; }
    std::vector<Value*> copies(const std::vector<Value*>& values) const {
        std::vector<Value*> result;
        for (const Value* value : values) result.push_back(copy(value));
        return result;
    }
    // Null: zero.
    Value* tangent(const Value* value) const { return tangents_.find(value); }
    Value* tangent_or_zero(const Value* value) {
        Value* found = tangent(value);
        return found ? found : zero(value->type);
    }
    Value* zero(Type type) {
        if (type.is_array()) return b_.null(type);
        if (!type.is_struct() && !type.is(Kind::tuple)) return b_.zero(type);
        std::vector<Value*> parts;
        if (type.is_struct())
            for (const Type::Field& field : type.fields()) parts.push_back(zero(field.type));
        else
            for (const Type element : type.elements()) parts.push_back(zero(element));
        return b_.make(type, std::move(parts));
    }
    void set_tangent(const Value* value, Value* tangent) {
        if (tangent && has_tangent(value->type)) tangents_.set(value, tangent);
    }
    bool any_tangent(const Operation& operation) const {
        return std::any_of(operation.operands.begin(), operation.operands.end(),
                           [&](const Value* operand) { return tangent(operand) != nullptr; });
    }

    Operation* append_copy(const Operation& operation) {
        Operation* made = ir::clone(*made_, operation, map_);
        made->inlined = nullptr;
        made->parent = &b_.region();
        b_.region().operations.push_back(made);
        return made;
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
        WEFT_CHECK(operation.op != Op::call, "jvp: calls must be inlined");
        // Builtins whose first derivative is a closed form take the bits of what counts as constant there.
        if (options_.of_adjoint && operation.op == Op::bitcast && tangent(operation.operands[0]))
            fail(operation, "only the first derivative of this is known");
        append_copy(operation);
        if (writes(operation.op)) return written(operation);
        if (operation.results.size() != 1 || !has_tangent(operation.result()->type)) return;
        set_tangent(operation.result(), derived(operation));
    }

    // ---- values ----

    // The same operation on the tangents: for all that is linear in its operands from `first` to before `last`.
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
            case Op::constant:
            case Op::null:
            case Op::array_at:
            case Op::bitcast:
                return nullptr;
            case Op::local_array:
                return b_.local_array(operation.result()->type, operation.ints);
            case Op::trail:
                return b_.trail(operation.result()->type, copy(operands[0]));
            case Op::load: {
                if (!tangent(operands[0])) return nullptr;
                return same_on_tangents(operation, 0, 1);
            }
            case Op::view:
            case Op::slice:
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
            case Op::matmul: {
                Value *left = tangent(operands[0]), *right = tangent(operands[1]);
                return sum(left ? b_.matmul(left, copy(operands[1])) : nullptr,
                           right ? b_.matmul(copy(operands[0]), right) : nullptr);
            }
            default:
                break;
        }
        const bool by_components = ir::op_class(operation.op) == ir::OpClass::unary ||
                                   ir::op_class(operation.op) == ir::OpClass::binary || operation.op == Op::fma;
        if (!by_components) fail(operation, std::string("there is no rule for '") + ir::op_name(operation.op) + "'");
        const std::vector<Value*> values = copies(operands);
        Value* total = nullptr;
        for (std::size_t i = 0; i < operands.size(); ++i) {
            if (Value* t = tangent(operands[i]))
                total = sum(total, times_partial(b_, operation.op, values, copy(operation.result()), i, t));
        }
        return total;
    }

    Value* sum(Value* a, Value* b) {
        if (!a || !b) return a ? a : b;
        return b_.binary(Op::add, a, b);
    }

    // ---- memory ----

    void written(const Operation& operation) {
        const Value* array = operation.operands[0];
        const Type element = array->type.element();
        if (!operation.results.empty()) map_.set(operation.result(), copy(operation.result()));
        Value* twin = tangent(array);
        if (!twin || !has_tangent(element)) return;
        std::vector<Value*> indices;
        for (int i = 1; i <= array->type.ndim(); ++i)
            indices.push_back(copy(operation.operands[static_cast<std::size_t>(i)]));
        Value* t = tangent_or_zero(operation.operands.back());
        switch (operation.op) {
            case Op::store:
                return b_.store(twin, indices, t);
            case Op::atomic_add:
            case Op::atomic_sub:
                set_tangent(operation.result(), b_.atomic(operation.op, twin, indices, {t}));
                return;
            default:
                fail(operation, "it depends on which thread gave the value that the array ends up with");
        }
    }

    // ---- control ----

    // Carried values, arguments and results come first as they are, then the tangents of those that have one.
    void structured(const Operation& operation) {
        const std::size_t inits = operation.op == Op::for_ ? 3 : 0, arguments = operation.op == Op::for_ ? 1 : 0;
        std::vector<std::size_t> smooth;
        for (std::size_t i = 0; i < operation.results.size(); ++i)
            if (has_tangent(operation.results[i]->type)) smooth.push_back(i);
        // A guard stays last.
        const std::size_t at = operation.results.size() - (operation.guarded ? 1 : 0);
        const auto insert_at = [&](std::vector<Value*>& values, std::size_t offset, const std::vector<Value*>& more) {
            values.insert(values.begin() + static_cast<std::ptrdiff_t>(offset + at), more.begin(), more.end());
        };
        const auto tangents_of = [&](const std::vector<Value*>& values, std::size_t offset) {
            std::vector<Value*> result;
            for (const std::size_t i : smooth) result.push_back(tangent_or_zero(values[offset + i]));
            return result;
        };
        Operation* made = made_->new_operation(operation.op, operation.span);
        made->guarded = operation.guarded;
        made->parent = &b_.region();
        made->operands = copies(operation.operands);
        if (operation.op != Op::if_) insert_at(made->operands, inits, tangents_of(operation.operands, inits));
        for (std::size_t r = 0; r < operation.regions.size(); ++r) {
            const Region& from = operation.body(r);
            Region* to = made_->new_region(made);
            const auto add_tangents = [&] {
                for (const std::size_t i : smooth) {
                    const Value* argument = from.arguments[arguments + i];
                    tangents_.set(argument, made_->add_argument(to, argument->type));
                }
            };
            const bool carries = operation.op != Op::if_;
            for (std::size_t i = 0; i < from.arguments.size(); ++i) {
                if (carries && i == arguments + at) add_tangents();
                map_.set(from.arguments[i], made_->add_argument(to, from.arguments[i]->type, from.arguments[i]->name));
            }
            if (carries && from.arguments.size() == arguments + at) add_tangents();
            ir::Builder::Inside inside(b_, *to);
            region(from);
            const std::vector<Value*>& yielded = from.terminator()->operands;
            std::vector<Value*> yields = copies(yielded);
            if (operation.op != Op::while_ || r == 1) insert_at(yields, 0, tangents_of(yielded, 0));
            b_.yield(std::move(yields));
        }
        for (std::size_t i = 0; i <= operation.results.size(); ++i) {
            if (i == at) {
                for (const std::size_t k : smooth)
                    tangents_.set(operation.results[k], made_->add_result(made, operation.results[k]->type));
            }
            if (i == operation.results.size()) break;
            const Value* result = operation.results[i];
            map_.set(result, made_->add_result(made, result->type, result->name));
        }
        b_.region().operations.push_back(made);
    }

    const ir::Function& source_;
    const JvpOptions& options_;
    std::unique_ptr<ir::Function> made_;
    ir::Builder b_;
    ir::ValueMap map_, tangents_;
};

}  // namespace

std::unique_ptr<ir::Function> jvp(const ir::Function& kernel, const JvpOptions& options) {
    return Forward(kernel, options).run();
}

}  // namespace weft::transform
