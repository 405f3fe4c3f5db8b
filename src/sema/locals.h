// The locals of a function at the point that the analysis has reached, and the code after it that may read them.
//
// Locals have no address. The scope maps each name to its value at the current point; an assignment replaces the entry.
// If two paths meet (branch_writer.h), the entries that differ become results of an `if_`. In a loop
// (loop_writer.h) they become carried values.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/builder.h"
#include "sema/environment.h"
#include "sema/options.h"
#include "sema/value.h"
#include "sema/walk.h"
#include "syntax/tree.h"

namespace weft::sema {

// The remaining work, a stack: statement lists, and assignments to variables of unrolled loops. The next one is
// last.
struct Work {
    const syntax::Block* block = nullptr;
    std::size_t next = 0;
    const syntax::Expression* target = nullptr;  // instead of a block
    Value value;
};
using WorkList = std::vector<Work>;

class Locals {
public:
    Locals(const FunctionSource& source, const Options& options, ir::Builder& builder);

    // Null if the name has no entry here.
    const Local* find(const std::string& name) const;
    void assign(const std::string& name, Value value, Span span);
    // Records that this path leaves by break, continue or return (control/return.cpp).
    void leave(bool stops_loop, bool returns);

    // A local of this function, though it may have no value yet. As in Python, a name that the function assigns
    // anywhere is local everywhere.
    bool is_local(const std::string& name) const { return names_.contains(name) || syntax::is_of_lambda(name); }
    // A parameter that is passed by reference.
    bool is_reference(const std::string& name) const { return references_.contains(name); }
    bool is_carried(const std::string& name) const;
    // Whether any code that can run after the current branch or loop reads the name.
    bool is_needed(const std::string& name) const;
    const Reads& reads() const { return reads_; }

    // A loop around the current statement that is one in the IR.
    struct Loop {
        std::set<std::string> carried;
    };
    // The type and the place that the first return, or the annotation, gives to $result.
    struct Result {
        std::optional<Type> type;
        Span place;
    };

    Scope scope;
    std::vector<Loop> loops;                  // innermost last
    std::vector<const WorkList*> afterwards;  // work after the current branch or loop, outermost first
    bool skip_needed = false;                 // code that follows must ask whether it was skipped
    // Closures whose bodies are being written into this function, outermost first.
    std::vector<const syntax::Lambda*> inlined;
    Result result;

private:
    const std::set<std::string>& references_;
    const bool is_debug_;
    ir::Builder& builder_;
    Reads reads_;
    std::set<std::string> names_;
};

// wp.adjoint[x] is a local of this name (frontend/tree_reader.cpp), which no name of Python's can be.
inline std::string adjoint_name(const std::string& parameter) { return "adjoint[" + parameter + "]"; }
inline bool is_adjoint_name(const std::string& name) { return name.back() == ']'; }

// The local by which debug builds track whether the other one has been assigned. Branches merge it and loops carry it
// with that one. It starts as zero.
inline std::string assigned_flag(const std::string& name) { return "?" + name; }
inline bool is_assigned_flag(const std::string& name) { return name[0] == '?'; }
// A tile that no name of the program holds: one that a parameter is a view of, or that views have kept.
inline bool is_tile_storage(const std::string& name) { return name[0] == '&'; }
inline std::string tile_storage(const std::string& name) { return "&" + name; }
// The name of a local in IR.
inline std::string shown_name(const std::string& name) {
    if (is_assigned_flag(name)) return "has_" + name.substr(1);
    return name[0] == '$' || is_tile_storage(name) ? name.substr(1) : name;
}

// Hidden locals that carry break, continue and return: see control/return.cpp.
inline constexpr const char* kSkip = "$skip";
inline constexpr const char* kGo = "$go";
inline constexpr const char* kReturned = "$returned";
inline constexpr const char* kResult = "$result";

}  // namespace weft::sema
