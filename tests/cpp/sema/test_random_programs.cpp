// Random programs of assignments, branches, loops, break, continue and return: the results of the analysed function
// must be those of a walk of the syntax tree as Python does it. The walk shares nothing with the analysis.
#include <map>
#include <optional>
#include <random>

#include "sema/fixture.h"

namespace weft::sema::test {
namespace {

// ---- the meaning of the tree ----
class TreeWalk {
public:
    std::map<std::string, long> names;

    // The statement that left the block early, if any.
    enum class Exit { none, breaks, continues, returns };
    long result = 0;

    long value(const syntax::Expression& e) {
        if (const auto* n = std::get_if<syntax::Name>(&e.node)) return names.at(n->id);
        if (const auto* n = std::get_if<syntax::IntegerLiteral>(&e.node)) return n->value;
        if (const auto* n = std::get_if<syntax::Binary>(&e.node)) {
            const long x = value(*n->left), y = value(*n->right);
            switch (n->op) {
                case syntax::BinaryOperator::add:
                    return x + y;
                case syntax::BinaryOperator::sub:
                    return x - y;
                case syntax::BinaryOperator::mul:
                    return x * y;
                default:
                    return x % y;
            }
        }
        if (const auto* n = std::get_if<syntax::BoolOp>(&e.node)) {
            const bool first = value(*n->operands[0]) != 0;
            return first == n->is_and ? value(*n->operands[1]) : first;
        }
        if (const auto* n = std::get_if<syntax::IfExpression>(&e.node)) {
            return value(value(*n->condition) ? *n->then_value : *n->else_value);
        }
        const auto& c = std::get<syntax::Compare>(e.node);
        const long x = value(*c.left), y = value(*c.operands[0]);
        return c.ops[0] == syntax::CompareOperator::lt ? x < y : x == y;
    }

    Exit run(const syntax::Block& block) {
        for (const auto& statement : block) {
            const Exit exit = run(*statement);
            if (exit != Exit::none) return exit;
        }
        return Exit::none;
    }

    Exit run(const syntax::Statement& s) {
        if (const auto* n = std::get_if<syntax::Assign>(&s.node)) {
            names[std::get<syntax::Name>(n->targets[0]->node).id] = value(*n->value);
            return Exit::none;
        }
        if (const auto* n = std::get_if<syntax::If>(&s.node))
            return run(value(*n->condition) ? n->then_block : n->else_block);
        if (std::holds_alternative<syntax::Break>(s.node)) return Exit::breaks;
        if (std::holds_alternative<syntax::Continue>(s.node)) return Exit::continues;
        if (const auto* n = std::get_if<syntax::Return>(&s.node)) {
            result = value(*n->value);
            return Exit::returns;
        }
        if (const auto* n = std::get_if<syntax::For>(&s.node)) {
            const long stop = value(*std::get<syntax::Call>(n->iterable->node).arguments[0]);
            for (long k = 0; k < stop; ++k) {
                names[std::get<syntax::Name>(n->target->node).id] = k;
                const Exit exit = run(n->body);
                if (exit == Exit::breaks) break;
                if (exit == Exit::returns) return exit;
            }
            return Exit::none;
        }
        const auto& n = std::get<syntax::While>(s.node);
        while (value(*n.condition)) {
            const Exit exit = run(n.body);
            if (exit == Exit::breaks) break;
            if (exit == Exit::returns) return exit;
        }
        return Exit::none;
    }
};

// ---- making programs ----
class Generator {
public:
    explicit Generator(unsigned seed) : random_(seed) {}

    syntax::Block program() {
        syntax::Block result = body(3, false);
        result.push_back(return_(expression()).node);
        return result;
    }

private:
    std::mt19937 random_;
    int loops_ = 0;

    int pick(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
    X name() { return X(std::vector<const char*>{"a", "b", "c"}[static_cast<std::size_t>(pick(3))]); }
    X atom() { return pick(3) ? name() : X(pick(5)); }
    X condition() {
        switch (pick(4)) {
            case 0:
                return atom() == atom();
            case 1:
                return all_of(name() < 50, atom() < atom());
            case 2:
                return any_of(atom() == atom(), (name() % 3) == pick(3));
            default:
                return name() < atom() * 7;
        }
    }
    // Kept small, so that integers of both walks agree.
    X expression() {
        switch (pick(4)) {
            case 0:
                return (atom() * 3 + atom()) % 101;
            case 1:
                return (atom() + atom()) % 97;
            case 2:
                return either(condition(), atom(), atom());
            default:
                return atom();
        }
    }
    S assignment() { return set(name(), expression()); }

    syntax::Block body(int depth, bool in_loop) {
        syntax::Block result;
        for (int n = 1 + pick(3); n > 0; --n) add(result, depth, in_loop);
        return result;
    }
    void add(syntax::Block& to, int depth, bool in_loop) {
        const int choice = pick(10);
        if (depth > 0 && choice < 3) {
            to.push_back(
                if_(condition(), body(depth - 1, in_loop), pick(2) ? body(depth - 1, in_loop) : syntax::Block{}).node);
        } else if (depth > 0 && choice < 5) {
            const std::string k = "k" + std::to_string(loops_++);
            to.push_back(
                for_(X(k.c_str()), call("range", pick(2) ? X(1 + pick(4)) : name() % 5), body(depth - 1, true)).node);
        } else if (depth > 0 && choice == 5) {
            // A counter that the body changes first bounds every while loop.
            const std::string w = "w" + std::to_string(loops_++);
            to.push_back(set(X(w.c_str()), 0).node);
            syntax::Block inner = body(depth - 1, true);
            inner.insert(inner.begin(), std::move(set(X(w.c_str()), X(w.c_str()) + 1).node));
            X more = X(w.c_str()) < 1 + pick(4);
            to.push_back(
                while_(pick(2) ? std::move(more) : all_of(std::move(more), condition()), std::move(inner)).node);
        } else if (in_loop && choice == 6) {
            to.push_back(if_(condition(), block(break_())).node);
        } else if (in_loop && choice == 7) {
            to.push_back(if_(condition(), block(assignment(), continue_())).node);
        } else if (choice == 8 && pick(2)) {
            to.push_back(if_(condition(), block(return_(expression()))).node);
        } else {
            to.push_back(assignment().node);
        }
    }
};

TEST(RandomPrograms, compute_what_their_tree_says) {
    const std::vector<Parameter> parameters = {{"a", i32}, {"b", i32}, {"c", i32}};
    for (unsigned seed = 0; seed < 300; ++seed) {
        const auto f = function("f", parameters, Generator(seed).program());
        const auto kernel = function("use", {{"out", ints}, {"a", i32}, {"b", i32}, {"c", i32}},
                                     block(set(sub("out", 0), call("f", "a", "b", "c"))), {{"f", function_binding(f)}});
        std::unique_ptr<ir::Module> module;
        ASSERT_NO_THROW(module = analyzed(kernel)) << "seed " << seed;
        for (int trial = 0; trial < 4; ++trial) {
            const long a = trial * 7, b = trial % 2, c = 13 - trial * 4;
            TreeWalk walk;
            walk.names = {{"a", a}, {"b", b}, {"c", c}};
            ASSERT_EQ(walk.run(f->tree->body), TreeWalk::Exit::returns);
            Memory out{{1}, {-1}};
            const auto number = [](long n) { return Datum(static_cast<double>(n)); };
            Interpreter interpreter;
            interpreter.run(*module->functions[0], {&out, number(a), number(b), number(c)});
            ASSERT_EQ(static_cast<long>(out.numbers()[0]), walk.result) << "seed " << seed << " trial " << trial << "\n"
                                                                        << ir::print(*module);
        }
    }
}

}  // namespace
}  // namespace weft::sema::test
