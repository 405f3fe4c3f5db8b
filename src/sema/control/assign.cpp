// Statements without control flow: assignments, expression statements, raise and assert.
#include <algorithm>

#include "sema/analyzer.h"
#include "sema/overloaded.h"

namespace weft::sema {

void FunctionAnalyzer::statement(const syntax::Statement& statement, Flow& flow) {
    const Span span = statement.span;
    builder_.span = span;
    std::visit(Overloaded{
                   [&](const syntax::Assign& s) { assign(s); },
                   [&](const syntax::AnnotatedAssign& s) { annotated_assign(s, span); },
                   [&](const syntax::AugmentedAssign& s) { augmented_assign(s, span); },
                   [&](const syntax::ExpressionStatement& s) {
                       // A docstring or a stray constant says nothing to the kernel.
                       if (!std::holds_alternative<syntax::StringLiteral>(s.value->node)) expression(*s.value);
                   },
                   [&](const syntax::Return& s) { return_statement(s, span, flow); },
                   [&](const syntax::Break&) {
                       if (locals_.loops.empty()) fail(span, "'break' outside a loop", {}, ErrorCategory::syntax);
                       locals_.leave(true, false);
                       flow = kBreaks;
                   },
                   [&](const syntax::Continue&) {
                       if (locals_.loops.empty()) fail(span, "'continue' outside a loop", {}, ErrorCategory::syntax);
                       locals_.leave(false, false);
                       flow = kContinues;
                   },
                   [&](const syntax::Pass&) {},
                   [&](const syntax::Assert& s) { assert_(s, span); },
                   [&](const syntax::Raise& s) {
                       raise(s, span);
                       flow = kStops;
                   },
                   // run() handles if, for and while, as it knows the statements after them.
                   [&](const syntax::If&) { throw InternalError("an if statement reached statement()"); },
                   [&](const syntax::For&) { throw InternalError("a for statement reached statement()"); },
                   [&](const syntax::While&) { throw InternalError("a while statement reached statement()"); },
                   [&](const syntax::UnsupportedStatement& s) {
                       fail(span, "'" + s.what + "' is not supported in kernels",
                            {help("kernels know assignments, if, match, for, while, break, continue, return, raise, "
                                  "assert, pass, functions in functions and calls")},
                            ErrorCategory::syntax);
                   },
               },
               statement.node);
}

void FunctionAnalyzer::assign(const syntax::Assign& assign) {
    // i, j = wp.tid(): the number of targets gives the number of coordinates.
    if (const auto* call = std::get_if<syntax::Call>(&assign.value->node)) {
        const auto* targets = std::get_if<syntax::Tuple>(&assign.targets[0]->node);
        const std::optional<Binding> callee = targets ? names_.static_binding(*call->function) : std::nullopt;
        if (callee && callee->kind == Binding::Kind::builtin && callee->text == "tid" && call->arguments.empty()) {
            const std::size_t rank = targets->elements.size();
            if (rank < 1 || rank > 4) {
                fail(assign.targets[0]->span, "wp.tid() gives 1 to 4 coordinates, not " + std::to_string(rank));
            }
            Value coordinates = tid(static_cast<int>(rank));
            if (rank == 1) coordinates = Value::tuple({coordinates});
            for (const auto& target : assign.targets) assign_to(*target, coordinates, assign.value->span);
            return;
        }
    }
    Value value = with_view(*assign.value);
    if (value.is_nothing()) {
        fail(assign.value->span, "this call returns nothing, so there is no value to assign");
    }
    // u = t copies a tile; u = t[0] is a view of it.
    if (std::holds_alternative<syntax::Name>(assign.value->node)) value.view = nullptr;
    for (const auto& target : assign.targets) assign_to(*target, value, assign.value->span);
}

void FunctionAnalyzer::assign_to(const syntax::Expression& target, const Value& value, Span value_span) {
    if (const auto* name = std::get_if<syntax::Name>(&target.node)) {
        if (const Local* local = locals_.find(name->id); local && local->value.type.is_tile()) {
            Value moved = value;
            keep_tile(name->id, moved);
            locals_.assign(name->id, std::move(moved), target.span);
            return;
        }
        // bound() gets the value's place, so that the error for a literal out of range points to the literal.
        locals_.assign(name->id, bound(value, value_span), target.span);
        return;
    }
    if (const auto* targets = std::get_if<syntax::Tuple>(&target.node)) {
        unpack(*targets, value, target.span, value_span);
        return;
    }
    if (std::holds_alternative<syntax::Starred>(target.node)) {
        fail(target.span, "'*' can only stand in a tuple of targets", {help("write a, *rest = values")},
             ErrorCategory::syntax);
    }
    const AssignmentTarget to = assignment_target(target);
    reject_frozen(to);
    write(to, value, value_span);
}

// @dataclass(frozen=True): as in Python, its fields cannot be assigned, but the objects in them can be changed.
void FunctionAnalyzer::reject_frozen(const AssignmentTarget& to) {
    if (to.steps.empty() || to.steps.back().kind != PartStep::Kind::path) return;
    Type owner;
    if (to.steps.size() > 1)
        owner = to.steps[to.steps.size() - 2].type;
    else if (to.array)
        owner = to.array->type.element();
    else if (const Local* local = locals_.find(to.name); local && to.elements.empty() && !to.element)
        owner = type_of(local->value);
    if (!owner.is_struct()) return;
    const std::optional<Construction> rules = source_.environment->construction(owner);
    if (!rules || !rules->is_frozen) return;
    const std::string& field = owner.fields()[static_cast<std::size_t>(to.steps.back().path[0])].name;
    fail(to.span, "field '" + field + "' of " + owner.struct_name() + " cannot be assigned: the dataclass is frozen",
         {help("make a new one: " + owner.struct_name() + "(...), or declare it without frozen=True")},
         ErrorCategory::attribute);
}

void FunctionAnalyzer::unpack(const syntax::Tuple& targets, const Value& value, Span target_span, Span value_span) {
    const std::optional<std::vector<Value>> found = parts_.elements(value);  // as in Python, vectors unpack too
    if (!found) {
        fail(value_span,
             describe(value) + " cannot be unpacked into " + std::to_string(targets.elements.size()) + " targets",
             {help("tuples, vectors and the result of wp.tid() can be unpacked")});
    }
    // One target may take the remaining values: a, *rest = t.
    const std::size_t count = targets.elements.size();
    std::size_t star = count;
    for (std::size_t i = 0; i < count; ++i) {
        if (!std::holds_alternative<syntax::Starred>(targets.elements[i]->node)) continue;
        if (star < count) fail(targets.elements[i]->span, "only one target can have a '*'", {}, ErrorCategory::syntax);
        star = i;
    }
    const bool has_star = star < count;
    if (has_star ? found->size() + 1 < count : found->size() != count) {
        fail(target_span, std::to_string(count) + " targets for " + std::to_string(found->size()) + " values",
             {note("the values are " + describe(value), value_span)}, ErrorCategory::value);
    }
    const std::size_t taken = has_star ? found->size() + 1 - count : 0;  // by the one with the star
    for (std::size_t i = 0, next = 0; i < count; ++i) {
        if (i != star) {
            assign_to(*targets.elements[i], (*found)[next++], value_span);
            continue;
        }
        const auto first = found->begin() + static_cast<std::ptrdiff_t>(next);
        const auto& target = std::get<syntax::Starred>(targets.elements[i]->node);
        assign_to(*target.value, Value::list({first, first + static_cast<std::ptrdiff_t>(taken)}), value_span);
        next += taken;
    }
}

Type FunctionAnalyzer::annotated_type(const syntax::Expression& e) {
    // wp.array(dtype=float) and wp.array[float] are made by Python.
    const bool is_made =
        std::holds_alternative<syntax::Call>(e.node) || std::holds_alternative<syntax::Subscript>(e.node);
    const Value annotation = is_made ? from_binding(names_.evaluate(e), "annotation", e.span) : expression(e);
    if (!annotation.is_binding(Binding::Kind::type))
        fail(e.span, "the annotation of a variable must be a type, not " + describe(annotation));
    return annotation.binding->type;
}

void FunctionAnalyzer::annotated_assign(const syntax::AnnotatedAssign& assign, Span span) {
    const Type type = annotated_type(*assign.annotation);
    if (!assign.value) return;  // a bare annotation declares nothing in Python either
    const Value value = expression(*assign.value);
    const auto* name = std::get_if<syntax::Name>(&assign.target->node);
    const std::string what = name ? "'" + name->id + "'" : "the value";
    builder_.span = span;
    assign_to(*assign.target, expect(value, type, assign.value->span, what), assign.value->span);
}

// Whether the operator adds once for each lane, if its target is an element of a tile.
static bool counts_lanes(syntax::BinaryOperator op) {
    using Operator = syntax::BinaryOperator;
    return op == Operator::add || op == Operator::sub || op == Operator::bit_and || op == Operator::bit_or ||
           op == Operator::bit_xor;
}

void FunctionAnalyzer::augmented_assign(const syntax::AugmentedAssign& assign, Span span) {
    // The target is found once: a[f(i)] += v calls f once.
    const auto* name = std::get_if<syntax::Name>(&assign.target->node);
    // t += x changes a tile, views and the caller's included; t *= x is another tile for the name.
    using Operator = syntax::BinaryOperator;
    const bool rebinds = assign.op == Operator::mul || assign.op == Operator::div;
    if (name && is_tile_name(name->id) && rebinds) {
        const Value before = expression(*assign.target);
        const Value operand = expression(*assign.value);
        builder_.span = span;
        assign_to(*assign.target, binary(assign.op, before, operand, span, assign.target->span, assign.value->span),
                  assign.value->span);
        return;
    }
    if (name && !is_tile_name(name->id)) {
        const Value before = expression(*assign.target);
        const Value operand = expression(*assign.value);
        builder_.span = span;
        Value after = binary(assign.op, before, operand, span, assign.target->span, assign.value->span);
        locals_.assign(name->id, std::move(after), assign.target->span);
        return;
    }
    const AssignmentTarget to = assignment_target(*assign.target);
    reject_frozen(to);
    if (const std::optional<ir::Op> atomic = atomic_for(assign.op, to)) return update(to, *atomic, assign, span);
    if (to.tile_element && lanes() > 1 && counts_lanes(assign.op)) return update_by_lanes(to, assign, span);
    const Value before = read(to);  // as in Python before the operand, which may change it
    const Value operand = expression(*assign.value);
    builder_.span = span;
    const Value after = to.tile_element
                            ? by_fields(assign.op, before, operand, span, assign.target->span, assign.value->span)
                            : binary(assign.op, before, operand, span, assign.target->span, assign.value->span);
    write(to, after, assign.value->span);
}

// The atomic operation of this operator on numbers in memory; empty if there is none.
std::optional<ir::Op> FunctionAnalyzer::atomic_for(syntax::BinaryOperator op, const AssignmentTarget& to) const {
    if (!to.array || !(to.type.is_scalar() || to.type.is_numeric_aggregate())) return {};
    const bool is_int = !info(to.type.scalar()).is_float();
    if (to.type.scalar() == Scalar::boolean) return {};
    using Operator = syntax::BinaryOperator;
    if (op == Operator::add) return ir::Op::atomic_add;
    if (op == Operator::sub) return ir::Op::atomic_sub;
    if (op == Operator::bit_and && is_int) return ir::Op::atomic_and;
    if (op == Operator::bit_or && is_int) return ir::Op::atomic_or;
    if (op == Operator::bit_xor && is_int) return ir::Op::atomic_xor;
    return {};
}

// a[i] += x in memory, which other threads may update at the same time.
void FunctionAnalyzer::update(const AssignmentTarget& to, ir::Op atomic, const syntax::AugmentedAssign& assign,
                              Span span) {
    const Value operand = expression(*assign.value);
    builder_.span = span;
    const auto changed = [&] {
        return binary(assign.op, read(to), operand, span, assign.target->span, assign.value->span);
    };
    {
        // The operator's overloads check the operand; their IR goes to a region that is dropped.
        ir::Builder::Inside inside(builder_, *function_.new_region(nullptr));
        changed();
    }
    const bool is_number = operand.is_literal && to.type.is_scalar();
    if (is_number || type_of(operand) == to.type)
        write(to, operand, assign.value->span, atomic);
    else
        write(to, changed(), assign.value->span);
}

// raise ValueError(f"{n} is too small"): a fault in every build, which ends the thread.
void FunctionAnalyzer::raise(const syntax::Raise& statement, Span span) {
    const auto refuse = [&](Span place, const std::string& what) {
        fail(place, what, {help("write raise ValueError(\"text\"); the launch raises it")}, ErrorCategory::syntax);
    };
    if (!statement.exception) refuse(span, "raise without an exception has nothing to raise again in kernels");
    const syntax::Expression* type = statement.exception.get();
    const auto* call = std::get_if<syntax::Call>(&type->node);
    if (call) type = call->function.get();
    const Value found = expression(*type);
    if (!found.is_binding(Binding::Kind::exception)) {
        fail(type->span, "kernels cannot raise " + describe(found),
             {help("raise one of Python's own: ValueError, TypeError, IndexError, KeyError, RuntimeError, "
                   "ZeroDivisionError, OverflowError, ArithmeticError, NotImplementedError and the like")});
    }
    Printout text(builder_, escape_percent(found.binding->text));
    if (call && (call->arguments.size() > 1 || !call->keywords.empty()))
        refuse(type->span, "an exception takes one message in kernels");
    if (call && !call->arguments.empty()) {
        text.format += ": ";
        add_printed(text, *call->arguments[0], " ");
    }
    builder_.span = span;
    builder_.raise(std::move(text.format), std::move(text.scalars));
}

// Whether the message has values that are formatted when the assert fails.
bool FunctionAnalyzer::shows_values(const syntax::Assert& statement) {
    const auto* text = statement.message ? std::get_if<syntax::FormattedString>(&statement.message->node) : nullptr;
    return text && std::any_of(text->parts.begin(), text->parts.end(), [](const syntax::ExpressionPtr& part) {
               return !std::holds_alternative<syntax::StringLiteral>(part->node);
           });
}

// In debug builds asserts with values in their messages do not come here: see run_assert().
void FunctionAnalyzer::assert_(const syntax::Assert& statement, Span span) {
    std::string message;
    const syntax::FormattedString* format = nullptr;
    if (statement.message) {
        format = std::get_if<syntax::FormattedString>(&statement.message->node);
        if (const auto* text = std::get_if<syntax::StringLiteral>(&statement.message->node)) {
            message = text->value;
        } else if (format) {
            for (const auto& part : format->parts)
                if (const auto* text = std::get_if<syntax::StringLiteral>(&part->node)) message += text->value;
        } else {
            fail(statement.message->span, "the message of an assert must be a string or an f-string in kernels",
                 {help("print() before the assert shows values")});
        }
    }
    if (module_.options.debug) {
        const Value condition = expression(*statement.condition);
        builder_.span = span;
        builder_.assert_(values_.truth(condition, statement.condition->span), message);
        return;
    }
    // An assert that this build does not run is analysed into a dropped region: a mistake is one in every build.
    const Scope before = locals_.scope;
    {
        ir::Builder::Inside inside(builder_, *function_.new_region(nullptr));
        values_.truth(expression(*statement.condition), statement.condition->span);
        Printout unused(builder_);
        if (format) add_printed(unused, *statement.message, " ");
    }
    locals_.scope = before;
}

}  // namespace weft::sema
