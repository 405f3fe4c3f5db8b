// Threads in the order of a hash grid: each loads its coordinate from an array.
//
//   before:  kernel @k(...)                            %i = tid 0; ... %x = load %points[%i]
//   after:   kernel @k(..., %order: array<i32> order)  %k = tid 0; %i = load %order[%k]; ... %x = load %points[%i]
//
// Loads of neighbours then read copies that are sorted in that order, so that the points of a cell lie side by side. A
// query gives a neighbour as element `at` of the grid's points by cells, and `at` is also its index in the sorted
// copies.
//
//   before:  %at = ...; %j = load %cells[%at]; ... %y = load %points[%j]
//   after:   %at = ...; %j = load %cells[%at]; ... %y = load %sorted[%at]
//
// In adjoints, additions to gradients of neighbours go to gradients of these copies; the launch adds these up.
//
// Each grid has copies in its own order. If there are several grids, the one that gives the threads their order is not
// known here. Loads at a thread's own position then read separate copies in the order of the threads. The launch has
// these already if that is the order of the grid that found the neighbours.
#include "transform/passes/follow_grid_order.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ir/builder.h"
#include "ir/walk.h"
#include "support/error.h"
#include "transform/analysis/elements.h"
#include "transform/analysis/grid_order_conditions.h"
#include "transform/analysis/underlying_memory.h"
#include "types/objects.h"

namespace weft::transform {

using ir::Op;
using ir::Operation;
using ir::Region;
using ir::Value;

namespace {

// Replaces every coordinate by its element of the order; gives that value.
Value* replace_coordinates(ir::Function& kernel, Value* order) {
    ir::ValueMap map(kernel);
    std::vector<const Value*> coordinates;
    ir::for_each_operation(kernel.body, [&](const Operation& operation) {
        if (operation.op == Op::tid) coordinates.push_back(operation.result());
    });
    std::vector<Operation*>& operations = kernel.body.operations;
    const std::vector<Operation*> before = std::exchange(operations, {});
    ir::Builder b(kernel, kernel.body);
    Value* const own = b.load(order, {b.tid(0)});
    for (const Value* coordinate : coordinates) map.set(coordinate, own);
    const std::vector<Operation*> first = operations;
    operations = before;
    ir::replace_uses(kernel.body, map);
    operations.insert(operations.begin(), first.begin(), first.end());
    return own;
}

// The ids of the grids, each once.
std::vector<OwnQuery::ParameterField> grids_of(const std::vector<OwnQuery>& queries) {
    std::vector<OwnQuery::ParameterField> grids;
    for (const OwnQuery& query : queries)
        if (std::ranges::find(grids, query.id) == grids.end()) grids.push_back(query.id);
    return grids;
}

// Turns loads at the thread's own point, and at its neighbours, into loads from sorted copies.
class Sorter {
public:
    Sorter(ir::Function& kernel, const Value* own, const std::vector<OwnQuery>& queries)
        : kernel_(kernel), own_(own), grids_(grids_of(queries)) {
        ir::for_each_operation(kernel.body, [&](const Operation& operation) {
            if (!ir::writes(operation.op) || ir::gradient_holding(operation.operands[0])) return;
            if (const auto array = array_of(kernel, operation.operands[0])) written_.insert(*array);
        });
    }

    // Changes only arrays that are read at neighbours.
    void run() {
        std::vector<Access> loads;
        ir::for_each_operation(kernel_.body, [&](Operation& operation) {
            if (operation.op != Op::load || operation.operands.size() != 2) return;
            const std::optional<Array> array = whole_array(operation.operands[0]);
            if (!array || written_.contains(*array)) return;
            const Value* number = without_sign(operation.operands[1]);
            if (number == own_) {
                loads.push_back({&operation, *array, kOfOrder, own_->definition->operands[1]});
            } else if (const auto position = grid_position(number, operation)) {
                loads.push_back({&operation, *array, grids_.size() == 1 ? kOfOrder : position->grid, position->at});
                at_neighbours_.insert(*array);
            }
        });
        for (const Access& load : loads)
            if (at_neighbours_.contains(load.array)) sorted_[{load.array, load.grid}] = nullptr;
        const std::vector<Access> additions = find_additions();
        for (auto& [key, sorted] : sorted_) {
            const auto& [array, grid] = key;
            const Type type = type_of(array);
            SortedCopy copy{number_of({array.parameter, array.path}, [](Type type) { return type.is_array(); })};
            if (grid != kOfOrder) copy.grid = number_of(grids_[grid], &is_id);
            copy.has_gradient = std::ranges::any_of(additions, [&](const Access& one) {
                return !(one.array < array) && !(array < one.array) && one.grid == grid;
            });
            if (copy.of >= SortedCopy::kMost || copy.grid >= SortedCopy::kMost - 1) continue;
            sorted = kernel_.add_argument(&kernel_.body, type, "sorted");
            kernel_.implicit_parameters.push_back({ir::ImplicitParameter::Kind::sorted, copy.implicit_of()});
        }
        for (const Access& load : loads)
            if (const auto found = sorted_.find({load.array, load.grid}); found != sorted_.end() && found->second)
                load.operation->operands = {found->second, load.at};
        for (const Access& load : additions)
            if (const auto found = sorted_.find({load.array, load.grid}); found != sorted_.end() && found->second)
                load.operation->operands = {gradient_of(found->second), load.at, load.operation->operands.back()};
    }

private:
    static constexpr std::size_t kOfOrder = static_cast<std::size_t>(-1);  // the grid that gives the order

    struct GridPosition {
        std::size_t grid;  // index in grids_
        Value* at;
    };
    struct Access {
        Operation* operation;
        Array array;
        std::size_t grid;
        Value* at;
    };

    // Additions to gradients of arrays with copies, at the thread's own point and at neighbours. The kernel must not
    // access these gradients in other ways.
    std::vector<Access> find_additions() const {
        const std::unordered_set<const Value*> used = ir::used_values(kernel_);
        std::vector<Access> additions;
        std::set<Array> looked_at, at_neighbours;
        ir::for_each_operation(kernel_.body, [&](Operation& operation) {
            const bool adds = operation.op == Op::atomic_add && !used.contains(operation.result());
            if (!adds && operation.op != Op::load && !ir::writes(operation.op)) return;
            const Value* const to = operation.operands[0];
            std::optional<Array> array = ir::gradient_holding(to) ? array_of(kernel_, to) : std::nullopt;
            if (!array) return;
            array->gradient = false;
            if (!adds) looked_at.insert(*array);
            const Operation* made = to->definition;
            if (!adds || made->op != Op::grad_of || operation.operands.size() != 3 || !whole_array(made->operands[0]) ||
                !is_added_up(to->type.element()))
                return;
            const Value* number = without_sign(operation.operands[1]);
            const auto position = number == own_
                                      ? GridPosition{kOfOrder, own_->definition->operands[1]}
                                      : grid_position(number, operation).value_or(GridPosition{kOfOrder, nullptr});
            if (!position.at) return;
            const std::size_t grid = grids_.size() == 1 ? kOfOrder : position.grid;
            if (!sorted_.contains({*array, grid})) return;
            if (number != own_) at_neighbours.insert(*array);
            additions.push_back({&operation, *array, grid, position.at});
        });
        std::erase_if(additions, [&](const Access& one) {
            return looked_at.contains(one.array) || !at_neighbours.contains(one.array);
        });
        return additions;
    }

    static bool is_added_up(Type element) {
        return (element.is_scalar() || element.is_numeric_aggregate()) &&
               (element.scalar() == Scalar::f32 || element.scalar() == Scalar::f64);
    }

    // The gradient is taken at the beginning of the body and so dominates all uses.
    Value* gradient_of(Value* array) {
        Value*& gradient = gradients_[array];
        if (gradient) return gradient;
        std::vector<Operation*>& operations = kernel_.body.operations;
        const std::vector<Operation*> before = std::exchange(operations, {});
        ir::Builder b(kernel_, kernel_.body);
        gradient = b.grad_of(array);
        operations.insert(operations.end(), before.begin(), before.end());
        return gradient;
    }

    static bool is_id(Type type) { return type == u64_type(); }

    Type type_of(const Array& array) const {
        Type type = kernel_.parameters()[static_cast<std::size_t>(array.parameter)]->type;
        for (const std::int64_t field : array.path) type = type.fields()[static_cast<std::size_t>(field)].type;
        return type;
    }

    // The number of the part among the leaves for whose types `counts` holds.
    template <typename Counts>
    int number_of(const OwnQuery::ParameterField& part, const Counts& counts) const {
        std::vector<Type> types;
        for (std::size_t i = 0; i + kernel_.implicit_parameters.size() < kernel_.parameters().size(); ++i)
            types.push_back(kernel_.parameters()[i]->type);
        int number = -1, next = 0;
        for_each_leaf(types, [&](Type type, int parameter, const std::vector<std::int64_t>& fields) {
            if (!counts(type)) return;
            if (part == OwnQuery::ParameterField{parameter, fields}) number = next;
            ++next;
        });
        WEFT_CHECK(number >= 0, "an array or id of a hash grid's order is in no parameter");
        return number;
    }

    // Set if the value is an array of the launch, from its first element on, and no gradient.
    std::optional<Array> whole_array(const Value* value) const {
        const Value* parameter = value;
        while (parameter->definition && parameter->definition->op == Op::extract)
            parameter = parameter->definition->operands[0];
        if (!ir::is_parameter(kernel_, parameter) || kernel_.implicit(parameter)) return {};
        return array_of(kernel_, value);
    }

    // The index without the choice for negative numbers: numbers of points never count from the end.
    static const Value* without_sign(const Value* index) {
        const Operation* made = index->definition;
        if (!made || made->op != Op::select) return index;
        const Operation* test = made->operands[0]->definition;
        const bool is_choice = test && test->op == Op::cmp_lt && test->operands[0] == made->operands[2] &&
                               constant_integer(test->operands[1]) == 0;
        return is_choice ? made->operands[2] : index;
    }

    // The position of the number in the order. Set if the number is a point that a query gives, and `use` runs only if
    // the query gave one.
    std::optional<GridPosition> grid_position(const Value* number, const Operation& use) const {
        const Operation* made = number->definition;
        if (!made || made->op != Op::if_) return grid_position_of_point(number);
        const auto which = static_cast<std::size_t>(number->index);
        const std::optional<GridPosition> position =
            grid_position_of_point(made->body(0).terminator()->operands[which]);
        if (!position || !is_seen(position->at, *made)) return {};
        for (const Region* region = use.parent; region->owner; region = region->owner->parent) {
            const Operation& around = *region->owner;
            if (around.op == Op::if_ && region == &around.body(0) && around.operands[0] == made->operands[0])
                return position;
        }
        return {};
    }

    // The index of a load from the grid's points by cells.
    std::optional<GridPosition> grid_position_of_point(const Value* number) const {
        const Operation* load = number->definition;
        if (!load || load->op != Op::load) return {};
        const Operation* object = object_behind(load->operands[0]);
        const Operation* field = load->operands[0]->definition;
        if (!object || object->ints[0] != static_cast<std::int64_t>(ObjectKind::hash_grid) || field->op != Op::load)
            return {};
        const Operation* member = field->operands[0]->definition;
        static const auto kPoints =
            static_cast<std::int64_t>(descriptor_type(ObjectKind::hash_grid).field_index("points").value());
        if (member->op != Op::member || member->ints[0] != kPoints) return {};
        const auto named = part_of(kernel_, object->operands[0]);
        const auto grid = named ? std::ranges::find(grids_, *named) : grids_.end();
        if (grid == grids_.end()) return {};
        return GridPosition{static_cast<std::size_t>(grid - grids_.begin()), load->operands[1]};
    }

    // Whether a value is defined before an operation, not inside of it.
    static bool is_seen(const Value* value, const Operation& operation) {
        const Region* const from = ir::region_of(value);
        for (const Region* region = operation.parent; region; region = region->owner ? region->owner->parent : nullptr)
            if (region == from) return true;
        return false;
    }

    ir::Function& kernel_;
    const Value* own_;
    std::vector<OwnQuery::ParameterField> grids_;
    std::set<Array> written_, at_neighbours_;
    std::map<std::pair<Array, std::size_t>, Value*> sorted_;  // by array and grid
    std::map<const Value*, Value*> gradients_;                // by the copy
};

}  // namespace

namespace {

void visit_leaves(Type type, int parameter, std::vector<std::int64_t>& fields, const Leaf& visit) {
    if (!type.is_struct()) return visit(type, parameter, fields);
    for (std::size_t i = 0; i < type.fields().size(); ++i) {
        fields.push_back(static_cast<std::int64_t>(i));
        visit_leaves(type.fields()[i].type, parameter, fields, visit);
        fields.pop_back();
    }
}

}  // namespace

std::size_t grids_asked(const ir::Function& kernel) { return grids_of(own_queries(kernel)).size(); }

void for_each_leaf(std::span<const Type> parameters, const Leaf& visit) {
    std::vector<std::int64_t> fields;
    for (std::size_t i = 0; i < parameters.size(); ++i) visit_leaves(parameters[i], static_cast<int>(i), fields, visit);
}

void follow_grid_order(ir::Function& kernel, bool sorts) {
    if (kernel.tid_rank != 1) return;
    const std::vector<OwnQuery> queries = own_queries(kernel);
    Value* const order = kernel.add_argument(&kernel.body, Type::array(i32_type(), 1), "order");
    kernel.implicit_parameters.push_back({ir::ImplicitParameter::Kind::order, 0});
    const Value* const own = replace_coordinates(kernel, order);
    if (sorts && !queries.empty()) Sorter(kernel, own, queries).run();
}

}  // namespace weft::transform
