// Every entry that expands, at every combination of types its signature allows: the IR holds together and the result
// has the type that the signature states.
#include <gtest/gtest.h>

#include "builtins/pattern.h"
#include "builtins/registry.h"
#include "ir/ir.h"

namespace weft::builtins {
namespace {

// The values of one variable of a signature: types, or sizes.
struct Variable {
    std::vector<Type> types;
    std::vector<std::int64_t> sizes;
    std::size_t choices() const { return std::max(types.size(), sizes.size()); }
};
using Variables = std::map<std::string, Variable>;

std::vector<Type> scalars(bool ints, bool floats) {
    std::vector<Type> out;
    for (const ScalarInfo& s : all_scalars())
        if ((ints && s.is_int()) || (floats && s.is_float())) out.push_back(Type::scalar(s.id));
    return out;
}

void collect(const Pattern& p, Variables& variables) {
    for (const SizePattern& size : p.sizes)
        if (!size.variable.empty()) variables[size.variable].sizes = {1, 2, 3, 4};
    switch (p.scalar.cls) {
        case ScalarPattern::Class::number:
            variables[p.scalar.variable].types = scalars(true, true);
            break;
        case ScalarPattern::Class::floating:
            variables[p.scalar.variable].types = scalars(false, true);
            break;
        case ScalarPattern::Class::integer:
            variables[p.scalar.variable].types = scalars(true, false);
            break;
        default:
            break;
    }
    if (p.shape == Pattern::Shape::any && !variables.count(p.variable)) {
        variables[p.variable].types = {bool_type(),
                                       i32_type(),
                                       Type::scalar(Scalar::u8),
                                       Type::scalar(Scalar::f16),
                                       f64_type(),
                                       Type::vector(Scalar::f32, 3),
                                       Type::matrix(Scalar::f64, 2, 3),
                                       Type::quaternion(Scalar::f32),
                                       Type::transform(Scalar::f32)};
    }
    for (const Pattern& part : p.parts) collect(part, variables);
}

Variables variables_of(const ParsedSignature& s) {
    Variables variables;
    for (std::size_t i = 0; i < s.parameters.size(); ++i) {
        const std::string& name = s.text.parameters[i].name;
        if (s.parameters[i].shape == Pattern::Shape::static_int)
            variables[name].sizes = {0, 1, 2, 3, 5, 6};
        else if (s.parameters[i].shape == Pattern::Shape::static_type)
            variables[name].types = scalars(true, true);
        else
            collect(s.parameters[i], variables);
    }
    return variables;
}

struct Choice {
    std::map<std::string, Type> types;
    std::map<std::string, std::int64_t> sizes;

    Scalar scalar(const ScalarPattern& p) const { return p.variable.empty() ? p.fixed : types.at(p.variable).scalar(); }
    int size(const SizePattern& p) const {
        return static_cast<int>(p.variable.empty() ? p.fixed : sizes.at(p.variable));
    }

    Type type(const Pattern& p) const {
        switch (p.shape) {
            case Pattern::Shape::scalar:
                return Type::scalar(scalar(p.scalar));
            case Pattern::Shape::vector:
                return Type::vector(scalar(p.scalar), size(p.sizes[0]));
            case Pattern::Shape::matrix:
                return Type::matrix(scalar(p.scalar), size(p.sizes[0]), size(p.sizes[1]));
            case Pattern::Shape::quaternion:
                return Type::quaternion(scalar(p.scalar));
            case Pattern::Shape::transform:
                return Type::transform(scalar(p.scalar));
            case Pattern::Shape::array:
                return Type::array(type(p.parts[0]), size(p.sizes[0]));
            case Pattern::Shape::structure:
                return p.type;
            case Pattern::Shape::any:
                return types.at(p.variable);
            case Pattern::Shape::tuple: {
                std::vector<Type> parts;
                for (const Pattern& part : p.parts) parts.push_back(type(part));
                return Type::tuple(parts);
            }
            default:
                return Type::none();
        }
    }
};

// Builds a function that makes the one call. Returns whether the entry takes these types.
bool check(const Entry& entry, const Choice& choice) {
    const ParsedSignature& s = parsed(entry);
    ir::Module module;
    ir::Function& function = *module.add("f");
    ir::Builder builder(function, function.body);
    std::vector<Argument> arguments;
    std::vector<ir::Value*> values;
    std::vector<Type> inout;
    const std::size_t count = s.parameters.size() + (s.is_variadic() ? 2 : 0);
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t k = s.parameter_of(i);
        const std::string& name = s.text.parameters[k].name;
        if (s.parameters[k].shape == Pattern::Shape::static_int) {
            arguments.push_back({i32_type(), true, Number::integer(choice.sizes.at(name)), true, false});
            values.push_back(nullptr);
        } else if (s.parameters[k].shape == Pattern::Shape::static_type) {
            arguments.push_back({.type = choice.types.at(name), .is_type = true});
            values.push_back(nullptr);
        } else {
            const Type type = choice.type(s.parameters[k]);
            arguments.push_back({.type = type});
            values.push_back(function.add_argument(&function.body, type, name));
            if (s.text.parameters[k].is_inout) inout.push_back(type);
        }
    }
    const Match m = match(entry, arguments);
    if (!m.ok) {
        EXPECT_TRUE(entry.refuse) << m.why_not;
        return false;
    }
    if (!s.is_variadic()) {
        EXPECT_EQ(m.result, choice.type(s.result));
    }

    Call call{builder, values, m.types, m.sizes, {}};
    ir::Value* result = entry.expand(call);
    EXPECT_EQ(result ? result->type : Type::none(), m.result);
    EXPECT_EQ(call.inout.size(), inout.size());
    for (std::size_t i = 0; i < std::min(inout.size(), call.inout.size()); ++i)
        EXPECT_EQ(call.inout[i]->type, inout[i]);
    std::vector<ir::Value*> results = call.inout;
    if (result) results.push_back(result);
    function.result = result ? result->type : Type::none();
    if (results.size() > 1) {
        std::vector<Type> types;
        for (ir::Value* v : results) types.push_back(v->type);
        function.result = Type::tuple(types);
        results = {builder.make(function.result, results)};
    } else if (!results.empty()) {
        function.result = results[0]->type;
    }
    builder.return_(results);
    EXPECT_NO_THROW(ir::verify(module)) << ir::print(module);
    return true;
}

class Expansion : public testing::TestWithParam<const Group*> {};

TEST_P(Expansion, is_valid_ir_of_the_stated_type) {
    for (const Entry& entry : GetParam()->entries) {
        if (!entry.expand) continue;
        const Variables variables = variables_of(parsed(entry));
        std::size_t combinations = 1;
        for (const auto& [name, variable] : variables) combinations *= variable.choices();
        // If there are too many, one of every few; a prime stride meets all choices of every variable.
        const std::size_t stride = combinations > 2000 ? 97 : 1;
        std::size_t taken = 0;
        for (std::size_t n = 0; n < combinations; n += stride) {
            Choice choice;
            std::string text;
            std::size_t rest = n;
            for (const auto& [name, variable] : variables) {
                const std::size_t at = rest % variable.choices();
                rest /= variable.choices();
                text += " " + name + "=";
                if (variable.types.empty())
                    text += std::to_string(choice.sizes[name] = variable.sizes[at]);
                else
                    text += (choice.types[name] = variable.types[at]).python_name();
            }
            SCOPED_TRACE(std::string(entry.name) + entry.signature + " with" + text);
            ASSERT_NO_THROW(taken += check(entry, choice));
            if (HasFailure()) return;
        }
        EXPECT_GT(taken, 0u) << entry.name << entry.signature;
    }
}

std::vector<const Group*> all_groups() {
    std::vector<const Group*> out;
    for (const Group& group : groups()) out.push_back(&group);
    return out;
}

INSTANTIATE_TEST_SUITE_P(Groups, Expansion, testing::ValuesIn(all_groups()), [](const auto& info) {
    std::string name = info.param->name;
    std::replace(name.begin(), name.end(), ' ', '_');
    return name;
});

}  // namespace
}  // namespace weft::builtins
