#include "transform/adjoint/stale.h"

#include <algorithm>
#include <map>

#include "ir/builder.h"
#include "ir/typing.h"
#include "ir/walk.h"
#include "support/error.h"

namespace weft::transform {

using ir::Op;
using ir::Operation;
using ir::Region;
using ir::Value;

bool is_atomic(Op op) { return op >= Op::atomic_add && op <= Op::atomic_cas; }
bool writes(Op op) { return op == Op::store || is_atomic(op); }

const Value* root_of(const Value* array) {
    while (array->definition) {
        switch (array->definition->op) {
            case Op::view:
            case Op::slice:
            case Op::components:
            case Op::member:
            case Op::grad_of:
                array = array->definition->operands[0];
                break;
            default:
                return array;
        }
    }
    return array;
}

namespace {

// Whether one of the two may show memory of the other.
bool may_overlap(const Value* a, const Value* b, bool noalias) {
    if (a == b) return true;
    const auto is_local = [](const Value* v) { return v->definition && v->definition->op == Op::local_array; };
    if (is_local(a) || is_local(b)) return false;
    return !noalias || a->definition || b->definition;
}

// The parameter that an array comes from: itself, or the struct that it is a field of. Null where it came out of
// memory.
const Value* parameter_of(const Value* array) {
    const Value* root = root_of(array);
    while (root->definition && root->definition->op == Op::extract) root = root->definition->operands[0];
    return root->definition ? nullptr : root;
}

}  // namespace

std::unordered_set<const Operation*> stale_loads(const ir::Function& kernel, bool noalias) {
    std::unordered_set<const Operation*> stale;
    std::vector<const Value*> written;
    const auto find_written = [&](const auto& self, const Region& region) -> void {
        for (const Operation* operation : region.operations) {
            if (writes(operation->op)) written.push_back(root_of(operation->operands[0]));
            for (const Region* inner : operation->regions) self(self, *inner);
        }
    };
    const auto walk = [&](const auto& self, const Region& region) -> void {
        for (const Operation* operation : region.operations) {
            if (writes(operation->op)) written.push_back(root_of(operation->operands[0]));
            if (operation->op == Op::load) {
                const Value* root = root_of(operation->operands[0]);
                // A local array is made anew on the way back.
                const bool is_local = root->definition && root->definition->op == Op::local_array;
                if (is_local || std::any_of(written.begin(), written.end(),
                                            [&](const Value* other) { return may_overlap(other, root, noalias); }))
                    stale.insert(operation);
            }
            // What a later iteration writes, an earlier one has written before the load comes round again.
            if (operation->op == Op::for_ || operation->op == Op::while_)
                for (const Region* inner : operation->regions) find_written(find_written, *inner);
            for (const Region* inner : operation->regions) self(self, *inner);
        }
    };
    walk(walk, kernel.body);
    return stale;
}

namespace {

// Room for the log of one thread: it is taken from the system as far as it is used.
constexpr std::int64_t kMostLogBytes = std::int64_t{1} << 26;

class Sweeper {
public:
    Sweeper(const ir::Function& source, const std::unordered_set<const Operation*>& stale, bool noalias)
        : source_(source),
          stale_(stale),
          made_(std::make_unique<ir::Function>()),
          b_(*made_, made_->body),
          map_(source),
          noalias_(noalias) {
        made_->name = source.name;
        made_->is_kernel = true;
        made_->tid_rank = source.tid_rank;
        made_->span = source.span;
    }

    Swept run() {
        Swept result;
        std::vector<Value*> originals, copies;
        for (const Value* parameter : source_.parameters())
            originals.push_back(made_->add_argument(&made_->body, parameter->type, parameter->name));
        copies = originals;
        find_copied();
        for (std::size_t i = 0; i < copies.size(); ++i) {
            if (!copied_.contains(source_.parameters()[i])) continue;
            copies[i] = made_->add_argument(&made_->body, originals[i]->type, originals[i]->name);
            made_->copies.push_back(static_cast<int>(i));
        }
        find_types();

        is_sweep_ = true;
        for (std::size_t i = 0; i < copies.size(); ++i) map_.set(source_.parameters()[i], copies[i]);
        Positions positions = open_logs();
        region(source_.body, positions);
        for (std::size_t i = 0; i < logs_.size(); ++i) {
            Value* fits = b_.compare(Op::cmp_le, number(positions[i]), b_.integer(capacities_[i]));
            b_.require(fits, "too many values that the kernel reads after it wrote them");
        }
        result.sweep = made_->body.operations.size();

        is_sweep_ = false;
        for (std::size_t i = 0; i < copies.size(); ++i) map_.set(source_.parameters()[i], originals[i]);
        for (Position& position : positions) position = {b_.integer(0)};
        region(source_.body, positions);
        b_.return_({});
        result.kernel = std::move(made_);
        return result;
    }

private:
    // Where in each log the next value goes: a local that loops carry, and a distance from it. Each stale load has a
    // place of its own, whether its branch is taken or not, so that positions are equal in all lanes but after loops
    // that differ.
    struct Position {
        Value* base;
        std::int64_t distance = 0;
    };
    using Positions = std::vector<Position>;

    // The parameters that the sweep must not touch itself: what it writes, where some stale load reads.
    void find_copied() {
        for (const Operation* load : stale_) {
            const Value* root = root_of(load->operands[0]);
            if (root->definition && root->definition->op == Op::local_array) continue;
            const Value* parameter = parameter_of(load->operands[0]);
            if (!parameter) fail(*load);
            copied_.insert(parameter);
        }
        if (copied_.empty()) return;
        ir::for_each_operation(source_.body, [&](const Operation& operation) {
            if (!writes(operation.op) && (noalias_ || operation.op != Op::load)) return;
            const Value* parameter = parameter_of(operation.operands[0]);
            if (parameter && !noalias_) copied_.insert(parameter);
            const Value* root = root_of(operation.operands[0]);
            const bool is_local = root->definition && root->definition->op == Op::local_array;
            if (!parameter && !is_local && writes(operation.op)) fail(operation);
        });
    }

    [[noreturn]] void fail(const Operation& operation) const {
        throw CompileError(operation.span,
                           "kernel '" + source_.name +
                               "' has no gradient: it reads what it may have written itself, "
                               "through an array that lies in memory or is chosen at run time",
                           {{Note::Kind::help, "pass the array as an argument of its own", {}}});
    }

    void find_types() {
        ir::for_each_operation(source_.body, [&](const Operation& operation) {
            if (stale_.contains(&operation)) numbers_.try_emplace(operation.result()->type.ir_name(), -1);
        });
        for (auto& [name, number] : numbers_) number = static_cast<int>(number_count_++);
    }

    Positions open_logs() {
        logs_.resize(number_count_);
        capacities_.resize(number_count_);
        ir::for_each_operation(source_.body, [&](const Operation& operation) {
            if (!stale_.contains(&operation)) return;
            const Type type = operation.result()->type;
            const std::size_t number = number_of(type);
            if (logs_[number]) return;
            if (ir::holds_array(type)) fail(operation);
            capacities_[number] = kMostLogBytes / type.size_bytes();
            logs_[number] = b_.trail(Type::array(type, 1), b_.integer(capacities_[number]));
        });
        Positions positions;
        for (std::size_t i = 0; i < logs_.size(); ++i) positions.push_back({b_.integer(0)});
        return positions;
    }

    std::size_t number_of(Type type) const { return static_cast<std::size_t>(numbers_.at(type.ir_name())); }

    bool has_stale(const Operation& operation) const {
        for (const Region* region : operation.regions)
            for (const Operation* inner : region->operations)
                if (stale_.contains(inner) || has_stale(*inner)) return true;
        return false;
    }

    bool has_stale_loop(const Region& region) const {
        for (const Operation* inner : region.operations) {
            if ((inner->op == Op::for_ || inner->op == Op::while_) && has_stale(*inner)) return true;
            for (const Region* nested : inner->regions)
                if (has_stale_loop(*nested)) return true;
        }
        return false;
    }

    Value* number(const Position& position) {
        return position.distance == 0 ? position.base
                                      : b_.binary(Op::add, position.base, b_.integer(position.distance));
    }
    std::vector<Value*> numbers(const Positions& positions) {
        std::vector<Value*> result;
        for (const Position& position : positions) result.push_back(number(position));
        return result;
    }

    Value* copy(const Value* value) const { return map_[const_cast<Value*>(value)]; }

    std::vector<Value*> copies(const std::vector<Value*>& values) const {
        std::vector<Value*> result;
        for (const Value* value : values) result.push_back(copy(value));
        return result;
    }

    // Appends the region's operations but for its terminator; `positions` are those in the logs before and after.
    void region(const Region& from, Positions& positions) {
        for (const Operation* operation : from.operations) {
            b_.span = operation->span;
            const Op op = operation->op;
            if (op == Op::yield || op == Op::return_) continue;
            if (is_sweep_ && (op == Op::print || op == Op::assert_)) continue;
            if (is_sweep_ && writes(op) && !is_private(*operation)) continue;
            if (stale_.contains(operation)) {
                stale(*operation, positions);
            } else if (!operation->regions.empty()) {
                structured(*operation, positions);
            } else {
                Operation* made = ir::clone(*made_, *operation, map_);
                made->inlined = nullptr;
                made->parent = &b_.region();
                b_.region().operations.push_back(made);
            }
        }
    }

    // Whether the sweep may write there.
    bool is_private(const Operation& write) const {
        const Value* root = root_of(write.operands[0]);
        if (root->definition && root->definition->op == Op::local_array) return true;
        const Value* parameter = parameter_of(write.operands[0]);
        return parameter && copied_.contains(parameter);
    }

    void stale(const Operation& load, Positions& positions) {
        const std::size_t which = number_of(load.result()->type);
        std::vector<Value*> indices(load.operands.begin() + 1, load.operands.end());
        Value *array = copy(load.operands[0]), *log = logs_[which], *at = number(positions[which]);
        Value* given = nullptr;
        if (is_sweep_) {
            given = b_.load(array, copies(indices));
            // Past the end nothing is kept; the launch fails in the end.
            b_.store(log, {b_.binary(Op::min, at, b_.integer(capacities_[which] - 1))}, given);
        } else {
            given = b_.loaded(array, copies(indices), b_.load(log, {at}));
        }
        map_.set(load.result(), given);
        ++positions[which].distance;
    }

    void structured(const Operation& operation, Positions& positions) {
        Operation* made = made_->new_operation(operation.op, operation.span);
        made->guarded = operation.guarded;
        made->parent = &b_.region();
        made->operands = copies(operation.operands);
        if (operation.op == Op::if_)
            if_(operation, *made, positions);
        else
            loop(operation, *made, positions);
        b_.region().operations.push_back(made);
    }

    void add_results(const Operation& operation, Operation& made) {
        for (const Value* result : operation.results)
            map_.set(result, made_->add_result(&made, result->type, result->name));
    }

    void if_(const Operation& operation, Operation& made, Positions& positions) {
        const bool carries = has_stale_loop(operation.body(0)) || has_stale_loop(operation.body(1));
        const Positions before = positions;
        for (const Region* region : operation.regions) {
            ir::Builder::Inside inside(b_, *made_->new_region(&made));
            if (carries) positions = before;
            this->region(*region, positions);
            std::vector<Value*> yields = copies(region->terminator()->operands);
            if (carries)
                for (Value* position : numbers(positions)) yields.push_back(position);
            b_.yield(std::move(yields));
        }
        add_results(operation, made);
        if (!carries) return;
        for (Position& position : positions) position = {made_->add_result(&made, i32_type())};
    }

    // Carries the positions, last but for a guard.
    void loop(const Operation& operation, Operation& made, Positions& positions) {
        if (!has_stale(operation)) {
            for (const Region* region : operation.regions) {
                Region* to = made_->new_region(&made);
                for (const Value* argument : region->arguments)
                    map_.set(argument, made_->add_argument(to, argument->type, argument->name));
                ir::Builder::Inside inside(b_, *to);
                this->region(*region, positions);
                b_.yield(copies(region->terminator()->operands));
            }
            return add_results(operation, made);
        }
        const bool is_while = operation.op == Op::while_;
        if (is_while && has_stale_loop(operation.body(0))) {
            throw CompileError(operation.span, "kernel '" + source_.name +
                                                   "' has no gradient: the condition of this loop has a loop inside "
                                                   "that reads what the kernel may have written itself");
        }
        const std::size_t inits = is_while ? 0 : 3, arguments = is_while ? 0 : 1;
        const std::size_t at = operation.results.size() - (operation.guarded ? 1 : 0);
        const auto put = [&](std::vector<Value*>& values, std::size_t offset, const std::vector<Value*>& more) {
            values.insert(values.begin() + static_cast<std::ptrdiff_t>(offset + at), more.begin(), more.end());
        };
        put(made.operands, inits, numbers(positions));
        Positions in_condition(positions.size(), {nullptr});  // how far a look at the condition goes
        for (const Region* region : operation.regions) {
            Region* to = made_->new_region(&made);
            Positions inside_positions;
            const auto add_positions = [&] {
                for (std::size_t k = 0; k < positions.size(); ++k)
                    inside_positions.push_back({made_->add_argument(to, i32_type()), in_condition[k].distance});
            };
            for (std::size_t i = 0; i < region->arguments.size(); ++i) {
                if (i == arguments + at) add_positions();
                const Value* argument = region->arguments[i];
                map_.set(argument, made_->add_argument(to, argument->type, argument->name));
            }
            if (region->arguments.size() == arguments + at) add_positions();
            ir::Builder::Inside inside(b_, *to);
            this->region(*region, inside_positions);
            std::vector<Value*> yields = copies(region->terminator()->operands);
            if (is_while && region == operation.regions[0])
                in_condition = inside_positions;
            else
                put(yields, 0, numbers(inside_positions));
            b_.yield(std::move(yields));
        }
        for (std::size_t i = 0; i <= operation.results.size(); ++i) {
            if (i == at)
                for (std::size_t k = 0; k < positions.size(); ++k)
                    positions[k] = {made_->add_result(&made, i32_type()), in_condition[k].distance};
            if (i == operation.results.size()) break;
            const Value* result = operation.results[i];
            map_.set(result, made_->add_result(&made, result->type, result->name));
        }
    }

    const ir::Function& source_;
    const std::unordered_set<const Operation*>& stale_;
    std::unique_ptr<ir::Function> made_;
    ir::Builder b_;
    ir::ValueMap map_;
    bool noalias_;
    bool is_sweep_ = true;
    std::unordered_set<const Value*> copied_;
    std::map<std::string, int> numbers_;  // of the logs, by what they hold
    std::size_t number_count_ = 0;
    std::vector<Value*> logs_;
    std::vector<std::int64_t> capacities_;
};

}  // namespace

Swept sweep_stale_loads(const ir::Function& kernel, const std::unordered_set<const Operation*>& stale, bool noalias) {
    return Sweeper(kernel, stale, noalias).run();
}

}  // namespace weft::transform
