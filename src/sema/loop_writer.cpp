#include "sema/loop_writer.h"

#include <functional>

#include "ir/typing.h"
#include "sema/expected_types.h"
#include "sema/messages.h"

namespace weft::sema {

namespace {

constexpr const char* kCannotCarry =
    "changes in the course of a loop, which kernels can only express for numbers, vectors, matrices, arrays and "
    "structs "
    "of them";

// Whether assigning to this target gives the local another value. a[i] = x and s.array[i] = x write through an array
// and leave the local unchanged: carrying it would hide from codegen which array it is.
struct PartOfLocal {
    bool is_part = false;
    Type type;
};

PartOfLocal part_of_local(const syntax::Expression& target, const std::string& name, Type type) {
    if (const auto* plain = std::get_if<syntax::Name>(&target.node)) return {plain->id == name, type};
    const auto* attribute = std::get_if<syntax::Attribute>(&target.node);
    const auto* subscript = std::get_if<syntax::Subscript>(&target.node);
    if (!attribute && !subscript) return {};
    PartOfLocal whole = part_of_local(attribute ? *attribute->object : *subscript->object, name, type);
    if (!whole.is_part || whole.type.is_array()) return {};
    if (attribute && whole.type.is_struct()) {
        const std::optional<int> field = whole.type.field_index(attribute->name);
        return {field.has_value(), field ? whole.type.fields()[static_cast<std::size_t>(*field)].type : Type::none()};
    }
    return whole;
}

bool gives_new_value(const syntax::Block& block, const std::string& name, Type type) {
    bool found = false;
    const std::function<void(const syntax::Expression&)> check = [&](const syntax::Expression& target) {
        if (const auto* tuple = std::get_if<syntax::Tuple>(&target.node)) {
            for (const auto& element : tuple->elements) check(*element);
        } else if (const auto* starred = std::get_if<syntax::Starred>(&target.node)) {
            check(*starred->value);
        } else {
            found |= part_of_local(target, name, type).is_part;
        }
    };
    walk(
        block,
        [&](const syntax::Statement& statement) {
            if (const auto* s = std::get_if<syntax::Assign>(&statement.node)) {
                for (const auto& target : s->targets) check(*target);
            } else if (const auto* s = std::get_if<syntax::AnnotatedAssign>(&statement.node)) {
                check(*s->target);
            } else if (const auto* s = std::get_if<syntax::AugmentedAssign>(&statement.node)) {
                check(*s->target);
            } else if (const auto* s = std::get_if<syntax::For>(&statement.node)) {
                check(*s->target);
            }
        },
        [](const syntax::Expression&) {});
    return found;
}

}  // namespace

LoopWriter::LoopWriter(ir::Op op, std::vector<ir::Value*> bounds, const syntax::Block& body, LoopNames names, Span span,
                       ir::Function& function, ir::Builder& builder, Locals& locals)
    : is_guarded((possible_exits(body) & (kBreaks | kReturns)) != 0),
      function_(function),
      builder_(builder),
      values_(builder),
      locals_(locals),
      operation_(function.new_operation(op, span)),
      names_(std::move(names)),
      span_(span),
      saved_skip_needed_(locals.skip_needed) {
    operation_->operands = std::move(bounds);  // carried values follow
    locals_.skip_needed = false;
    for (const std::string& name : names_.fresh) locals_.scope.erase(name);
    for (const std::string& name : names_.assigned) {
        const Local* local = locals_.find(name);
        if (!local || local->state != Local::State::assigned || !can_be_carried(local->value)) continue;
        const Type type = type_of(local->value);
        const bool gets_value = names_.rebound.contains(name) || names_.by_calls.contains(name);
        if (ir::holds_array(type) && !gets_value && !gives_new_value(body, name, type)) continue;
        const std::size_t first = inits_.size();
        values_.flatten(local->value, span, inits_);
        carried_.push_back({name, *local, inits_.size() - first});
    }
    before_ = locals_.scope;
    Locals::Loop entered;
    for (const auto& carried : carried_) entered.carried.insert(carried.name);
    locals_.loops.push_back(std::move(entered));
}

void LoopWriter::enter(ir::Region* region) {
    locals_.scope = before_;
    argument_regions_.push_back(region);
    std::vector<ir::Value*> arguments;
    std::size_t leaf = 0;
    for (const auto& carried : carried_) {
        for (std::size_t i = 0; i < carried.leaves; ++i) {
            arguments.push_back(function_.add_argument(region, inits_[leaf++]->type, shown_name(carried.name)));
        }
    }
    std::size_t next = 0;
    for (const auto& carried : carried_) {
        Local local = carried.before;
        local.value = rebuild(carried.before.value, arguments, next);
        locals_.scope.insert_or_assign(carried.name, std::move(local));
    }
    // A value that cannot be carried can be used, unless the body rebinds its name in each iteration.
    for (const std::string& name : names_.rebound) {
        const auto found = locals_.scope.find(name);
        if (found == locals_.scope.end() || found->second.state != Local::State::assigned ||
            can_be_carried(found->second.value))
            continue;
        found->second.state = Local::State::unusable;
        found->second.reason = kCannotCarry;
    }
    for (const char* flag : {kSkip, kReturned, kResult}) locals_.scope.erase(flag);
    if (is_guarded) {
        Local go;
        go.value = Value::boolean(true);
        locals_.scope.insert_or_assign(kGo, std::move(go));
    }
}

void LoopWriter::yield_from_body(const Value& value, Span span) {
    ir::Builder::Inside inside(builder_, *body_);
    values_.flatten(value, span, yields_);
}

// Yields the carried locals at the end of the body, in the types that they had before the loop.
void LoopWriter::yield_carried() {
    for (const auto& carried : carried_) {
        Local after = after_body_.at(carried.name);
        if (after.state == Local::State::assigned)
            after.value = adapt(after.value, type_of(carried.before.value), after.assigned).value_or(after.value);
        const std::string name = "'" + carried.name + "'";
        if (after.state == Local::State::conflict) fail(after.assigned, after.reason, after.notes);
        if (after.state != Local::State::assigned)
            fail(after.assigned, name + " " + (after.reason.empty() ? "has no value on some paths" : after.reason));
        if (!(type_of(after.value) == type_of(carried.before.value))) {
            fail(after.assigned,
                 name + " becomes " + describe(after.value) + " in this loop and is " + describe(carried.before.value) +
                     " before it",
                 {note("before the loop: " + describe(carried.before.value), carried.before.assigned),
                  help("a variable that a loop changes must keep its type; start with a value of the right type, as in "
                       "wp." +
                       type_of(after.value).python_name() + "(...)")});
        }
        if (!show_alike(after.value, carried.before.value)) {
            fail(after.assigned, name + " is a view of another tile after an iteration of this loop than before it",
                 {note("before the loop", carried.before.assigned), help("use two names")});
        }
        yield_from_body(after.value, after.assigned);
    }
    for (const std::string& name : names_.assigned) {
        const auto was = before_.find(name);
        const auto is = after_body_.find(name);
        if (was == before_.end() || is == after_body_.end() || was->second.state != Local::State::assigned) continue;
        if (can_be_carried(was->second.value) || names_.rebound.contains(name)) continue;
        if (!identical(was->second.value, is->second.value))
            fail(is->second.assigned, "'" + name + "' " + kCannotCarry);
    }
}

// Yields the values that the body has added. Each starts as zero, its value if the body never runs.
void LoopWriter::yield_added(bool returns) {
    const auto add = [&](const std::string& name, const Local& local) {
        const std::size_t first = yields_.size();
        yield_from_body(local.value, local.assigned);
        for (std::size_t i = first; i < yields_.size(); ++i) {
            const Type type = yields_[i]->type;
            for (ir::Region* region : argument_regions_) function_.add_argument(region, type, shown_name(name));
            inits_.push_back(builder_.zero(type));
        }
        added_.push_back({name, local, first});
    };
    for (const auto& [name, local] : after_body_) {
        if (name == kReturned || name == kResult) {
            if (!returns) continue;
            if (!can_be_carried(local.value))
                fail(local.assigned, describe(local.value) + " cannot be returned from inside a loop",
                     {help("keep an index in the loop and return after it")});
            add(name, local);
            continue;
        }
        if (name[0] == '$' || local.state != Local::State::assigned) continue;
        const auto was = before_.find(name);
        if (was != before_.end() && was->second.state == Local::State::assigned) continue;
        if (can_be_carried(local.value) && locals_.is_needed(name)) add(name, local);
    }
}

// Appends the operation, after all carried values are known. Returns its results.
std::vector<ir::Value*> LoopWriter::append() {
    {
        ir::Builder::Inside inside(builder_, *body_);
        builder_.yield(yields_);
    }
    const bool is_for = operation_->op == ir::Op::for_;
    operation_->operands.insert(operation_->operands.end(), inits_.begin(), inits_.end());
    operation_->guarded = is_for && is_guarded;
    std::vector<ir::Value*> results;
    for (std::size_t i = 0; i < inits_.size(); ++i) {
        const ir::Value* argument = body_->arguments[i + (is_for ? 1 : 0)];
        results.push_back(function_.add_result(operation_, argument->type, argument->name));
    }
    operation_->parent = &builder_.region();
    builder_.region().operations.push_back(operation_);
    return results;
}

// Sets the locals after the loop, some of which are among its results.
void LoopWriter::set_locals_after(const std::vector<ir::Value*>& results) {
    std::size_t next = 0;
    for (const auto& carried : carried_) {
        Local local = after_body_.at(carried.name);
        local.value = rebuild(carried.before.value, results, next);
        locals_.scope.insert_or_assign(carried.name, std::move(local));
    }
    for (const std::string& name : names_.assigned) {
        const auto was = before_.find(name);
        const bool existed = was != before_.end() && was->second.state == Local::State::assigned;
        Local& local = locals_.scope[name];
        if (existed && (can_be_carried(was->second.value) || !names_.rebound.contains(name))) continue;
        const auto is = after_body_.find(name);
        if (!existed && is != after_body_.end()) local = is->second;
        if (local.state == Local::State::conflict) continue;
        local.state = existed ? Local::State::unusable : Local::State::maybe;
        local.reason = existed ? kCannotCarry : "";
        local.assigned = is == after_body_.end() ? span_ : is->second.assigned;
    }
    ir::Value* returned = nullptr;
    for (const Added& added : added_) {
        std::size_t at = added.first;
        Local local = added.local;
        local.value = rebuild(added.local.value, results, at);
        if (added.name == kReturned)
            returned = local.value.ir;
        else
            locals_.scope.insert_or_assign(added.name, std::move(local));
    }
    if (!returned) return;
    Local skip;
    skip.value = Value::runtime(returned);
    locals_.scope.insert_or_assign(kSkip, skip);
    if (locals_.loops.empty()) return;
    locals_.scope.insert_or_assign(kReturned, skip);
    Local go;
    go.value = Value::runtime(builder_.unary(ir::Op::invert, returned));
    locals_.scope.insert_or_assign(kGo, std::move(go));
}

Flow LoopWriter::finish(ir::Region* body, Flow flow) {
    body_ = body;
    after_body_ = std::move(locals_.scope);
    locals_.loops.pop_back();
    locals_.skip_needed = saved_skip_needed_;
    locals_.scope = before_;
    builder_.span = span_;

    const auto carry_go = [&] {
        if (!is_guarded) return;
        yield_from_body(after_body_.at(kGo).value, span_);
        inits_.push_back(builder_.boolean(true));
    };
    yield_carried();
    // The flag of a while loop comes right after the carried locals: its condition reads it. That of a for loop is
    // last.
    const bool is_for = operation_->op == ir::Op::for_;
    if (!is_for) carry_go();
    yield_added((flow & kReturns) != 0);
    if (is_for) {
        if (is_guarded) function_.add_argument(body, bool_type(), "go");
        carry_go();
    }
    set_locals_after(append());
    return kFalls | (flow & kReturns);
}

void LoopWriter::abandon() {
    locals_.loops.pop_back();
    locals_.skip_needed = saved_skip_needed_;
    locals_.scope = before_;
}

}  // namespace weft::sema
