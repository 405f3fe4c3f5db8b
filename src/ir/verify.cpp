#include <unordered_set>

#include "ir/ir.h"
#include "ir/typing.h"
#include "support/error.h"

namespace weft::ir {
namespace {

// The number of arguments that a printf format takes.
std::size_t conversions(const std::string& format) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < format.size(); ++i) {
        if (format[i] != '%') continue;
        if (i + 1 < format.size() && format[i + 1] == '%') {
            ++i;
        } else {
            ++count;
        }
    }
    return count;
}

class Verifier {
public:
    explicit Verifier(const Function& function)
        : function_(function), visible_(static_cast<std::size_t>(function.value_count()), nullptr) {}

    void run() {
        if (function_.is_kernel && !function_.result.is_none()) fail("a kernel returns nothing");
        if (function_.tid_rank < 0 || function_.tid_rank > 4) fail("the rank of tid() is 0 to 4");
        for (const int at : function_.uncontended_parameters)
            if (at < 0 || at >= static_cast<int>(function_.parameters().size()))
                fail("'uncontended' names a parameter");
        region(function_.body, nullptr);
    }

private:
    [[noreturn]] void fail(const std::string& mistake) const {
        std::string text = "in '" + function_.name + "'";
        if (operation_) {
            text += std::string(": operation '") + op_name(operation_->op) + "'";
            if (operation_->span) text += " (at " + operation_->span.location() + ")";
        }
        throw InternalError(text + ": " + mistake + "\n" + print(function_));
    }
    void expect(bool holds, const char* what) const {
        if (!holds) fail(std::string("expected ") + what);
    }

    void define(const Value* value) {
        const std::size_t id = static_cast<std::size_t>(value->id);
        expect(id < visible_.size() && visible_[id] == nullptr, "every value to be defined once, in its function");
        visible_[id] = value;
    }
    void forget(const Value* value) { visible_[static_cast<std::size_t>(value->id)] = nullptr; }

    void region(const Region& region, const Operation* owner) {
        const Operation* const outer = operation_;
        expect(region.owner == owner, "a region to know its operation");
        for (std::size_t i = 0; i < region.arguments.size(); ++i) {
            const Value* argument = region.arguments[i];
            expect(argument->region == &region && !argument->definition && argument->index == static_cast<int>(i),
                   "a region argument to know its place");
            define(argument);
        }
        const Op terminator = owner ? Op::yield : Op::return_;
        for (const Operation* operation : region.operations) {
            operation_ = operation;
            const bool last = operation == region.operations.back();
            const bool ends = operation->op == Op::yield || operation->op == Op::return_;
            expect(ends == last && (!last || operation->op == terminator),
                   owner ? "a region to end in its only yield" : "a body to end in its only return");
            one(*operation, region);
        }
        if (region.operations.empty()) fail("expected a region to end in a yield or return; it is empty");
        // The scope of values defined here ends.
        for (const Operation* operation : region.operations)
            for (const Value* result : operation->results) forget(result);
        for (const Value* argument : region.arguments) forget(argument);
        operation_ = outer;
    }

    void one(const Operation& operation, const Region& parent) {
        expect(operation.parent == &parent, "an operation to know its region");
        for (const Value* operand : operation.operands) {
            expect(operand != nullptr, "every operand to be there");
            const std::size_t id = static_cast<std::size_t>(operand->id);
            expect(id < visible_.size() && visible_[id] == operand,
                   "operands to be defined above, in this or an outer region");
        }
        switch (operation.op) {
            case Op::if_:
                if_(operation);
                break;
            case Op::for_:
                for_(operation);
                break;
            case Op::while_:
                while_(operation);
                break;
            case Op::tile_generate:
            case Op::tile_each:
                tile_indices(operation);
                break;
            case Op::tile_reduce:
                tile_reduce(operation);
                break;
            case Op::return_:
                return_(operation);
                break;
            default:
                plain(operation);
        }
        for (std::size_t i = 0; i < operation.results.size(); ++i) {
            const Value* result = operation.results[i];
            expect(result->definition == &operation && !result->region && result->index == static_cast<int>(i),
                   "a result to know its operation");
            define(result);
        }
    }

    void plain(const Operation& operation) const {
        expect(operation.regions.empty(), "no regions");
        Type type;
        try {
            type = result_type(operation, operation.results.empty() ? Type::none() : operation.results[0]->type);
        } catch (const TypeMistake& mistake) {
            fail(mistake.what());
        }
        expect(operation.results.size() == (type.is_none() ? 0u : 1u), "as many results as the operation gives");
        if (!type.is_none() && operation.results[0]->type != type) {
            fail("the result is " + operation.results[0]->type.ir_name() + ", expected " + type.ir_name());
        }
        if (operation.op == Op::tid && function_.is_kernel) {
            expect(operation.ints[0] < function_.tid_rank, "an axis below the rank of tid()");
        }
        if (operation.op == Op::print || operation.op == Op::raise) {
            std::size_t numbers = 0;
            for (const Value* operand : operation.operands) {
                const Operation* made = operand->definition;
                const bool is_local = made && made->op == Op::local_array;
                expect(is_local || !operand->type.is_array(), "arrays that are made here");
                numbers += static_cast<std::size_t>(is_local ? made->ints[0] : leaf_count(operand->type));
            }
            expect(conversions(operation.text) == numbers, "as many numbers as the format has conversions");
        }
    }

    void expect_types(std::span<Value* const> values, std::span<Value* const> wanted, const char* what) const {
        expect(values.size() == wanted.size(), what);
        for (std::size_t i = 0; i < values.size(); ++i) expect(values[i] && values[i]->type == wanted[i]->type, what);
    }
    void expect_yield(const Region& region, std::span<Value* const> wanted) const {
        const Operation* end = region.terminator();
        expect(end && end->op == Op::yield, "a region to end in a yield");
        expect_types(end->operands, wanted, "a yield that fits the results");
    }

    void if_(const Operation& operation) {
        expect(operation.operands.size() == 1 && operation.operands[0]->type.is_bool(), "one bool");
        expect(operation.regions.size() == 2, "two regions");
        for (const Region* arm : operation.regions) {
            expect(arm->arguments.empty(), "regions without arguments");
            region(*arm, &operation);
            expect_yield(*arm, operation.results);
        }
    }

    void for_(const Operation& operation) {
        expect(operation.operands.size() >= 3, "three bounds");
        const Type counter = operation.operands[0]->type;
        expect(counter.is_int() && operation.operands[1]->type == counter && operation.operands[2]->type == counter,
               "bounds of one integer type");
        expect(operation.regions.size() == 1, "one region");
        const std::span<Value* const> inits = std::span(operation.operands).subspan(3);
        const Region& body = operation.body();
        expect(!body.arguments.empty() && body.arguments[0]->type == counter, "a counter of the type of the bounds");
        expect_types(std::span(body.arguments).subspan(1), inits, "carried arguments of the types of the inits");
        expect_types(operation.results, inits, "results of the types of the inits");
        expect(!operation.guarded || (!inits.empty() && inits.back()->type.is_bool()),
               "a guarded for to carry a bool last");
        region(body, &operation);
        expect_yield(body, operation.results);
    }

    void while_(const Operation& operation) {
        expect(operation.regions.size() == 2, "two regions");
        expect_types(operation.results, operation.operands, "results of the types of the inits");
        for (const Region* part : operation.regions) {
            expect_types(part->arguments, operation.operands, "carried arguments of the types of the inits");
            region(*part, &operation);
        }
        const Operation* test = operation.body(0).terminator();
        expect(test->operands.size() == 1 && test->operands[0]->type.is_bool(), "a condition that yields one bool");
        expect_yield(operation.body(1), operation.results);
    }

    void tile_indices(const Operation& operation) {
        expect(operation.operands.empty() && operation.regions.size() == 1, "one region and no operands");
        const Region& body = operation.body();
        expect(body.arguments.size() == operation.ints.size(), "one index for each extent");
        std::int64_t count = 1;
        for (std::size_t i = 0; i < body.arguments.size(); ++i) {
            expect(body.arguments[i]->type == i32_type(), "indices of type i32");
            count *= operation.ints[i];
        }
        region(body, &operation);
        const Operation& end = *body.terminator();
        if (operation.op == Op::tile_each) {
            expect(operation.results.empty() && end.operands.empty(), "no results");
            return;
        }
        expect(operation.results.size() == 1 && operation.results[0]->type.is_tile(), "a tile as the result");
        const Type type = operation.results[0]->type;
        expect(type.size() == count, "as many elements as there are indices");
        expect(end.operands.size() == 1 && end.operands[0]->type == type.element(), "a yield of an element");
    }

    void tile_reduce(const Operation& operation) {
        expect(operation.operands.size() == 1 && operation.operands[0]->type.is_tile(), "a tile");
        expect(operation.regions.size() == 1 && operation.body().arguments.size() == 2, "a region of two elements");
        const Type element = operation.operands[0]->type.element();
        for (const Value* argument : operation.body().arguments) expect(argument->type == element, "elements");
        region(operation.body(), &operation);
        expect_yield(operation.body(), operation.results);
        expect(operation.results.size() == 1 && operation.results[0]->type == element, "an element as the result");
    }

    void return_(const Operation& operation) const {
        const Type result = function_.result;
        const std::vector<Value*>& values = operation.operands;
        if (result.is_none()) {
            expect(values.empty(), "nothing to be returned");
        } else if (values.size() == 1) {
            expect(values[0]->type == result, "a value of the function's result type");
        } else {
            expect(result.is_tuple() && result.elements().size() == values.size(),
                   "as many values as the function returns");
            for (std::size_t i = 0; i < values.size(); ++i) {
                expect(values[i]->type == result.elements()[i], "values of the function's result types");
            }
        }
    }

    const Function& function_;
    std::vector<const Value*> visible_;  // by id: the value while it is in scope
    const Operation* operation_ = nullptr;
};

// Callees must belong to the module.
void expect_callees(const Region& region, const std::unordered_set<const Function*>& functions) {
    for (const Operation* operation : region.operations) {
        if (operation->op == Op::call && !functions.contains(operation->function)) {
            throw InternalError("a call leads to '" + operation->function->name + "', which is not in the module");
        }
        for (const Region* inner : operation->regions) expect_callees(*inner, functions);
    }
}

}  // namespace

void verify(const Function& function) { Verifier(function).run(); }

void verify(const Module& module) {
    std::unordered_set<const Function*> functions;
    std::unordered_set<std::string_view> names;
    for (const auto& function : module.functions) {
        functions.insert(function.get());
        if (!names.insert(function->name).second)
            throw InternalError("two functions are called '" + function->name + "'");
    }
    for (const auto& function : module.functions) {
        if (function->reverse_of && function->body.operations.empty()) continue;  // its body is not written yet
        verify(*function);
        expect_callees(function->body, functions);
    }
}

}  // namespace weft::ir
