#include "transform/adjoint/to_be_recorded.h"

#include <algorithm>
#include <map>

#include "ir/copier.h"
#include "ir/typing.h"
#include "support/error.h"
#include "transform/analysis/underlying_memory.h"

namespace weft::transform {

using ir::Op;
using ir::Operation;
using ir::Region;
using ir::Value;

namespace {

// Whether branches or loops choose the array.
bool is_chosen(const ir::Function& kernel, const Value* root) {
    if (!root->definition) return !ir::is_parameter(kernel, root);
    const Op op = root->definition->op;
    return op == Op::if_ || op == Op::for_ || op == Op::while_ || op == Op::select;
}

// Whether the two arrays may share memory.
bool may_overlap(const ir::Function& kernel, const Value* a, const Value* b, bool noalias) {
    if (a == b) return true;
    const auto is_local = [](const Value* v) { return v->definition && v->definition->op == Op::local_array; };
    if (is_local(a)) return is_chosen(kernel, b);
    if (is_local(b)) return is_chosen(kernel, a);
    if (ir::is_parameter(kernel, a) && object_behind(b)) return false;
    return !noalias || !ir::is_parameter(kernel, a) || !ir::is_parameter(kernel, b);
}

// The parameter that holds the array: itself, or the struct that it is a field of. Null if the array came from memory,
// or is chosen at run time.
const Value* parameter_of(const ir::Function& kernel, const Value* array) {
    const Value* origin = ir::origin_of(array);
    return ir::is_parameter(kernel, origin) ? origin : nullptr;
}

// A function with custom derivatives is computed again, or its derived gradient reads memory again. It must find the
// same contents as in the launch, unless its replay and gradient take arrays as they are after the launch.
template <class IsWritten>
void refuse_call_to_record(const ir::Function& kernel, const Operation& call, const IsWritten& is_written) {
    const ir::Function& callee = *call.function;
    const auto sees_after = [](const ir::Function* custom) { return custom && custom->sees_after; };
    if (sees_after(callee.replay) && sees_after(callee.gradient)) return;
    const std::vector<ParameterEffects> effects = ir::effects(callee);
    for (std::size_t i = 0; i < call.operands.size(); ++i) {
        if (!effects[i].reads || !is_written(ir::root_of(call.operands[i]))) continue;
        throw CompileError(
            call.span,
            "kernel '" + kernel.name + "' has no gradient: '" + callee.name +
                "' has a derivative of its own, and reads elements that the kernel may have written itself",
            {{Note::Kind::help,
              "give it a replay (@wp.func_replay) and a gradient (@wp.func_grad) that need no such "
              "reading, or read in the kernel and pass the values",
              {}}});
    }
}

}  // namespace

std::unordered_set<const Operation*> to_be_recorded_loads(const ir::Function& kernel, bool noalias) {
    std::unordered_set<const Operation*> to_be_recorded;
    std::vector<const Value*> written;
    const auto add_written = [&](const Operation& operation) {
        for (const Value* array : ir::written_arrays(operation)) written.push_back(ir::root_of(array));
    };
    const auto is_written = [&](const Value* root) {
        return std::any_of(written.begin(), written.end(),
                           [&](const Value* other) { return may_overlap(kernel, other, root, noalias); });
    };
    const auto find_written = [&](const auto& self, const Region& region) -> void {
        for (const Operation* operation : region.operations) {
            add_written(*operation);
            for (const Region* inner : operation->regions) self(self, *inner);
        }
    };
    const auto walk = [&](const auto& self, const Region& region) -> void {
        for (const Operation* operation : region.operations) {
            if (operation->op == Op::call) refuse_call_to_record(kernel, *operation, is_written);
            add_written(*operation);
            if (operation->op == Op::load) {
                const Value* root = ir::root_of(operation->operands[0]);
                // A local array is made anew in the backward pass.
                const bool is_local = root->definition && root->definition->op == Op::local_array;
                if (is_local || is_written(root)) to_be_recorded.insert(operation);
            }
            // A load in a loop also sees the writes that come later in the body: an earlier iteration made them.
            if (operation->op == Op::for_ || operation->op == Op::while_)
                for (const Region* inner : operation->regions) find_written(find_written, *inner);
            for (const Region* inner : operation->regions) self(self, *inner);
        }
    };
    walk(walk, kernel.body);
    return to_be_recorded;
}

namespace {

// The most values that one log may hold, and the least number that must fit.
constexpr std::int64_t kMostLogged = (std::int64_t{1} << 31) - 1, kLeastLogged = 1;

class PrepassWriter : ir::Copier {
public:
    PrepassWriter(const ir::Function& source, const std::unordered_set<const Operation*>& to_be_recorded, bool noalias)
        : Copier(source), to_be_recorded_(to_be_recorded), noalias_(noalias) {}

    WithPrepass run() {
        WithPrepass result;
        std::vector<Value*> originals, copies;
        for (const Value* parameter : source_.parameters()) originals.push_back(append_parameter(parameter));
        copies = originals;
        made_->implicit_parameters = source_.implicit_parameters;
        find_copied();
        for (std::size_t i = 0; i < copies.size(); ++i) {
            if (!copied_.contains(source_.parameters()[i])) continue;
            copies[i] = made_->add_argument(&made_->body, originals[i]->type, originals[i]->name);
            made_->implicit_parameters.push_back({ir::ImplicitParameter::Kind::copy, static_cast<int>(i)});
        }
        find_types();

        is_prepass_ = true;
        for (std::size_t i = 0; i < copies.size(); ++i) map_.set(source_.parameters()[i], copies[i]);
        Positions positions = open_logs();
        region(source_.body, positions);
        for (std::size_t i = 0; i < logs_.size(); ++i) {
            Value* fits = b_.compare(Op::cmp_le, number(positions[i]), capacity(i));
            b_.require(fits, "more values that one thread reads after it wrote them than there is room for");
        }
        result.prepass = made_->body.operations.size();

        is_prepass_ = false;
        for (std::size_t i = 0; i < copies.size(); ++i) map_.set(source_.parameters()[i], originals[i]);
        for (Position& position : positions) position = {b_.integer(0, i64_type())};
        region(source_.body, positions);
        b_.return_({});
        result.kernel = std::move(made_);
        return result;
    }

private:
    // The position of the next value in each log: a local that loops carry, and a distance from it. Each to-be-recorded
    // load has a position of its own, whether its branch is taken or not. So positions are equal in all lanes, except
    // after loops whose trip counts differ.
    struct Position {
        Value* base;
        std::int64_t distance = 0;
    };
    using Positions = std::vector<Position>;

    // Finds the parameters of which the pre-pass needs copies: those that to-be-recorded loads read. Without `noalias`
    // these are all parameters that the kernel reads or writes.
    void find_copied() {
        for (const Operation* load : to_be_recorded_) {
            const Value* root = ir::root_of(load->operands[0]);
            if (root->definition && root->definition->op == Op::local_array) continue;
            const Value* parameter = parameter_of(source_, load->operands[0]);
            if (!parameter) fail(*load);
            copied_.insert(parameter);
        }
        if (copied_.empty()) return;
        ir::for_each_operation(source_.body, [&](const Operation& operation) {
            if (!ir::writes(operation.op) && (noalias_ || operation.op != Op::load)) return;
            const Value* parameter = parameter_of(source_, operation.operands[0]);
            if (parameter && source_.implicit(parameter)) return;
            if (parameter && !noalias_) copied_.insert(parameter);
            const Value* root = ir::root_of(operation.operands[0]);
            const bool is_local = root->definition && root->definition->op == Op::local_array;
            if (!parameter && !is_local && ir::writes(operation.op)) fail(operation);
        });
    }

    [[noreturn]] void fail(const Operation& operation) const {
        throw CompileError(operation.span,
                           "kernel '" + source_.name +
                               "' has no gradient: it reads elements that it may have written itself, "
                               "through an array that lies in memory or is chosen at run time",
                           {{Note::Kind::help, "pass the array as an argument of its own", {}}});
    }

    void find_types() {
        ir::for_each_operation(source_.body, [&](const Operation& operation) {
            if (to_be_recorded_.contains(&operation)) numbers_.try_emplace(operation.result()->type.ir_name(), -1);
        });
        for (auto& [name, number] : numbers_) number = static_cast<int>(number_count_++);
    }

    Positions open_logs() {
        logs_.resize(number_count_);
        ir::for_each_operation(source_.body, [&](const Operation& operation) {
            if (!to_be_recorded_.contains(&operation)) return;
            const Type type = operation.result()->type;
            const std::size_t number = number_of(type);
            if (logs_[number]) return;
            if (ir::holds_array(type)) fail(operation);
            Value *most = b_.integer(kMostLogged, i64_type()), *least = b_.integer(kLeastLogged, i64_type());
            logs_[number] = b_.stack(Type::array(type, 1), most);
            logs_[number]->definition->operands.push_back(least);
        });
        Positions positions;
        for (std::size_t i = 0; i < logs_.size(); ++i) positions.push_back({b_.integer(0, i64_type())});
        return positions;
    }

    Value* capacity(std::size_t log) { return b_.cast(b_.dim(logs_[log], 0), Scalar::i64); }
    // An overflow overwrites the last entry of the log, and later reads are wrong; such a launch fails.
    Value* within(std::size_t log, Value* position) {
        return b_.binary(Op::min, position, b_.binary(Op::sub, capacity(log), b_.integer(1, i64_type())));
    }

    std::size_t number_of(Type type) const { return static_cast<std::size_t>(numbers_.at(type.ir_name())); }

    bool has_to_be_recorded(const Operation& operation) const {
        for (const Region* region : operation.regions)
            for (const Operation* inner : region->operations)
                if (to_be_recorded_.contains(inner) || has_to_be_recorded(*inner)) return true;
        return false;
    }

    bool has_loop_to_record(const Region& region) const {
        for (const Operation* inner : region.operations) {
            if ((inner->op == Op::for_ || inner->op == Op::while_) && has_to_be_recorded(*inner)) return true;
            for (const Region* nested : inner->regions)
                if (has_loop_to_record(*nested)) return true;
        }
        return false;
    }

    Value* number(const Position& position) {
        return position.distance == 0 ? position.base
                                      : b_.binary(Op::add, position.base, b_.integer(position.distance, i64_type()));
    }
    std::vector<Value*> numbers(const Positions& positions) {
        std::vector<Value*> result;
        for (const Position& position : positions) result.push_back(number(position));
        return result;
    }

    // Appends the region's operations but for its terminator; `positions` are those in the logs before and after.
    void region(const Region& from, Positions& positions) {
        for (const Operation* operation : from.operations) {
            b_.span = operation->span;
            const Op op = operation->op;
            if (op == Op::yield || op == Op::return_) continue;
            if (is_prepass_ && (op == Op::print || op == Op::raise || op == Op::assert_)) continue;
            if (is_prepass_ && ir::writes(op) && !is_private(*operation)) continue;
            if (to_be_recorded_.contains(operation)) {
                to_be_recorded(*operation, positions);
            } else if (!operation->regions.empty()) {
                structured(*operation, positions);
            } else {
                Operation* made = append_copy(*operation);
                if (op == Op::call) call_in_prepass(*made);
            }
        }
    }

    // The pre-pass computes values only; a function with effects has a replay for that. Functions with array arguments
    // are refused, as their effects on memory would have to go to the copies.
    void call_in_prepass(Operation& call) const {
        const bool has_arrays = std::any_of(call.operands.begin(), call.operands.end(),
                                            [](const Value* operand) { return ir::holds_array(operand->type); });
        if (has_arrays) {
            throw CompileError(call.span,
                               "kernel '" + source_.name +
                                   "' has no gradient: it reads elements that it may have written itself, and passes "
                                   "an array to a function with a derivative of its own");
        }
        if (is_prepass_ && call.function->replay) call.function = call.function->replay;
    }

    // Whether the pre-pass may perform the write.
    bool is_private(const Operation& write) const {
        const Value* root = ir::root_of(write.operands[0]);
        if (root->definition && root->definition->op == Op::local_array) return true;
        const Value* parameter = parameter_of(source_, write.operands[0]);
        return parameter && copied_.contains(parameter);
    }

    void to_be_recorded(const Operation& load, Positions& positions) {
        const std::size_t which = number_of(load.result()->type);
        std::vector<Value*> indices(load.operands.begin() + 1, load.operands.end());
        Value *array = copy(load.operands[0]), *log = logs_[which], *at = number(positions[which]);
        Value* given = nullptr;
        if (is_prepass_) {
            given = b_.load(array, copies(indices));
            b_.store(log, {within(which, at)}, given);
        } else {
            given = b_.loaded(array, copies(indices), b_.load(log, {within(which, at)}));
        }
        map_.set(load.result(), given);
        ++positions[which].distance;
    }

    // Loops that hold to-be-recorded loads carry the positions; so do branches that hold such loops.
    void structured(const Operation& operation, Positions& positions) {
        const bool is_if = operation.op == Op::if_;
        const bool carries = is_if ? has_loop_to_record(operation.body(0)) || has_loop_to_record(operation.body(1))
                                   : has_to_be_recorded(operation);
        if (operation.op == Op::while_ && has_loop_to_record(operation.body(0))) {
            throw CompileError(operation.span, "kernel '" + source_.name +
                                                   "' has no gradient: the condition of this loop has a loop inside "
                                                   "that reads elements that the kernel may have written itself");
        }
        const Positions before = positions;
        Positions in_condition(positions.size(),
                               {nullptr});  // of a while: the distance that one evaluation of the condition adds
        const auto fill = [&](const Region& from, const std::vector<Value*>& more) -> std::vector<Value*> {
            if (!carries) {
                region(from, positions);
                return {};
            }
            Positions inside = before;
            for (std::size_t k = 0; k < more.size(); ++k) inside[k] = {more[k], in_condition[k].distance};
            region(from, inside);
            if (operation.op == Op::while_ && &from == operation.regions[0]) in_condition = inside;
            return numbers(inside);
        };
        const bool starts = carries && !is_if;
        const std::vector<Value*> after =
            append_structured(operation, starts ? numbers(positions) : std::vector<Value*>(), fill);
        for (std::size_t k = 0; k < after.size(); ++k) positions[k] = {after[k], in_condition[k].distance};
    }

    const std::unordered_set<const Operation*>& to_be_recorded_;
    bool noalias_;
    bool is_prepass_ = true;
    std::unordered_set<const Value*> copied_;
    std::map<std::string, int> numbers_;  // numbers of the logs, by the type of their values
    std::size_t number_count_ = 0;
    std::vector<Value*> logs_;
};

}  // namespace

WithPrepass add_prepass(const ir::Function& kernel, const std::unordered_set<const Operation*>& to_be_recorded,
                        bool noalias) {
    return PrepassWriter(kernel, to_be_recorded, noalias).run();
}

}  // namespace weft::transform
