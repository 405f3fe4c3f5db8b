// The base of passes that write a kernel anew from another one, operation by operation. It maps values of the source to
// their copies and appends operations in program order.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "ir/builder.h"
#include "ir/walk.h"

namespace weft::ir {

class Copier {
protected:
    // Makes a kernel of the source's name and rank, without parameters.
    explicit Copier(const Function& source);

    Value* copy(const Value* value) const { return map_[const_cast<Value*>(value)]; }
    std::vector<Value*> copies(std::span<Value* const> values) const;
    // Appends a parameter, the copy of the given one.
    Value* append_parameter(const Value* parameter);
    // Appends all parameters of the source, with its ImplicitParameters.
    void append_parameters();
    Operation* append_copy(const Operation& operation);

    // Gives the extra values that a copied region yields behind those of the source. `more` are the region's arguments
    // for them; a branch has none.
    using Fill = std::function<std::vector<Value*>(const Region& from, std::vector<Value*> more)>;
    // Appends a copy of a branch or loop. `fill` writes its regions, up to the yields of the source. A loop carries
    // more values than the source's, which start as `starts`; a branch gives as many more as its regions yield. They
    // come last, but before a guard. Returns the results for them.
    std::vector<Value*> append_structured(const Operation& operation, const std::vector<Value*>& starts,
                                          const Fill& fill);

    const Function& source_;
    std::unique_ptr<Function> made_;
    Builder b_;
    ValueMap map_;
};

}  // namespace weft::ir
