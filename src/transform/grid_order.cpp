// Threads in the order of a hash grid: each asks an array for the coordinate that it takes.
//
// before:  kernel @k(...)                            %i = tid 0; ... %x = load %points[%i]
// after:   kernel @k(..., %order: array<i32> order)  %k = tid 0; %i = load %order[%k]; ... %x = load %points[%i]
//
// What is read of neighbours then comes out of copies that stand in that order too, so that those of a cell lie side by
// side. The number of a neighbour is the element `at` of the grid's points by cells, which are the order.
//
// before:  %at = ...; %j = load %cells[%at]; ... %y = load %points[%j]
// after:   %at = ...; %j = load %cells[%at]; ... %y = load %sorted[%at]
#include <map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ir/builder.h"
#include "ir/walk.h"
#include "transform/analysis/memory.h"
#include "transform/analysis/threads.h"
#include "transform/pipeline.h"
#include "types/objects.h"

namespace weft::transform {

using ir::Op;
using ir::Operation;
using ir::Region;
using ir::Value;

namespace {

// Makes every coordinate what the order says; gives the value that stands for it.
Value* replace_coordinates(ir::Function& kernel, Value* order) {
    ir::ValueMap map(kernel);
    std::vector<const Value*> coordinates;
    ir::for_each_operation(kernel.body, [&](const Operation& operation) {
        if (operation.op == Op::tid) coordinates.push_back(operation.result());
    });
    // Made at the end of the body and moved to its beginning.
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

// Makes loads at the thread's own place, and at those of its neighbours, loads of sorted copies.
class Sorter {
public:
    Sorter(ir::Function& kernel, const Value* own, const OwnQuery& query) : kernel_(kernel), own_(own), query_(query) {
        ir::for_each_operation(kernel.body, [&](const Operation& operation) {
            if (ir::writes(operation.op)) written_.insert(ir::origin_of(operation.operands[0]));
        });
    }

    // Only of arrays that are read at neighbours.
    void run() {
        std::vector<std::pair<Operation*, Value*>> loads;
        ir::for_each_operation(kernel_.body, [&](Operation& operation) {
            if (operation.op != Op::load || operation.operands.size() != 2) return;
            const Value* array = operation.operands[0];
            if (!ir::is_parameter(kernel_, array) || kernel_.implicit(array) || written_.contains(array)) return;
            const Value* number = without_sign(operation.operands[1]);
            Value* const at = number == own_ ? own_->definition->operands[1] : place_of(number, operation);
            if (!at) return;
            if (number != own_) sorted_[array] = nullptr;
            loads.emplace_back(&operation, at);
        });
        for (auto& [array, sorted] : sorted_) {
            sorted = kernel_.add_argument(&kernel_.body, array->type, "sorted");
            kernel_.implicit_parameters.push_back({ir::ImplicitParameter::Kind::sorted, array->index});
        }
        for (const auto& [load, at] : loads)
            if (const auto found = sorted_.find(load->operands[0]); found != sorted_.end())
                load->operands = {found->second, at};
    }

private:
    // Numbers of points never count from the end.
    static const Value* without_sign(const Value* index) {
        const Operation* made = index->definition;
        if (!made || made->op != Op::select) return index;
        const Operation* test = made->operands[0]->definition;
        const bool is_choice = test && test->op == Op::cmp_lt && test->operands[0] == made->operands[2] &&
                               constant_integer(test->operands[1]) == 0;
        return is_choice ? made->operands[2] : index;
    }

    // Where the number stands in the order, if it is one of the points that the query gives and `use` runs only where
    // it gave one.
    Value* place_of(const Value* number, const Operation& use) const {
        const Operation* made = number->definition;
        if (!made || made->op != Op::if_) return place_of_point(number);
        const auto which = static_cast<std::size_t>(number->index);
        Value* const at = place_of_point(made->body(0).terminator()->operands[which]);
        if (!at || !is_seen(at, *made)) return nullptr;
        for (const Region* region = use.parent; region->owner; region = region->owner->parent) {
            const Operation& around = *region->owner;
            if (around.op == Op::if_ && region == &around.body(0) && around.operands[0] == made->operands[0]) return at;
        }
        return nullptr;
    }

    // The index of a load from the grid's points by cells.
    Value* place_of_point(const Value* number) const {
        const Operation* load = number->definition;
        if (!load || load->op != Op::load) return nullptr;
        const Operation* object = object_behind(load->operands[0]);
        const Operation* field = load->operands[0]->definition;
        if (!object || !names_grid(*object) || field->op != Op::load) return nullptr;
        const Operation* member = field->operands[0]->definition;
        static const auto kPoints =
            static_cast<std::int64_t>(descriptor_type(ObjectKind::hash_grid).field_index("points").value());
        return member->op == Op::member && member->ints[0] == kPoints ? load->operands[1] : nullptr;
    }

    bool names_grid(const Operation& object) const {
        return object.ints[0] == static_cast<std::int64_t>(ObjectKind::hash_grid) &&
               part_of(kernel_, object.operands[0]) == query_.id;
    }

    // Whether a value is there before an operation, not made inside of it.
    static bool is_seen(const Value* value, const Operation& operation) {
        const Region* const from = ir::region_of(value);
        for (const Region* region = operation.parent; region; region = region->owner ? region->owner->parent : nullptr)
            if (region == from) return true;
        return false;
    }

    ir::Function& kernel_;
    const Value* own_;
    const OwnQuery& query_;
    std::unordered_set<const Value*> written_;
    struct ByIndex {
        bool operator()(const Value* a, const Value* b) const { return a->index < b->index; }
    };
    std::map<const Value*, Value*, ByIndex> sorted_;  // by the parameter that it is a copy of
};

}  // namespace

void follow_grid_order(ir::Function& kernel, bool sorts) {
    if (kernel.tid_rank != 1) return;
    const std::vector<OwnQuery> queries = own_queries(kernel);
    Value* const order = kernel.add_argument(&kernel.body, Type::array(i32_type(), 1), "order");
    kernel.implicit_parameters.push_back({ir::ImplicitParameter::Kind::order, 0});
    const Value* const own = replace_coordinates(kernel, order);
    // Of several grids one gives the order, and which is not known here.
    if (sorts && queries.size() == 1) Sorter(kernel, own, queries.front()).run();
}

}  // namespace weft::transform
