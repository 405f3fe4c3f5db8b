#include "transform/analysis/grid_order_conditions.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_set>

#include "ir/typing.h"
#include "ir/walk.h"
#include "transform/analysis/elements.h"
#include "transform/analysis/underlying_memory.h"
#include "types/objects.h"

namespace weft::transform {

using ir::Op;
using ir::Operation;
using ir::Value;

// ---- order ----

namespace {

// How the threads of a kernel access one array.
struct Accesses {
    bool reads = false, stores = false;
    std::optional<Op> atomics;
    bool mixes_atomics = false, sums_floats = false;
    std::optional<Indices> indices;  // joined over all accesses

    OrderShows order_shows(int rank) const {
        if ((!stores && !atomics) || tells_threads_apart(*indices, rank)) return OrderShows::nowhere;
        if (stores || reads || mixes_atomics) return OrderShows::in_results;
        return sums_floats ? OrderShows::in_rounding : OrderShows::nowhere;
    }
};

class OrderOfThreads {
public:
    explicit OrderOfThreads(const ir::Function& kernel) : kernel_(kernel), used_(ir::used_values(kernel)) {}

    OrderShows shows() {
        ir::for_each_operation(kernel_.body, [&](const Operation& operation) { visit(operation); });
        for (const auto& [array, accesses] : accesses_)
            shows_ = std::max(shows_, accesses.order_shows(kernel_.tid_rank));
        return shows_;
    }

private:
    void visit(const Operation& operation) {
        const Op op = operation.op;
        if (op == Op::call || ir::only_reports(op)) shows_ = OrderShows::in_results;
        if (op == Op::call_library) call(operation);
        const bool is_atomic = ir::is_atomic(op);
        if (!is_atomic && op != Op::load && op != Op::store) return;
        const Value* const array = operation.operands[0];
        if (ir::is_of_thread(array)) return;
        if (is_atomic && (!ir::applied(op) || used_.contains(operation.result()))) shows_ = OrderShows::in_results;
        const std::optional<Array> known = array_of(kernel_, array);
        if (known)
            add(accesses_[*known], operation);
        else if (op == Op::store || !object_reached(array))
            shows_ = OrderShows::in_results;
        else if (is_atomic)
            shows_ = std::max(shows_, OrderShows::in_rounding);  // of an adjoint, to the gradients of a mesh
    }

    // Library functions that only read objects of the runtime do not show the order.
    void call(const Operation& operation) {
        const ir::LibraryFunction& library = *operation.library;
        bool may_write = !library.pure || library.native || !library.writes.empty();
        for (const Value* operand : operation.operands) may_write |= ir::holds_array(operand->type);
        if (may_write) shows_ = OrderShows::in_results;
    }

    static void add(Accesses& to, const Operation& access) {
        Indices indices = indices_of(access);
        if (to.indices)
            join(*to.indices, indices);
        else
            to.indices = std::move(indices);
        to.reads |= access.op == Op::load;
        to.stores |= access.op == Op::store;
        if (!ir::is_atomic(access.op)) return;
        const Op kind = access.op == Op::atomic_sub ? Op::atomic_add : access.op;
        to.mixes_atomics |= to.atomics && to.atomics != kind;
        to.atomics = kind;
        const Type value = access.operands.back()->type;
        to.sums_floats |= kind == Op::atomic_add && info(value.scalar()).is_float();
    }

    const ir::Function& kernel_;
    const std::unordered_set<const Value*> used_;
    std::map<Array, Accesses> accesses_;
    OrderShows shows_ = OrderShows::nowhere;
};

}  // namespace

OrderShows order_shows(const ir::Function& kernel) { return OrderOfThreads(kernel).shows(); }

// ---- queries ----

std::optional<OwnQuery::ParameterField> part_of(const ir::Function& kernel, const Value* value) {
    OwnQuery::ParameterField part{-1, {}};
    while (value->definition && value->definition->op == Op::extract) {
        const auto& step = value->definition->ints;
        part.fields.insert(part.fields.begin(), step.begin(), step.end());
        value = value->definition->operands[0];
    }
    if (!ir::is_parameter(kernel, value) || kernel.implicit(value)) return {};
    part.parameter = value->index;
    return part;
}

namespace {

bool is_point_type(Type type) { return type.is_vector() && type.components() == 3 && ir::is_smooth(type); }

// The id of the hash grid, if the value is a field of a hash grid's descriptor; else null.
const Value* grid_with(const Value* field) {
    const Operation* const load = field->definition;
    if (!load || load->op != Op::load) return nullptr;
    const Operation* const object = object_reached(load->operands[0]);
    if (!object || object->ints[0] != static_cast<std::int64_t>(ObjectKind::hash_grid)) return nullptr;
    return object->operands[0];
}

class Queries {
public:
    explicit Queries(const ir::Function& kernel) : kernel_(kernel) {}

    // A query multiplies the ends of its range by the inverse of the cells' width (builtins/hash_grid.cpp).
    std::vector<OwnQuery> all() {
        ir::for_each_operation(kernel_.body, [&](const Operation& operation) {
            if (operation.op != Op::mul || !operation.result()->type.is_scalar()) return;
            for (const std::size_t i : {std::size_t{0}, std::size_t{1}})
                if (const Value* id = grid_with(operation.operands[i])) add(id, operation.operands[1 - i]);
        });
        return std::move(found_);
    }

private:
    void add(const Value* id, const Value* halo) {
        const std::optional<OwnQuery::ParameterField> named = part_of(kernel_, id);
        if (!named) return;
        visited_.clear();
        std::optional<OwnQuery> query = own_place(halo);
        if (!query) return;
        query->id = *named;
        if (std::ranges::find(found_, *query) == found_.end()) found_.push_back(std::move(*query));
    }

    // The query position among the values that `value` is computed from.
    std::optional<OwnQuery> own_place(const Value* value) {
        if (!visited_.insert(value).second || !value->definition) return {};
        if (auto found = query_at(value)) return found;
        const Operation& made = *value->definition;
        if (!made.regions.empty()) return {};
        for (const Value* operand : made.operands)
            if (!operand->type.is_array())
                if (auto found = own_place(operand)) return found;
        return {};
    }

    // Set if `value` is a vector in the thread's own element, or a component of one.
    std::optional<OwnQuery> query_at(const Value* value) const {
        std::vector<std::int64_t> path;
        while (value->definition && value->definition->op == Op::extract) {
            const auto& step = value->definition->ints;
            path.insert(path.begin(), step.begin(), step.end());
            value = value->definition->operands[0];
        }
        const Operation* const load = value->definition;
        if (!load || load->op != Op::load || load->operands.size() != 2 || !is_coordinate(load->operands[1])) return {};
        OwnQuery query;
        query.point_type = value->type;
        const Value* array = load->operands[0];
        for (; array->definition && array->definition->op == Op::member; array = array->definition->operands[0])
            query.fields.insert(query.fields.begin(), array->definition->ints.begin(), array->definition->ints.end());
        for (std::size_t i = 0; query.point_type.is_struct() && i < path.size(); ++i) {
            query.point_type = query.point_type.fields()[static_cast<std::size_t>(path[i])].type;
            query.fields.push_back(path[i]);
        }
        const std::optional<OwnQuery::ParameterField> points = part_of(kernel_, array);
        if (!points || !array->type.is_array() || !is_point_type(query.point_type)) return {};
        query.points = *points;
        return query;
    }

    static bool is_coordinate(const Value* index) {
        while (index->definition && index->definition->op == Op::cast) index = index->definition->operands[0];
        return index->definition && index->definition->op == Op::tid && index->definition->ints[0] == 0;
    }

    const ir::Function& kernel_;
    std::unordered_set<const Value*> visited_;
    std::vector<OwnQuery> found_;
};

}  // namespace

std::vector<OwnQuery> own_queries(const ir::Function& kernel) {
    if (kernel.tid_rank != 1) return {};
    return Queries(kernel).all();
}

}  // namespace weft::transform
