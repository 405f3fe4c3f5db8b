// The names that one iteration of a loop may read from an earlier one: definite assignment, on the text. A path through
// the body is the set of names that it has assigned so far; paths meet in the intersection.
#include <map>
#include <optional>

#include "sema/overloaded.h"
#include "sema/walk.h"

namespace weft::sema {

namespace {

class Iterations {
public:
    Iterations(const std::set<std::string>& names, Iteration& found) : found_(found) {
        for (const std::string& name : names) numbers_.emplace(name, numbers_.size());
    }

    // Analyses the path through the whole body; `found` then has the names that it reads first and leaves out.
    void run(const syntax::Block& body, const syntax::Expression* condition, const std::set<std::string>& targets) {
        Path path = std::vector<bool>(numbers_.size());
        for (const std::string& name : targets) assign(name, path);
        if (condition) read(*condition, path);
        Exits exits;
        block(body, path, exits);
        for (const Path& exit : {path, exits.breaks, exits.continues}) {
            for (const auto& [name, number] : numbers_)
                if (exit && !(*exit)[number]) found_.leaves_out.insert(name);
        }
    }

private:
    using Path = std::optional<std::vector<bool>>;  // none: unreachable
    struct Exits {
        Path breaks, continues;
    };

    static void meet(Path& path, const Path& other) {
        if (!other) return;
        if (!path) {
            path = other;
            return;
        }
        for (std::size_t i = 0; i < path->size(); ++i) (*path)[i] = (*path)[i] && (*other)[i];
    }

    void assign(const std::string& name, Path& path) const {
        const auto number = numbers_.find(name);
        if (path && number != numbers_.end()) (*path)[number->second] = true;
    }

    void read(const syntax::Expression& expression, const Path& path) {
        if (!path) return;
        walk(expression, [&](const syntax::Expression& e) {
            const auto* name = std::get_if<syntax::Name>(&e.node);
            const auto number = name ? numbers_.find(name->id) : numbers_.end();
            if (number != numbers_.end() && !(*path)[number->second]) found_.reads_first.insert(name->id);
        });
    }

    void read(const syntax::ExpressionPtr& expression, const Path& path) {
        if (expression) read(*expression, path);
    }

    // Targets other than names change a part of a value, and so read it.
    void target(const syntax::Expression& expression, Path& path) {
        if (const auto* name = std::get_if<syntax::Name>(&expression.node)) {
            assign(name->id, path);
        } else if (const auto* tuple = std::get_if<syntax::Tuple>(&expression.node)) {
            for (const auto& element : tuple->elements) target(*element, path);
        } else if (const auto* starred = std::get_if<syntax::Starred>(&expression.node)) {
            target(*starred->value, path);
        } else {
            read(expression, path);
        }
    }

    void block(const syntax::Block& statements, Path& path, Exits& exits) {
        for (const auto& statement : statements) this->statement(*statement, path, exits);
    }

    // Whether the text says that a for loop runs its body at least once.
    static bool runs(const syntax::Expression& iterable) {
        if (const auto* tuple = std::get_if<syntax::Tuple>(&iterable.node)) return !tuple->elements.empty();
        const auto* call = std::get_if<syntax::Call>(&iterable.node);
        const auto* name = call ? std::get_if<syntax::Name>(&call->function->node) : nullptr;
        if (!name || name->id != "range" || call->arguments.size() != 1) return false;
        const auto* count = std::get_if<syntax::IntegerLiteral>(&call->arguments[0]->node);
        return count && count->value > 0;
    }

    void loop(const syntax::Block& body, const syntax::Expression* loop_target, bool runs, bool endless, Path& path) {
        Path inside = path;
        if (loop_target) target(*loop_target, inside);
        Exits exits;
        block(body, inside, exits);
        meet(inside, exits.continues);
        if (endless) {
            path = exits.breaks;
        } else {
            if (runs)
                path = inside;
            else
                meet(path, inside);
            meet(path, exits.breaks);
        }
    }

    void statement(const syntax::Statement& statement, Path& path, Exits& exits) {
        std::visit(Overloaded{
                       [&](const syntax::Assign& s) {
                           read(s.value, path);
                           for (const auto& t : s.targets) target(*t, path);
                       },
                       [&](const syntax::AnnotatedAssign& s) {
                           read(s.value, path);
                           if (s.value) target(*s.target, path);
                       },
                       [&](const syntax::AugmentedAssign& s) {
                           read(s.target, path);
                           read(s.value, path);
                           target(*s.target, path);
                       },
                       [&](const syntax::ExpressionStatement& s) { read(s.value, path); },
                       [&](const syntax::If& s) {
                           read(s.condition, path);
                           Path other = path;
                           block(s.then_block, path, exits);
                           block(s.else_block, other, exits);
                           meet(path, other);
                       },
                       [&](const syntax::For& s) {
                           read(s.iterable, path);
                           loop(s.body, s.target.get(), runs(*s.iterable), false, path);
                       },
                       [&](const syntax::While& s) {
                           read(s.condition, path);
                           const auto* literal = std::get_if<syntax::BoolLiteral>(&s.condition->node);
                           loop(s.body, nullptr, false, literal && literal->value, path);
                       },
                       [&](const syntax::Return& s) {
                           read(s.value, path);
                           path.reset();
                       },
                       [&](const syntax::Break&) {
                           meet(exits.breaks, path);
                           path.reset();
                       },
                       [&](const syntax::Continue&) {
                           meet(exits.continues, path);
                           path.reset();
                       },
                       [&](const syntax::Assert& s) {
                           read(s.condition, path);
                           read(s.message, path);
                       },
                       [&](const syntax::Raise& s) {
                           read(s.exception, path);
                           path.reset();
                       },
                       [](const auto&) {},
                   },
                   statement.node);
    }

    std::map<std::string, std::size_t, std::less<>> numbers_;
    Iteration& found_;
};

}  // namespace

Iteration iteration(const syntax::Block& body, const syntax::Expression* condition,
                    const std::set<std::string>& targets, const std::set<std::string>& rebound) {
    Iteration found;
    Iterations(rebound, found).run(body, condition, targets);
    return found;
}

}  // namespace weft::sema
