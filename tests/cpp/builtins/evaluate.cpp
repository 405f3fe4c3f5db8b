#include "builtins/evaluate.h"

#include <deque>
#include <stdexcept>

#include "ir/interpreter.h"

namespace weft::builtins::testing {

Evaluated call(std::string_view name, const std::vector<Actual>& arguments, std::vector<Evaluated>* inout) {
    std::vector<Argument> offered;
    for (const Actual& a : arguments) offered.push_back({.type = a.type});
    for (const Entry* entry : overloads(name)) {
        const Match m = match(*entry, offered);
        if (!m.ok) continue;
        ir::Module module;
        ir::Function& function = *module.add("f");
        ir::Builder builder(function, function.body);
        std::vector<ir::Value*> values;
        std::vector<ir::testing::Datum> data;
        std::deque<ir::testing::Memory> arrays;
        for (const Actual& a : arguments) {
            values.push_back(function.add_argument(&function.body, a.type));
            if (a.type.is_array()) {
                const int element = a.type.element().components();
                arrays.emplace_back(std::vector<int>{static_cast<int>(a.numbers.size()) / element}, a.numbers, element);
                data.emplace_back(&arrays.back());
            } else {
                data.emplace_back(a.numbers);
            }
        }
        Call made{builder, values, m.types, m.sizes, {}};
        ir::Value* result = entry->expand(made);
        std::vector<ir::Value*> wanted = made.inout;
        if (result) wanted.push_back(result);
        builder.return_(wanted);
        const std::vector<ir::testing::Datum> found = ir::testing::Interpreter().run(function, std::move(data));
        if (inout) {
            inout->clear();
            for (std::size_t i = 0; i < made.inout.size(); ++i)
                inout->push_back({made.inout[i]->type, found[i].numbers()});
        }
        return result ? Evaluated{result->type, found.back().numbers()} : Evaluated{};
    }
    throw std::logic_error("no overload of " + std::string(name));
}

}  // namespace weft::builtins::testing
