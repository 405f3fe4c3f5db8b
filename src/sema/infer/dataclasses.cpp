// Constructors of structs that are dataclasses: the arguments go to the parameters of the __init__ that @dataclass
// generates, and __post_init__ runs on the result.
#include <algorithm>

#include "sema/analyzer.h"

namespace weft::sema {

namespace {

// The argument for each parameter of the __init__ that @dataclass generates; null for one that is left out.
std::vector<const Actual*> match_fields(const std::string& name, const Construction& rules,
                                        const std::vector<Actual>& arguments, Span span) {
    const auto& parameters = rules.parameters;
    std::vector<std::string> names;
    std::vector<std::size_t> positional;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        names.push_back(parameters[i].name);
        if (!parameters[i].keyword_only) positional.push_back(i);
    }
    std::vector<const Actual*> given(parameters.size(), nullptr);
    std::size_t next = 0;
    for (const Actual& a : arguments) {
        std::size_t at = 0;
        if (a.keyword.empty()) {
            if (next >= positional.size())
                fail(a.span, name + " takes " + std::to_string(positional.size()) +
                                 (positional.size() == 1 ? " argument" : " arguments") + " by position, got more");
            at = positional[next++];
        } else {
            const auto found = std::find(names.begin(), names.end(), a.keyword);
            if (found == names.end())
                fail(a.span, name + "() has no parameter '" + a.keyword + "'", did_you_mean(a.keyword, names),
                     ErrorCategory::attribute);
            at = static_cast<std::size_t>(found - names.begin());
        }
        if (given[at]) fail(a.span, "field '" + names[at] + "' of " + name + " is given twice");
        given[at] = &a;
    }
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        if (given[i] || !parameters[i].required) continue;
        std::vector<Note> notes;
        if (parameters[i].has_factory)
            notes.push_back(help("its default is an object that only Python can make; give it here"));
        fail(span,
             "'" + names[i] + "' of " + name + " is missing, and it has no default" +
                 (parameters[i].has_factory ? " in kernels" : ""),
             std::move(notes));
    }
    return given;
}

}  // namespace

Value FunctionAnalyzer::construct(Type type, const std::vector<Actual>& arguments, Span span) {
    if (type.is_struct()) {
        if (const std::optional<Construction> rules = source_.environment->construction(type))
            return construct_dataclass(type, *rules, arguments, span);
    }
    return constructors_.construct(type, arguments, span);
}

Value FunctionAnalyzer::construct_dataclass(Type type, const Construction& rules, const std::vector<Actual>& arguments,
                                            Span span) {
    const std::string& name = type.struct_name();
    const std::vector<const Actual*> given = match_fields(name, rules, arguments, span);
    std::vector<const Actual*> by_field(type.fields().size(), nullptr);
    std::vector<Actual> of_post_init(1);
    for (std::size_t i = 0; i < given.size(); ++i) {
        if (rules.parameters[i].is_init_only) {
            if (given[i]) of_post_init.push_back(*given[i]);
            continue;
        }
        const std::optional<int> field = type.field_index(rules.parameters[i].name);
        WEFT_CHECK(field.has_value(), "a parameter of a dataclass is none of its fields");
        by_field[static_cast<std::size_t>(*field)] = given[i];
    }
    const Value made = constructors_.struct_of(type, by_field);
    if (!rules.has_post_init) return made;
    const Binding post_init = names_.look_up_method(type, "__post_init__", span);
    if (post_init.kind != Binding::Kind::function) fail(span, "'__post_init__' of " + name + " is no function");
    // A temporary local, which the method gets by reference.
    const std::string local = name + "'0";
    locals_.assign(local, made, span);
    auto self = std::make_shared<AssignmentTarget>();
    self->name = local;
    self->type = type;
    self->span = span;
    for (Actual& a : of_post_init) a.keyword.clear();
    of_post_init[0] = Actual{made, span, {}, nullptr, std::move(self)};
    call_function(post_init.function, of_post_init, span);
    const Value result = locals_.find(local)->value;
    locals_.scope.erase(local);
    return result;
}

}  // namespace weft::sema
