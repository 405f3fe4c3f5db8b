#include "sema/walk.h"

#include <algorithm>

#include "sema/overloaded.h"

namespace weft::sema {

namespace {

using Visit = std::function<void(const syntax::Expression&)>;

void walk_if(const syntax::ExpressionPtr& expression, const Visit& visit) {
    if (expression) walk(*expression, visit);
}

void walk_all(const std::vector<syntax::ExpressionPtr>& expressions, const Visit& visit) {
    for (const syntax::ExpressionPtr& e : expressions) walk_if(e, visit);
}

// The expressions that belong to a statement itself, in the order in which they run.
void walk_own(const syntax::Statement& statement, const Visit& visit) {
    std::visit(Overloaded{
                   [&](const syntax::Assign& s) {
                       walk_if(s.value, visit);
                       walk_all(s.targets, visit);
                   },
                   [&](const syntax::AnnotatedAssign& s) {
                       walk_if(s.annotation, visit);
                       walk_if(s.value, visit);
                       walk_if(s.target, visit);
                   },
                   [&](const syntax::AugmentedAssign& s) {
                       walk_if(s.value, visit);
                       walk_if(s.target, visit);
                   },
                   [&](const syntax::ExpressionStatement& s) { walk_if(s.value, visit); },
                   [&](const syntax::If& s) { walk_if(s.condition, visit); },
                   [&](const syntax::For& s) {
                       walk_if(s.iterable, visit);
                       walk_if(s.target, visit);
                   },
                   [&](const syntax::While& s) { walk_if(s.condition, visit); },
                   [&](const syntax::Return& s) { walk_if(s.value, visit); },
                   [&](const syntax::Assert& s) {
                       walk_if(s.condition, visit);
                       walk_if(s.message, visit);
                   },
                   [&](const syntax::Raise& s) { walk_if(s.exception, visit); },
                   [](const auto&) {},
               },
               statement.node);
}

// The blocks inside a statement.
std::vector<const syntax::Block*> blocks_of(const syntax::Statement& statement) {
    if (const auto* s = std::get_if<syntax::If>(&statement.node)) return {&s->then_block, &s->else_block};
    if (const auto* s = std::get_if<syntax::For>(&statement.node)) return {&s->body};
    if (const auto* s = std::get_if<syntax::While>(&statement.node)) return {&s->body};
    return {};
}

}  // namespace

void walk(const syntax::Expression& expression, const Visit& visit) {
    visit(expression);
    std::visit(Overloaded{
                   [&](const syntax::Attribute& e) { walk_if(e.object, visit); },
                   [&](const syntax::Subscript& e) {
                       walk_if(e.object, visit);
                       walk_all(e.indices, visit);
                   },
                   [&](const syntax::Slice& e) {
                       walk_if(e.start, visit);
                       walk_if(e.stop, visit);
                       walk_if(e.step, visit);
                   },
                   [&](const syntax::Call& e) {
                       walk_if(e.function, visit);
                       walk_all(e.arguments, visit);
                       for (const syntax::Keyword& k : e.keywords) walk_if(k.value, visit);
                   },
                   [&](const syntax::Unary& e) { walk_if(e.operand, visit); },
                   [&](const syntax::Binary& e) {
                       walk_if(e.left, visit);
                       walk_if(e.right, visit);
                   },
                   [&](const syntax::BoolOp& e) { walk_all(e.operands, visit); },
                   [&](const syntax::Compare& e) {
                       walk_if(e.left, visit);
                       walk_all(e.operands, visit);
                   },
                   [&](const syntax::IfExpression& e) {
                       walk_if(e.condition, visit);
                       walk_if(e.then_value, visit);
                       walk_if(e.else_value, visit);
                   },
                   [&](const syntax::Tuple& e) { walk_all(e.elements, visit); },
                   [&](const syntax::Starred& e) { walk_if(e.value, visit); },
                   [&](const syntax::FormattedString& e) { walk_all(e.parts, visit); },
                   [&](const syntax::Named& e) { walk_if(e.value, visit); },
                   [&](const syntax::Comprehension& e) {
                       for (const syntax::Generator& generator : e.generators) {
                           walk_if(generator.iterable, visit);
                           walk_all(generator.conditions, visit);
                       }
                       walk_if(e.element, visit);
                   },
                   [&](const syntax::LengthTest& e) { walk_if(e.object, visit); },
                   [&](const syntax::ClassTest& e) {
                       walk_if(e.object, visit);
                       walk_if(e.type, visit);
                   },
                   [&](const syntax::PartByNumber& e) { walk_if(e.object, visit); },
                   // The body runs at the place of the call.
                   [&](const syntax::Lambda& e) {
                       walk_all(e.annotations, visit);
                       walk_if(e.result, visit);
                       walk_all(e.defaults, visit);
                   },
                   [](const auto&) {},
               },
               expression.node);
}

void walk(const syntax::Block& block, const std::function<void(const syntax::Statement&)>& enter, const Visit& visit) {
    for (const auto& statement : block) {
        enter(*statement);
        walk_own(*statement, visit);
        for (const syntax::Block* inner : blocks_of(*statement)) walk(*inner, enter, visit);
    }
}

void target_names(const syntax::Expression& target, std::set<std::string>& names) {
    if (const auto* e = std::get_if<syntax::Name>(&target.node)) names.insert(e->id);
    if (const auto* e = std::get_if<syntax::Attribute>(&target.node)) target_names(*e->object, names);
    if (const auto* e = std::get_if<syntax::Subscript>(&target.node)) target_names(*e->object, names);
    if (const auto* e = std::get_if<syntax::Starred>(&target.node)) target_names(*e->value, names);
    if (const auto* e = std::get_if<syntax::Tuple>(&target.node)) {
        for (const auto& element : e->elements) target_names(*element, names);
    }
}

namespace {

void plain_names(const syntax::Expression& target, std::set<std::string>& names) {
    if (const auto* e = std::get_if<syntax::Name>(&target.node)) names.insert(e->id);
    if (const auto* e = std::get_if<syntax::Starred>(&target.node)) plain_names(*e->value, names);
    if (const auto* e = std::get_if<syntax::Tuple>(&target.node)) {
        for (const auto& element : e->elements) plain_names(*element, names);
    }
}

using Targets = void (*)(const syntax::Expression&, std::set<std::string>&);

std::set<std::string> names_of_targets(const syntax::Block& block, Targets target_names,
                                       const InoutNames& inout_names) {
    std::set<std::string> names;
    walk(
        block,
        [&](const syntax::Statement& statement) {
            if (const auto* s = std::get_if<syntax::Assign>(&statement.node)) {
                for (const auto& target : s->targets) target_names(*target, names);
            } else if (const auto* s = std::get_if<syntax::AnnotatedAssign>(&statement.node)) {
                if (s->value) target_names(*s->target, names);
            } else if (const auto* s = std::get_if<syntax::AugmentedAssign>(&statement.node)) {
                target_names(*s->target, names);
            } else if (const auto* s = std::get_if<syntax::For>(&statement.node)) {
                target_names(*s->target, names);
            }
        },
        [&](const syntax::Expression& expression) {
            if (const auto* named = std::get_if<syntax::Named>(&expression.node)) target_names(*named->target, names);
            if (inout_names) inout_names(expression, names);
        });
    return names;
}

}  // namespace

std::set<std::string> assigned_names(const syntax::Block& block, const InoutNames& inout_names) {
    return names_of_targets(block, target_names, inout_names);
}

std::set<std::string> rebound_names(const syntax::Block& block) {
    return names_of_targets(block, plain_names, nullptr);
}

std::set<std::string> assigned_names(const syntax::Expression& expression, const InoutNames& inout_names) {
    std::set<std::string> names;
    walk(expression, [&](const syntax::Expression& e) {
        if (const auto* named = std::get_if<syntax::Named>(&e.node)) target_names(*named->target, names);
        inout_names(e, names);
    });
    return names;
}

Flow possible_exits(const syntax::Block& block) {
    Flow flow = 0;
    for (const auto& statement : block) {
        if (std::holds_alternative<syntax::Break>(statement->node)) flow |= kBreaks;
        if (std::holds_alternative<syntax::Continue>(statement->node)) flow |= kContinues;
        if (std::holds_alternative<syntax::Return>(statement->node)) flow |= kReturns;
        const bool is_loop = std::holds_alternative<syntax::For>(statement->node) ||
                             std::holds_alternative<syntax::While>(statement->node);
        for (const syntax::Block* inner : blocks_of(*statement)) {
            const Flow of_inner = possible_exits(*inner);
            flow |= is_loop ? of_inner & kReturns : of_inner;
        }
    }
    return flow;
}

bool always_exits(const syntax::Block& block) {
    return std::any_of(block.begin(), block.end(), [](const auto& statement) {
        if (std::holds_alternative<syntax::Break>(statement->node)) return true;
        if (std::holds_alternative<syntax::Continue>(statement->node)) return true;
        if (std::holds_alternative<syntax::Return>(statement->node)) return true;
        if (std::holds_alternative<syntax::Raise>(statement->node)) return true;
        const auto* branch = std::get_if<syntax::If>(&statement->node);
        return branch && always_exits(branch->then_block) && always_exits(branch->else_block);
    });
}

Reads::Reads(const syntax::Function& function) {
    int position = 0;
    std::function<void(const syntax::Block&)> number;
    std::vector<int> lambdas;  // those around the expression
    const Visit visit = [&](const syntax::Expression& e) {
        ++position;
        if (const auto* name = std::get_if<syntax::Name>(&e.node)) {
            positions_[name->id].push_back(position);
            if (!lambdas.empty() && !syntax::is_own(name->id, lambdas.back())) captured_.insert(name->id);
        }
        if (const auto* lambda = std::get_if<syntax::Lambda>(&e.node)) {
            has_lambdas_ = true;
            lambdas.push_back(lambda->function->scope);
            number(lambda->function->body);
            lambdas.pop_back();
        }
    };
    // A target that is a plain name is no read; x[i] = v and x += v do read x.
    const auto is_plain = [](const syntax::Expression& target) {
        return std::holds_alternative<syntax::Name>(target.node);
    };
    number = [&](const syntax::Block& block) {
        for (const auto& statement : block) {
            const int begin = position;
            if (const auto* assign = std::get_if<syntax::Assign>(&statement->node)) {
                walk_if(assign->value, visit);
                for (const auto& target : assign->targets) {
                    if (!is_plain(*target)) walk(*target, visit);
                }
            } else if (const auto* loop = std::get_if<syntax::For>(&statement->node)) {
                walk_if(loop->iterable, visit);
                if (!is_plain(*loop->target)) walk(*loop->target, visit);
            } else {
                walk_own(*statement, visit);
            }
            for (const syntax::Block* inner : blocks_of(*statement)) number(*inner);
            extent_[statement.get()] = {begin, position};
        }
    };
    number(function.body);
}

bool Reads::in_block(const std::string& name, const syntax::Block& block, std::size_t from) const {
    if (from >= block.size()) return false;
    const auto found = positions_.find(name);
    if (found == positions_.end()) return false;
    const int begin = extent_.at(block[from].get()).first;
    const int end = extent_.at(block.back().get()).second;
    const auto next = std::upper_bound(found->second.begin(), found->second.end(), begin);
    return next != found->second.end() && *next <= end;
}

}  // namespace weft::sema
