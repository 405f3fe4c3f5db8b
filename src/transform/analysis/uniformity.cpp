#include "transform/analysis/uniformity.h"

// A shape describes the lanes that are active in the value's region. In an arm that only some lanes take, or an
// iteration that only some lanes still run, "uniform" means equal in those lanes. Results of an if with a varying
// condition, or of a loop with a varying trip count, are varying: lanes left it with different values.
//
// Linear index arithmetic is assumed not to wrap within one group of lanes. The W indices of a group differ by less
// than W times a small stride. An index that wraps there was out of range for every array anyway.
//
// The analysis is a fixpoint over the structured IR. Shapes only ever rise (unknown, then uniform or linear, then
// varying), and loops are visited until nothing changes.
#include <algorithm>
#include <cstdlib>
#include <optional>

#include "ir/typing.h"
#include "support/error.h"
#include "transform/analysis/underlying_memory.h"

namespace weft::transform {

namespace {

using ir::Op;
using ir::Operation;
using ir::Region;
using ir::Value;

constexpr LaneShape kUniform{LaneShape::Kind::uniform, 0};
constexpr LaneShape kVarying{LaneShape::Kind::varying, 0};
constexpr LaneShape kMostlyContiguous{LaneShape::Kind::varying, 0, true};

LaneShape linear(std::int64_t stride) { return stride == 0 ? kUniform : LaneShape{LaneShape::Kind::linear, stride}; }

class Fixpoint {
public:
    Fixpoint(const ir::Function& kernel, Uniformity& found) : kernel_(kernel), found_(found) {}

    void run() {
        for (const Value* parameter : kernel_.parameters()) raise(parameter, kUniform);
        do {
            changed_ = false;
            visit(kernel_.body);
        } while (changed_);
    }

private:
    // The shape so far. A value not reached yet counts as uniform: the optimistic start of the fixpoint.
    LaneShape shape(const Value* value) const {
        auto found = found_.shapes.find(value);
        return found == found_.shapes.end() ? kUniform : found->second;
    }
    bool uniform(const Value* value) const { return shape(value) == kUniform; }
    bool all_uniform(const std::vector<Value*>& values) const {
        for (const Value* value : values)
            if (!uniform(value)) return false;
        return true;
    }

    static LaneShape join(LaneShape a, LaneShape b) { return a == b ? a : kVarying; }

    void raise(const Value* value, LaneShape to) {
        auto [entry, fresh] = found_.shapes.try_emplace(value, to);
        if (fresh) {
            changed_ = true;
            return;
        }
        LaneShape joined = join(entry->second, to);
        if (joined != entry->second) {
            entry->second = joined;
            changed_ = true;
        }
    }
    void raise_all(const std::vector<Value*>& values, LaneShape to) {
        for (const Value* value : values) raise(value, to);
    }

    void visit(const Region& region) {
        for (const Operation* operation : region.operations) visit(*operation);
    }

    void visit(const Operation& operation) {
        switch (operation.op) {
            case Op::if_:
                return visit_if(operation);
            case Op::for_:
                return visit_for(operation);
            case Op::while_:
                return visit_while(operation);
            case Op::tid: {
                bool last = operation.ints[0] == kernel_.tid_rank - 1;
                return raise(operation.result(), last ? linear(1) : kUniform);
            }
            default:
                if (!operation.results.empty()) raise_all(operation.results, result_shape(operation));
        }
    }

    LaneShape result_shape(const Operation& operation) const {
        const auto& operands = operation.operands;
        switch (operation.op) {
#define WEFT_CLASS_atomic(id) case Op::id:
#include "ir/ops.def"
            return kVarying;  // each lane sees the updates of the lanes before it
            case Op::call_library:
                return operation.library->pure && operation.library->is_uniform && all_uniform(operands) ? kUniform
                                                                                                         : kVarying;
            case Op::dim: {  // all lanes have stacks of one extent
                const Operation* made = operands[0]->definition;
                return all_uniform(operands) || (made && made->op == Op::stack) ? kUniform : kVarying;
            }
            case Op::call:
            case Op::local_array:  // each lane has its own
            case Op::stack:
                return kVarying;
            case Op::add:
            case Op::sub:
            case Op::mul:
            case Op::shl:
            case Op::neg:
            case Op::cast:
            case Op::bitcast:
                return integer_shape(operation);
            case Op::select:
                if (operands[1] == operands[2]) return shape(operands[1]);
                return uniform(operands[0]) ? join(shape(operands[1]), shape(operands[2]))
                                            : choice(operation.result()->type, operands[1], operands[2]);
            case Op::min:
            case Op::max:
                return all_uniform(operands) ? kUniform : choice(operation.result()->type, operands[0], operands[1]);
            case Op::rem:
                if (all_uniform(operands)) return kUniform;
                return index_type(operation.result()->type) && near_linear(operands[0]) && uniform(operands[1])
                           ? kMostlyContiguous
                           : kVarying;
            default:
                return all_uniform(operands) ? kUniform : kVarying;
        }
    }

    // Narrow integers often wrap within a group, so only 32 and 64 bits count as indices.
    static bool index_type(Type type) { return type.is_int() && info(type.scalar()).bits >= 32; }
    // Whether lanes have consecutive numbers in most groups.
    bool near_linear(const Value* value) const { return shape(value) == linear(1) || shape(value).mostly_contiguous; }
    // One of two values, lane by lane: an index clamped or wrapped at a border is consecutive away from it.
    LaneShape choice(Type type, const Value* a, const Value* b) const {
        auto fits = [&](const Value* v) { return near_linear(v) || uniform(v); };
        return index_type(type) && fits(a) && fits(b) && (near_linear(a) || near_linear(b)) ? kMostlyContiguous
                                                                                            : kVarying;
    }

    LaneShape integer_shape(const Operation& operation) const {
        const auto& operands = operation.operands;
        if (all_uniform(operands)) return kUniform;
        Type type = operation.result()->type;
        if (!index_type(type)) return kVarying;
        LaneShape a = shape(operands[0]);
        LaneShape b = operands.size() > 1 ? shape(operands[1]) : kUniform;
        if (a.kind == LaneShape::Kind::varying || b.kind == LaneShape::Kind::varying) {
            bool moved = operation.op == Op::add || operation.op == Op::cast || operation.op == Op::bitcast ||
                         (operation.op == Op::sub && b == kUniform);
            bool from_index = index_type(operands[0]->type);
            return moved && from_index &&
                           ((a.mostly_contiguous && b == kUniform) || (a == kUniform && b.mostly_contiguous))
                       ? kMostlyContiguous
                       : kVarying;
        }
        switch (operation.op) {
            case Op::add:
                return linear(a.stride + b.stride);
            case Op::sub:
                return linear(a.stride - b.stride);
            case Op::neg:
                return linear(-a.stride);
            case Op::mul: {
                if (auto factor = constant_integer(operands[1])) return linear_by(a.stride, *factor);
                if (auto factor = constant_integer(operands[0])) return linear_by(b.stride, *factor);
                return kVarying;
            }
            case Op::shl: {
                auto count = constant_integer(operands[1]);
                if (!count || *count < 0 || *count > 20) return kVarying;
                return linear_by(a.stride, std::int64_t{1} << *count);
            }
            case Op::cast:
            case Op::bitcast: {
                if (!index_type(operands[0]->type)) return kVarying;
                // 32-bit numbers may wrap, unsigned ones right below 0: widened to 64 bits, numbers around the wrap are
                // not consecutive. Thread coordinates do not wrap.
                const bool widens = info(type.scalar()).bits > info(operands[0]->type.scalar()).bits;
                const Operation* from = operands[0]->definition;
                if (!widens || (from && from->op == Op::tid)) return a;
                return a == linear(1) ? kMostlyContiguous : kVarying;
            }
            default:
                return kVarying;
        }
    }

    // A stride that could make lanes wrap counts as varying.
    static LaneShape linear_by(std::int64_t stride, std::int64_t factor) {
        constexpr std::int64_t kLargest = 1 << 20;
        if (factor > kLargest || factor < -kLargest) return kVarying;
        std::int64_t product = stride * factor;
        return product > kLargest || product < -kLargest ? kVarying : linear(product);
    }

    void visit_if(const Operation& operation) {
        visit(operation.body(0));
        visit(operation.body(1));
        const auto& then_values = operation.body(0).terminator()->operands;
        const auto& else_values = operation.body(1).terminator()->operands;
        bool branch = uniform(operation.operands[0]);
        for (std::size_t i = 0; i < operation.results.size(); ++i) {
            if (then_values[i] == else_values[i])
                raise(operation.result(i), shape(then_values[i]));
            else if (branch)
                raise(operation.result(i), join(shape(then_values[i]), shape(else_values[i])));
            else
                raise(operation.result(i), choice(operation.result(i)->type, then_values[i], else_values[i]));
        }
    }

    void visit_for(const Operation& operation) {
        const Region& body = operation.body();
        const Value *lo = operation.operands[0], *hi = operation.operands[1], *step = operation.operands[2];
        std::vector<Value*> inits(operation.operands.begin() + 3, operation.operands.end());
        std::vector<Value*> carried(body.arguments.begin() + 1, body.arguments.end());
        if (ends_together(operation)) {
            for (Value* argument : carried) raise(argument, kVarying);
        } else {
            raise(body.arguments[0], uniform(step) ? shape(lo) : kVarying);
        }
        carry(carried, inits);
        visit(body);
        carry(carried, body.terminator()->operands);
        bool varying =
            !uniform_trip_count(shape(lo), shape(hi), shape(step)) || (operation.guarded && !uniform(carried.back()));
        finish_loop(operation, carried, varying);
    }

    // Lanes with different starts that count by ones to the same end may count together, each taking part from its
    // start on. Values that they carry change only from then on, and so vary.
    bool ends_together(const Operation& operation) const {
        const Value *lo = operation.operands[0], *hi = operation.operands[1];
        const std::optional<std::int64_t> step = constant_integer(operation.operands[2]);
        return step && std::abs(*step) == 1 && !operation.guarded && uniform(hi) &&
               shape(lo).kind == LaneShape::Kind::varying &&
               std::none_of(operation.operands.begin() + 3, operation.operands.end(),
                            [](const Value* init) { return ir::holds_array(init->type); });
    }

    void visit_while(const Operation& operation) {
        const Region &condition = operation.body(0), &body = operation.body(1);
        carry(condition.arguments, operation.operands);
        carry(body.arguments, operation.operands);
        visit(condition);
        visit(body);
        carry(condition.arguments, body.terminator()->operands);
        carry(body.arguments, body.terminator()->operands);
        finish_loop(operation, condition.arguments, !uniform(condition.terminator()->operands[0]));
    }

    void carry(const std::vector<Value*>& arguments, const std::vector<Value*>& values) {
        for (std::size_t i = 0; i < arguments.size(); ++i) raise(arguments[i], shape(values[i]));
    }

    void finish_loop(const Operation& operation, const std::vector<Value*>& carried, bool varying) {
        for (std::size_t i = 0; i < operation.results.size(); ++i)
            raise(operation.result(i), varying ? kVarying : shape(carried[i]));
    }

    // range(i, i + 3) runs three times in every lane.
    static bool uniform_trip_count(LaneShape lo, LaneShape hi, LaneShape step) {
        return step == kUniform && lo.kind != LaneShape::Kind::varying && lo == hi;
    }

    const ir::Function& kernel_;
    Uniformity& found_;
    bool changed_ = false;
};

// The first operation that can't run on lanes, with the reason.
std::optional<Uniformity::Remark> obstacle(const Region& region) {
    for (const Operation* operation : region.operations) {
        if (operation->op == Op::call)
            return Uniformity::Remark{operation, "runs one thread at a time: a function is called and not inlined"};
        for (const Region* nested : operation->regions)
            if (auto found = obstacle(*nested)) return found;
    }
    return std::nullopt;
}

// Remarks on operations that run lane by lane, or by gathers, in a kernel that does run on lanes.
void remark_on(const Region& region, Uniformity& found) {
    for (const Operation* operation : region.operations) {
        if (operation->op == Op::call_library && operation->library->form == ir::LibraryFunction::Form::each_lane)
            found.remarks.push_back(
                {operation, (operation->library->native ? "the C++ function '" : "the library function '") +
                                operation->library->symbol + "' is called for one lane after the other"});
        bool access = operation->op == Op::load || operation->op == Op::store;
        if (access && found.shape(operation->operands[0]).kind != LaneShape::Kind::varying) {
            int ndim = operation->operands[0]->type.ndim();
            const Value* last = ndim > 0 ? operation->operands[static_cast<std::size_t>(ndim)] : nullptr;
            bool unit = last && found.shape(last).kind == LaneShape::Kind::linear && found.shape(last).stride == 1;
            bool indexed = false;
            for (int axis = 1; axis <= ndim; ++axis)
                indexed |=
                    found.shape(operation->operands[static_cast<std::size_t>(axis)]).kind != LaneShape::Kind::uniform;
            if (indexed && !unit && !found.shape(last).mostly_contiguous)
                found.remarks.push_back({operation, std::string(operation->op == Op::load ? "reads" : "writes") +
                                                        " scattered elements: neighbouring threads do not touch "
                                                        "neighbouring elements of the last dimension"});
        }
        for (const Region* nested : operation->regions) remark_on(*nested, found);
    }
}

}  // namespace

LaneShape Uniformity::shape(const ir::Value* value) const {
    const auto found = shapes.find(value);
    return found == shapes.end() ? kUniform : found->second;
}

Uniformity find_uniformity(const ir::Function& kernel) {
    Uniformity uniformity;
    if (auto found = obstacle(kernel.body)) {
        uniformity.remarks.push_back(*found);
        return uniformity;
    }
    uniformity.runs_in_lanes = true;
    Fixpoint(kernel, uniformity).run();
    remark_on(kernel.body, uniformity);
    return uniformity;
}

}  // namespace weft::transform
