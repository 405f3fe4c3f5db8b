// Questions about the text of a function that need no types: which names a block assigns, where names are read, and
// whether control can leave a block early. Found once per function or block, by walking the tree.
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

// Calls `visit` for the expression and everything in it but the bodies of lambdas, in source order.
void walk(const syntax::Expression& expression, const std::function<void(const syntax::Expression&)>& visit);
// Calls `visit` for every expression of the block, and `enter` for every statement, nested ones too.
void walk(const syntax::Block& block, const std::function<void(const syntax::Statement&)>& enter,
          const std::function<void(const syntax::Expression&)>& visit);

// Names that an assignment target binds or changes: x, x.y, x[i] give x; tuples all of theirs. Arrays that are only
// written through are among them: that is harmless.
void target_names(const syntax::Expression& target, std::set<std::string>& names);
// All names that statements of the block assign. `inout_names` is asked of each expression, and adds those that a call
// assigns through its arguments.
using InoutNames = std::function<void(const syntax::Expression&, std::set<std::string>&)>;
std::set<std::string> assigned_names(const syntax::Block& block, const InoutNames& inout_names);
// Names that the block gives a new value as a whole, by a plain target: what makes a name local in Python.
std::set<std::string> rebound_names(const syntax::Block& block);
// The names that this expression assigns through calls.
std::set<std::string> assigned_names(const syntax::Expression& expression, const InoutNames& inout_names);

// Of the names that the body of a loop gives a value as a whole:
struct Iteration {
    std::set<std::string> reads_first;  // those that it may read before it has assigned them
    std::set<std::string> leaves_out;   // those that some path to its end has not assigned
};
// `targets` are assigned before the body, `condition` (null for none) is read before it.
Iteration iteration(const syntax::Block& body, const syntax::Expression* condition,
                    const std::set<std::string>& targets, const std::set<std::string>& rebound);

// How control may leave the block, judged from the text alone: break and continue of loops inside it do not count.
Flow possible_exits(const syntax::Block& block);
// True where no path through the block runs off its end.
bool always_exits(const syntax::Block& block);

// Where names are read, by position in source order.
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
