// The state that the analyses of one module's functions share.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/ir.h"
#include "sema/options.h"
#include "support/error.h"

namespace weft::sema {

// Shared by all functions of one module.
struct ModuleState {
    ir::Module& module;
    const Options& options;
    std::map<std::string, ir::Function*> instances;          // finished, by function and argument types
    std::map<const ir::Function*, ir::Function*> gradients;  // of instances, as far as wp.grad asked for them
    // Of instances, the numbers of the references that they assign.
    std::map<const ir::Function*, std::vector<std::size_t>> changed_references;
    // Of instances, the numbers of the parameters whose tiles they change.
    std::map<const ir::Function*, std::vector<std::size_t>> changed_tiles;

    struct Active {
        std::string function_key;
        std::string name;
    };
    std::vector<Active> active;  // functions being analysed, outermost first

    int tid_rank = 0;  // the most coordinates that a tid() of this module gives; 0 while not called

    // Text of every function met: spans in the IR point into it.
    void keep_source(const SourcePtr& source);
    std::string unique_name(const std::string& wanted) const;
};

}  // namespace weft::sema
