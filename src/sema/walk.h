// Analyses of a function's text that need no types: the names that a block assigns, the reads of names, and whether
// control can leave a block early. Computed once for each function or block, by walking the tree.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sema/value.h"
#include "syntax/tree.h"

namespace weft::sema {

// Calls `visit` for the expression and all expressions in it except in bodies of lambdas, in source order.
void walk(const syntax::Expression& expression, const std::function<void(const syntax::Expression&)>& visit);
// Calls `visit` for every expression of the block, and `enter` for every statement, nested ones too.
void walk(const syntax::Block& block, const std::function<void(const syntax::Statement&)>& enter,
          const std::function<void(const syntax::Expression&)>& visit);

// Names that an assignment target binds or changes: x, x.y, x[i] give x; tuples give all of theirs. Arrays that are
// only written through are included, which is harmless.
void target_names(const syntax::Expression& target, std::set<std::string>& names);
// All names that statements of the block assign. `inout_names` is called with each expression, and adds the names that
// a call assigns through its arguments.
using InoutNames = std::function<void(const syntax::Expression&, std::set<std::string>&)>;
std::set<std::string> assigned_names(const syntax::Block& block, const InoutNames& inout_names);
// Names that the block rebinds by a plain target, which makes a name local in Python.
std::set<std::string> rebound_names(const syntax::Block& block);
// The names that this expression assigns through calls.
std::set<std::string> assigned_names(const syntax::Expression& expression, const InoutNames& inout_names);

// The rebound names of a loop's body:
struct Iteration {
    std::set<std::string> reads_first;  // those that it may read before it has assigned them
    std::set<std::string> leaves_out;   // those that some path to its end has not assigned
};
// `targets` are assigned before the body, `condition` (null for none) is read before it.
Iteration iteration(const syntax::Block& body, const syntax::Expression* condition,
                    const std::set<std::string>& targets, const std::set<std::string>& rebound);

// How control may leave the block, judged from the text alone: break and continue of loops inside it do not count.
Flow possible_exits(const syntax::Block& block);
// True if no path through the block runs off its end.
bool always_exits(const syntax::Block& block);

// The reads of names, by position in source order.
class Reads {
public:
    explicit Reads(const syntax::Function& function);
    // Whether statements [from, end) of the block read the name.
    bool in_block(const std::string& name, const syntax::Block& block, std::size_t from) const;
    bool has_lambdas() const { return has_lambdas_; }
    // Whether the body of a lambda, which may be called anywhere, reads the name of a function around it.
    bool is_captured(const std::string& name) const { return captured_.contains(name); }

private:
    std::unordered_map<const syntax::Statement*, std::pair<int, int>> extent_;
    std::map<std::string, std::vector<int>> positions_;
    std::set<std::string> captured_;
    bool has_lambdas_ = false;
};

}  // namespace weft::sema
