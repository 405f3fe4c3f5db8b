#include "transform/adjoint/reverse.h"

#include <algorithm>

#include "ir/typing.h"
#include "ir/unroll_limit.h"
#include "support/error.h"
#include "transform/adjoint/atomic_results.h"
#include "transform/adjoint/derivative.h"
#include "transform/analysis/lost_views.h"

namespace weft::transform {

using ir::Op;
using ir::Operation;
using ir::Region;
using ir::Value;

// Atomic results depend on the order of the threads, which another run would not repeat. Those of kernels are recorded;
// those of a function whose gradient stands alone are not. A gradient that the kernel itself reads has changed by the
// time of the backward pass. The derivative of a C++ function is unknown.
void refuse_unknown(const ir::Function& kernel) {
    const std::string subject = (kernel.is_kernel ? "kernel '" : "function '") + kernel.name + "'";
    const std::unordered_set<const Value*> used = ir::used_values(kernel);
    ir::for_each_operation(kernel.body, [&](const Operation& operation) {
        const bool calls = operation.op == Op::call_library && operation.library->native;
        if (calls) {
            throw CompileError(operation.span,
                               subject +
                                   " has no gradient: it calls a function written in C++, whose derivative is "
                                   "not known",
                               {{Note::Kind::help,
                                 "give it one: @wp.func_native(snippet, adj_snippet), as in adj_snippet=\"adj_x += 2 * "
                                 "x * adj_ret;\"",
                                 {}}});
        }
        if (operation.op == Op::call_library && !operation.library->writes.empty()) {
            throw CompileError(operation.span, subject + " has no gradient: it calls " + ir::named(*operation.library) +
                                                   ", which writes to memory that is not an argument of the kernel");
        }
        if (operation.op == Op::grad_of) {
            throw CompileError(
                operation.span,
                subject + " has no gradient: it uses the gradient of an array, which the backward pass changes",
                {{Note::Kind::help,
                  "pass a copy of array.grad as an argument of its own, or launch the kernel with "
                  "record_tape=False",
                  {}}});
        }
        if (!ir::is_atomic(operation.op) || !used.contains(operation.result())) return;
        throw CompileError(
            operation.span,
            subject +
                " has no gradient: it uses the result of this atomic, in a function whose gradient stands by itself, "
                "which depends on the order of the threads and is not recorded",
            {{Note::Kind::help,
              "give the function a replay (@wp.func_replay) that calls no atomic, or call it in the kernel",
              {}}});
    });
}

namespace {

// False only if the array surely has no gradient.
bool has_gradient(const ir::Function& kernel, const Value* array, const AdjointOptions& options) {
    if (!ir::is_smooth(array->type.element())) return false;
    const Value* root = ir::root_of(array);
    if (root->definition || root->region != &kernel.body || !root->type.is_array()) return true;
    if (const ir::ImplicitParameter* implicit = kernel.implicit(root))
        return implicit->kind == ir::ImplicitParameter::Kind::number;
    return options.gradients[static_cast<std::size_t>(root->index)] != Gradient::none;
}

std::unique_ptr<ir::Function> adjoint_with_atomic_results(const ir::Function& kernel, const AdjointOptions& options) {
    refuse_unknown(kernel);
    ir::for_each_operation(kernel.body, [&](const Operation& operation) {
        if (operation.op != Op::stack) return;
        throw CompileError(operation.span, "kernel '" + kernel.name +
                                               "' has no gradient: it takes the gradient of a function with a loop, "
                                               "whose own derivative is not known here");
    });
    refuse_lost_views(kernel, [&](const Value* array) { return has_gradient(kernel, array, options); });
    const std::unordered_set<const Operation*> to_be_recorded = to_be_recorded_loads(kernel, options.noalias);
    WithPrepass with_prepass;
    if (!to_be_recorded.empty()) with_prepass = add_prepass(kernel, to_be_recorded, options.noalias);
    const ir::Function& source = to_be_recorded.empty() ? kernel : *with_prepass.kernel;
    return Reverser(source, with_prepass.prepass, options).run();
}

// Floats that an atomic returns have a derivative that depends on the order of the threads.
void refuse_differentiable_results(const ir::Function& kernel, const AdjointOptions& options) {
    const std::unordered_set<const Value*> used = ir::used_values(kernel);
    ir::for_each_operation(kernel.body, [&](const Operation& operation) {
        if (!ir::is_atomic(operation.op) || !used.contains(operation.result())) return;
        if (!has_gradient(kernel, operation.operands[0], options)) return;
        throw CompileError(
            operation.span,
            "kernel '" + kernel.name +
                "' has no gradient: it uses the result of this atomic, whose derivative depends on the order "
                "of the threads",
            {{Note::Kind::help, "count with integers, or combine in a kernel of its own", {}}});
    });
}

}  // namespace

std::unique_ptr<ir::Function> adjoint(const ir::Function& kernel, const AdjointOptions& options) {
    WEFT_CHECK(
        kernel.is_kernel && options.gradients.size() + kernel.implicit_parameters.size() == kernel.parameters().size(),
        "adjoint() takes a kernel, and a Gradient for each parameter");
    refuse_differentiable_results(kernel, options);
    std::unique_ptr<ir::Function> with_returned;
    if (has_atomic_results(kernel)) with_returned = with_atomic_results(kernel, AtomicResults::read);
    return adjoint_with_atomic_results(with_returned ? *with_returned : kernel, options);
}

Reverser::Reverser(const ir::Function& source, std::size_t prepass, const AdjointOptions& options)
    : Copier(source), prepass_(prepass), options_(options) {
    find_uncontended_accesses();
    find_active();
    find_used();
}

std::unique_ptr<ir::Function> Reverser::run() {
    append_parameters();
    made_->is_adjoint = source_.is_kernel && options_.noalias;
    std::vector<Value*> given;  // the adjoints of the function's results
    if (!source_.is_kernel)
        for (const Value* returned : source_.body.terminator()->operands)
            given.push_back(made_->add_argument(&made_->body, returned->type, "adjoint"));
    Frame frame;
    frame.region = &source_.body;
    frame_ = &frame;
    replay(source_.body, /*saves_loops=*/true);
    for (std::size_t i = 0; i < given.size(); ++i) accumulate(source_.body.terminator()->operands[i], given[i]);
    reverse(source_.body);
    std::vector<Value*> adjoints;
    if (!source_.is_kernel)
        for (const Value* parameter : source_.parameters())
            if (ir::is_smooth(parameter->type)) adjoints.push_back(adjoint_or_zero(parameter));
    b_.return_(std::move(adjoints));
    return std::move(made_);
}

void Reverser::fail(const Operation& operation, const std::string& what) const {
    const char* subject = source_.is_kernel ? "kernel '" : "function '";
    throw CompileError(operation.span, subject + source_.name + "' has no gradient: " + what);
}

// ---- active and used values ----

// Active values depend on a load from an array with a gradient, or on a parameter of a function. Only they have
// adjoints.
void Reverser::find_active() {
    active_.assign(static_cast<std::size_t>(source_.value_count()), false);
    bool changed = true;
    const auto mark = [&](const Value* value, bool by) {
        if (!by || is_active(value) || !ir::is_smooth(value->type)) return;
        active_[static_cast<std::size_t>(value->id)] = true;
        changed = true;
    };
    const auto flow = [&](const std::vector<Value*>& from, std::size_t first, const std::vector<Value*>& to,
                          std::size_t first_to) {
        for (std::size_t i = 0; first + i < from.size() && first_to + i < to.size(); ++i)
            mark(to[first_to + i], is_active(from[first + i]));
    };
    if (!source_.is_kernel)
        for (const Value* parameter : source_.parameters()) mark(parameter, true);
    while (changed) {
        changed = false;
        ir::for_each_operation(source_.body, [&](const Operation& operation) {
            if (operation.op == Op::load || operation.op == Op::loaded)
                return mark(operation.result(), has_gradient(operation.operands[0]));
            if (operation.op == Op::call && passes_gradients(operation) && !operation.results.empty())
                mark(operation.result(), true);
            if (operation.regions.empty()) {
                for (const Value* result : operation.results)
                    for (const Value* operand : operation.operands) mark(result, is_active(operand));
                return;
            }
            const std::size_t inits = ir::carried_operands(operation), arguments = ir::carried_arguments(operation);
            for (const Region* region : operation.regions) {
                const bool gives = operation.op != Op::while_ || region == operation.regions[1];
                if (operation.op != Op::if_) {
                    flow(operation.operands, inits, region->arguments, arguments);
                    flow(operation.regions.back()->terminator()->operands, 0, region->arguments, arguments);
                }
                if (gives) flow(region->terminator()->operands, 0, operation.results, 0);
            }
            if (operation.op != Op::if_) flow(operation.operands, inits, operation.results, 0);
        });
    }
}

// Marks values with a use beyond the end of their own region: reversing a region needs adjoints at its end, not values.
void Reverser::find_used() {
    used_.assign(static_cast<std::size_t>(source_.value_count()), false);
    ir::for_each_operation(source_.body, [&](const Operation& operation) {
        const bool is_end = operation.op == Op::yield || operation.op == Op::return_;
        for (const Value* operand : operation.operands)
            if (!is_end || ir::region_of(operand) != operation.parent)
                used_[static_cast<std::size_t>(operand->id)] = true;
    });
}

// ---- adjoints ----

Value* Reverser::adjoint_of(const Value* source) {
    std::vector<Frame*> loops;  // loops that must carry the value, innermost first
    Value* found = nullptr;
    for (Frame* frame = frame_; frame; frame = frame->outer) {
        if (const auto at = frame->adjoints.find(source); at != frame->adjoints.end()) {
            found = at->second;
            break;
        }
        if (ir::region_of(source) == frame->region) break;
        if (frame->loop) loops.push_back(frame);
    }
    for (std::size_t i = loops.size(); i-- > 0;) {
        Frame& frame = *loops[i];
        found = made_->add_argument(frame.loop, source->type);
        frame.adjoints[source] = found;
        frame.carried.push_back(source);
    }
    return found;
}

Value* Reverser::adjoint_or_zero(const Value* source) {
    Value* adjoint = adjoint_of(source);
    return adjoint ? adjoint : b_.zero(source->type);
}

void Reverser::accumulate(const Value* source, Value* contribution) {
    if (!contribution || !is_active(source)) return;
    Value* present = adjoint_of(source);
    set_adjoint(source, present ? sum(b_, present, contribution) : contribution);
}

std::vector<const Value*> Reverser::changed_outside(const Frame& frame) const {
    std::vector<const Value*> values;
    for (const auto& [value, adjoint] : frame.adjoints)
        if (ir::region_of(value) != frame.region) values.push_back(value);
    std::sort(values.begin(), values.end(), [](const Value* a, const Value* b) { return a->id < b->id; });
    return values;
}

// ---- straight-line code ----

void Reverser::replay(const Region& region, bool saves_loops) {
    const auto replayed = [&](const Region& inner, const std::vector<Value*>&) {
        replay(inner, /*saves_loops=*/false);
        return std::vector<Value*>();
    };
    const auto is_used = [&](const Value* value) { return used_[static_cast<std::size_t>(value->id)]; };
    std::size_t left = &region == &source_.body ? prepass_ : 0;
    for (const Operation* operation : region.operations) {
        b_.span = operation->span;
        if (left > 0) {
            --left;
            append_copy(*operation);
            continue;
        }
        switch (operation->op) {
            case Op::store:
            case Op::print:
            case Op::raise:
            case Op::assert_:
            case Op::yield:
            case Op::return_:
                break;
            case Op::if_:
                // The reverse of the branch replays its arms. Code that follows a break is in an arm, at any depth: a
                // copy here for each of them would make n * n / 2 copies for n breaks.
                if (!saves_loops || std::any_of(operation->results.begin(), operation->results.end(), is_used))
                    append_structured(*operation, {}, replayed);
                break;
            case Op::for_:
            case Op::while_:
                if (saves_loops)
                    replay_loop(*operation);
                else
                    append_structured(*operation, {}, replayed);
                break;
            case Op::local_array:
                // In the backward pass it holds its own gradient; values come from the log (to_be_recorded.h).
                if (!saves_loops)
                    map_.set(operation->result(), b_.null(operation->result()->type));
                else
                    append_copy(*operation)->unset = false;  // a gradient begins with zeros
                break;
            case Op::loaded:
                map_.set(operation->result(), copy(operation->operands.back()));
                break;
            case Op::detach_reverse:
                // Constant to this pass. The pass that reverses the function's gradient in turn sees through it, once.
                if (!source_.is_kernel && options_.order > 1)
                    fail(*operation, "the third derivative of this is not known");
                if (source_.is_kernel)
                    append_copy(*operation);
                else
                    map_.set(operation->result(), copy(operation->operands[0]));
                break;
            case Op::call:
                replay_call(*operation);
                break;
            default: {
                if (!ir::is_atomic(operation->op)) append_copy(*operation);
            }
        }
    }
}

void Reverser::reverse(const Region& region) {
    const std::size_t first = &region == &source_.body ? prepass_ : 0;
    for (std::size_t i = region.operations.size(); i-- > first;) {
        b_.span = region.operations[i]->span;
        reverse(*region.operations[i]);
    }
}

void Reverser::reverse(const Operation& operation) {
    const bool only_computes = operation.regions.empty() && operation.op != Op::call && !ir::writes(operation.op);
    Value* d = nullptr;  // the adjoint of the result
    if (only_computes) {
        if (operation.results.size() != 1 || !is_active(operation.result())) return;
        d = adjoint_of(operation.result());
        if (!d) return;
    }
    switch (operation.op) {
        case Op::if_:
            return reverse_if(operation);
        case Op::for_:
        case Op::while_:
            return reverse_loop(operation);
        case Op::call:
            return reverse_call(operation);
        case Op::store:
            return reverse_store(operation);
#define WEFT_CLASS_atomic(id) case Op::id:
#include "ir/ops.def"
            return reverse_atomic(operation);
        case Op::load:
        case Op::loaded:
            return reverse_load(operation, d);
        case Op::select: {
            Value *condition = copy(operation.operands[0]), *nothing = b_.zero(d->type);
            accumulate(operation.operands[1], b_.select(condition, d, nothing));
            return accumulate(operation.operands[2], b_.select(condition, nothing, d));
        }
        case Op::cast:
            return accumulate(operation.operands[0], ir::is_smooth(operation.operands[0]->type)
                                                         ? b_.cast(d, operation.operands[0]->type.scalar())
                                                         : nullptr);
        case Op::make:
        case Op::splat:
        case Op::extract:
        case Op::insert:
        case Op::extract_at:
        case Op::insert_at:
        case Op::reduce_add:
        case Op::transpose:
            return reverse_parts(operation, d);
        case Op::matmul:
            return reverse_product(operation, d);
        case Op::call_library:
            return reverse_library_call(operation, d);
        // Arrays have no adjoint; their elements have gradients.
        case Op::view:
        case Op::components:
        case Op::member:
        case Op::grad_of:
        case Op::slice:
        case Op::overlay:
        case Op::local_array:
        case Op::stack:
        case Op::detach_reverse:  // a constant here
        case Op::tile_generate:   // transform/tiles has replaced these
        case Op::tile_each:
        case Op::tile_reduce:
        case Op::tile_matmul:
#define WEFT_DERIVATIVE_none(id) case Op::id:
#include "ir/ops.def"
            return;
#define WEFT_DERIVATIVE_partial(id) case Op::id:
#include "ir/ops.def"
            return reverse_by_partials(operation, d);
    }
}

void Reverser::reverse_by_partials(const Operation& operation, Value* d) {
    std::vector<Value*> operands;
    for (const Value* operand : operation.operands) operands.push_back(copy(operand));
    for (std::size_t i = 0; i < operands.size(); ++i) {
        if (is_active(operation.operands[i]))
            accumulate(operation.operands[i],
                       times_partial(b_, operation.op, operands, copy(operation.result()), i, d, options_.order));
    }
}

void Reverser::reverse_parts(const Operation& operation, Value* d) {
    const auto& operands = operation.operands;
    std::vector<Value*> indices;
    const auto copy_indices = [&](std::size_t first) {
        for (std::size_t i = first; i < operands.size(); ++i) indices.push_back(copy(operands[i]));
    };
    switch (operation.op) {
        case Op::make: {
            const Type type = operation.result()->type;
            for (std::size_t i = 0; i < operands.size(); ++i) {
                const auto at = static_cast<std::int64_t>(i);
                std::vector<std::int64_t> path{at};
                if (type.is_matrix()) path = {at / type.cols(), at % type.cols()};
                if (is_active(operands[i])) accumulate(operands[i], b_.extract(d, path));
            }
            return;
        }
        case Op::splat:
            return accumulate(operands[0], b_.reduce_add(d));
        case Op::reduce_add:
            return accumulate(operands[0], b_.splat(operands[0]->type, d));
        case Op::transpose:
            return accumulate(operands[0], b_.transpose(d));
        case Op::extract: {
            if (!is_active(operands[0])) return;
            Value* whole = adjoint_or_zero(operands[0]);
            Value* part = sum(b_, b_.extract(whole, operation.ints), d);
            return set_adjoint(operands[0], b_.insert(whole, part, operation.ints));
        }
        case Op::insert:
            accumulate(operands[1], b_.extract(d, operation.ints));
            return accumulate(operands[0], b_.insert(d, b_.zero(operands[1]->type), operation.ints));
        case Op::extract_at: {
            if (!is_active(operands[0])) return;
            copy_indices(1);
            Value* whole = adjoint_or_zero(operands[0]);
            Value* part = sum(b_, b_.extract_at(whole, indices), d);
            return set_adjoint(operands[0], b_.insert_at(whole, part, indices));
        }
        default:  // insert_at
            copy_indices(2);
            accumulate(operands[1], b_.extract_at(d, indices));
            return accumulate(operands[0], b_.insert_at(d, b_.zero(operands[1]->type), indices));
    }
}

// c = a b:  a' = c' bᵀ and b' = aᵀ c', with outer products if one of them is a vector.
void Reverser::reverse_product(const Operation& operation, Value* d) {
    const Value *left = operation.operands[0], *right = operation.operands[1];
    Value *a = copy(left), *b = copy(right);
    const auto outer = [&](Value* column, Value* row) {
        if (column->type.components() * row->type.components() > ir::kMostUnrolled) {
            const auto shaped = [&](Value* vector, int rows, int cols) {
                std::vector<Value*> parts;
                for (std::int64_t i = 0; i < vector->type.components(); ++i) parts.push_back(b_.extract(vector, {i}));
                return b_.make(Type::matrix(d->type.scalar(), rows, cols), std::move(parts));
            };
            return b_.matmul(shaped(column, column->type.components(), 1), shaped(row, 1, row->type.components()));
        }
        std::vector<Value*> entries;
        for (std::int64_t i = 0; i < column->type.components(); ++i)
            for (std::int64_t j = 0; j < row->type.components(); ++j)
                entries.push_back(b_.binary(Op::mul, b_.extract(column, {i}), b_.extract(row, {j})));
        return b_.make(Type::matrix(d->type.scalar(), column->type.components(), row->type.components()),
                       std::move(entries));
    };
    if (left->type.is_matrix() && right->type.is_matrix()) {
        if (is_active(left)) accumulate(left, b_.matmul(d, b_.transpose(b)));
        if (is_active(right)) accumulate(right, b_.matmul(b_.transpose(a), d));
    } else if (left->type.is_matrix()) {
        if (is_active(left)) accumulate(left, outer(d, b));
        if (is_active(right)) accumulate(right, b_.matmul(b_.transpose(a), d));
    } else {
        if (is_active(left)) accumulate(left, b_.matmul(b, d));
        if (is_active(right)) accumulate(right, outer(a, d));
    }
}

}  // namespace weft::transform
