// Tests of `match` patterns: case Point(0, y), case int(n).
#include "sema/analyzer.h"

namespace weft::sema {

// Types are known at compile time, so the answer is too.
bool FunctionAnalyzer::is_instance(const syntax::ClassTest& test) {
    const Value type = expression(*test.type);
    if (!type.is_binding(Binding::Kind::type) || type.binding->type.is_none()) {
        fail(test.type->span,
             "a pattern takes a type: a struct, a type of numbers, vectors or arrays; not " + describe(type),
             {help("write case Point(x=0, y=y), case int(n)")});
    }
    const Value object = expression(*test.object);
    if (object.is_binding() || object.is_tuple()) return false;
    const Type found = type_of(object), wanted = type.binding->type;
    return found == wanted ||
           (found.is_struct() && wanted.is_struct() && source_.environment->is_derived(found, wanted));
}

Value FunctionAnalyzer::part_by_number(const syntax::PartByNumber& part, Span span) {
    const Value object = expression(*part.object);
    const Type type = type_of(object);
    const auto number = static_cast<std::size_t>(part.number);
    if (type.is_scalar() && number == 0) return object;
    if (!type.is_struct()) {
        fail(span,
             "a pattern of " + type.python_name() + " takes " + (type.is_scalar() ? "one part" : "no parts by place"),
             {help(type.is_scalar() ? "write case " + type.python_name() + "(n)" : "name them: x=a, y=b")});
    }
    const auto& fields = type.fields();
    if (number >= fields.size()) {
        fail(span,
             type.python_name() + " has " + std::to_string(fields.size()) + " fields; the pattern has more parts");
    }
    return attribute_of(object, fields[number].name, span);
}

}  // namespace weft::sema
