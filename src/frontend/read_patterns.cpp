// match, as assignments and branches:
//
//     match f(x):                     match'1 = f(x)
//         case 1 | 2: a               if match'1 == 1 or match'1 == 2: a
//         case (0, y) if y > 3: b     elif len(match'1) == 2 and match'1[0] == 0 and ((y := match'1[1]), y > 3)[-1]: b
//         case _: c                   else: c
#include <cmath>

#include "frontend/tree_reader.h"

namespace weft::frontend {

void TreeReader::match(nb::handle node, Block& result) {
    const FieldNames& f = fields();
    const std::string subject = "match'" + std::to_string(++scopes_);
    Assign assign;
    assign.value = expression(get(node, f.subject));
    const Span at = assign.value->span;
    assign.targets.push_back(made(Name{subject}, at));
    result.push_back(std::make_unique<Statement>(Statement{std::move(assign), at}));
    Block* rest = &result;
    for (nb::handle branch : nb::borrow<nb::list>(get(node, f.cases))) {
        const nb::object what = get(branch, f.pattern);
        const Span place = span(what);
        std::vector<ExpressionPtr> tests, captures;
        pattern(what, [&] { return made(Name{subject}, place); }, tests, captures);
        Block body;
        if (nb::object guard = get(branch, f.guard); guard.is_none()) {
            for (ExpressionPtr& capture : captures)
                body.push_back(std::make_unique<Statement>(Statement{ExpressionStatement{std::move(capture)}, place}));
        } else {
            tests.push_back(last_of(std::move(captures), expression(guard)));
        }
        for (auto& statement : block(get(branch, f.body))) body.push_back(std::move(statement));
        if (tests.empty()) {  // the pattern matches everything
            for (auto& statement : body) rest->push_back(std::move(statement));
            return;
        }
        rest->push_back(
            std::make_unique<Statement>(Statement{If{all_of(std::move(tests)), std::move(body), {}}, place}));
        rest = &std::get<If>(rest->back()->node).else_block;
    }
}

// The value of the last expression, after the others.
ExpressionPtr TreeReader::last_of(std::vector<ExpressionPtr> before, ExpressionPtr last) {
    if (before.empty()) return last;
    const Span at = last->span;
    before.push_back(std::move(last));
    const auto number = static_cast<std::int64_t>(before.size()) - 1;
    Subscript chosen{made(Tuple{std::move(before)}, at), {}};
    chosen.indices.push_back(integer_at(number, at));
    return made(std::move(chosen), at);
}

ExpressionPtr TreeReader::all_of(std::vector<ExpressionPtr> tests) {
    if (tests.size() == 1) return std::move(tests[0]);
    const Span at = tests[0]->span;
    return made(BoolOp{true, std::move(tests)}, at);
}

ExpressionPtr TreeReader::integer_at(std::int64_t value, Span at) {
    ExpressionPtr magnitude = made(IntegerLiteral{std::abs(value), false, std::to_string(std::abs(value))}, at);
    return value < 0 ? made(Unary{UnaryOperator::negate, std::move(magnitude)}, at) : std::move(magnitude);
}

// Appends the conditions of the pattern, and the assignments of the names that it captures.
void TreeReader::pattern(nb::handle node, const MakeSubject& subject, std::vector<ExpressionPtr>& tests,
                         std::vector<ExpressionPtr>& captures) {
    const FieldNames& f = fields();
    const Span at = span(node);
    const auto compare = [&](CompareOperator op, ExpressionPtr value) {
        Compare comparison{subject(), {op}, {}, true};
        comparison.operands.push_back(std::move(value));
        tests.push_back(made(std::move(comparison), at));
    };
    switch (node_of(node)) {
        case Node::MatchValue:
            return compare(CompareOperator::eq, expression(get(node, f.value)));
        case Node::MatchSingleton: {
            const nb::object value = get(node, f.value);
            if (value.is_none()) return compare(CompareOperator::is, made(NoneLiteral{}, at));
            return compare(CompareOperator::eq, made(BoolLiteral{value.ptr() == Py_True}, at));
        }
        case Node::MatchOr:
            return alternatives(node, subject, tests);
        case Node::MatchAs:
            if (nb::object inner = get(node, f.pattern); !inner.is_none()) pattern(inner, subject, tests, captures);
            return capture(node, subject(), captures);
        case Node::MatchSequence:
            return sequence(node, subject, tests, captures);
        case Node::MatchClass:
            return of_class(node, subject, tests, captures);
        default:
            tests.push_back(made(Unsupported{"a pattern of a mapping"}, at));
    }
}

void TreeReader::capture(nb::handle node, ExpressionPtr value, std::vector<ExpressionPtr>& captures) {
    const nb::object name = get(node, fields().name);
    if (name.is_none()) return;
    const Span at = span(node);
    ExpressionPtr target = made(Name{nb::borrow<nb::str>(name).c_str()}, at);
    names_.push_back(target.get());
    captures.push_back(made(Named{std::move(target), std::move(value)}, at));
}

// 1 | 2 | (3, _): captures are part of the test, since the alternatives find the names at different places.
void TreeReader::alternatives(nb::handle node, const MakeSubject& subject, std::vector<ExpressionPtr>& tests) {
    const Span at = span(node);
    std::vector<ExpressionPtr> choices;
    for (nb::handle choice : nb::borrow<nb::list>(get(node, fields().patterns))) {
        std::vector<ExpressionPtr> inner, names;
        pattern(choice, subject, inner, names);
        if (!names.empty()) inner.push_back(last_of(std::move(names), made(BoolLiteral{true}, at)));
        if (inner.empty()) inner.push_back(made(BoolLiteral{true}, at));  // matches everything
        choices.push_back(all_of(std::move(inner)));
    }
    tests.push_back(made(BoolOp{false, std::move(choices)}, at));
}

// Point(0, y, z=_): the class, its first fields, and others by name.
void TreeReader::of_class(nb::handle node, const MakeSubject& subject, std::vector<ExpressionPtr>& tests,
                          std::vector<ExpressionPtr>& captures) {
    const FieldNames& f = fields();
    const Span at = span(node);
    tests.push_back(made(ClassTest{subject(), expression(get(node, f.cls))}, at));
    std::int64_t number = 0;
    for (nb::handle part : nb::borrow<nb::list>(get(node, f.patterns))) {
        // A pattern that captures and tests nothing still requires its field.
        pattern(part, [&] { return made(PartByNumber{subject(), number}, span(part)); }, tests, captures);
        ++number;
    }
    const auto names = nb::borrow<nb::list>(get(node, f.kwd_attrs));
    const auto patterns = nb::borrow<nb::list>(get(node, f.kwd_patterns));
    for (std::size_t i = 0; i < nb::len(names); ++i) {
        const nb::object part = patterns[i];
        const std::string name = nb::borrow<nb::str>(names[i]).c_str();
        pattern(part, [&] { return made(Attribute{subject(), name}, span(part)); }, tests, captures);
    }
}

void TreeReader::sequence(nb::handle node, const MakeSubject& subject, std::vector<ExpressionPtr>& tests,
                          std::vector<ExpressionPtr>& captures) {
    const auto parts = nb::borrow<nb::list>(get(node, fields().patterns));
    const Span at = span(node);
    const auto count = static_cast<std::int64_t>(nb::len(parts));
    std::int64_t star = -1;
    for (std::int64_t i = 0; i < count; ++i)
        if (node_of(parts[static_cast<std::size_t>(i)]) == Node::MatchStar) star = i;
    tests.push_back(made(LengthTest{subject(), star < 0 ? count : count - 1, star >= 0}, at));
    for (std::int64_t i = 0; i < count; ++i) {
        const nb::object part = parts[static_cast<std::size_t>(i)];
        // Elements after a star count from the end.
        const auto element = [&, index = star < 0 || i < star ? i : i - count] {
            Subscript chosen{subject(), {}};
            chosen.indices.push_back(integer_at(index, at));
            return made(std::move(chosen), at);
        };
        if (i != star) {
            pattern(part, element, tests, captures);
            continue;
        }
        Subscript chosen{subject(), {}};
        Slice taken{integer_at(i, at), i + 1 < count ? integer_at(i + 1 - count, at) : nullptr, nullptr};
        chosen.indices.push_back(made(std::move(taken), at));
        capture(part, made(std::move(chosen), at), captures);
    }
}

}  // namespace weft::frontend
