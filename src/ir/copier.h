// What a pass stands on that writes a kernel anew from another one, operation by operation: values of the source and
// what stands for them in the kernel that is made, to which operations are appended in program order.
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
    // The parameter stands for that of the source from here on.
    Value* append_parameter(const Value* parameter);
    // All parameters of the source, with what is said of those that the compiler added.
    void append_parameters();
    Operation* append_copy(const Operation& operation);

    // What a copied region yields for the values that it carries besides those of the source. `more` are its arguments
    // for them; a branch has none.
    using Fill = std::function<std::vector<Value*>(const Region& from, std::vector<Value*> more)>;
    // A copy of a branch or loop, whose regions `fill` fills but for the yields of the source. A loop carries more
    // values than the source's, which start as `starts`; a branch gives as many more as its regions yield. They come
    // last, but for a guard. Gives the results for them.
    std::vector<Value*> append_structured(const Operation& operation, const std::vector<Value*>& starts,
                                          const Fill& fill);

    const Function& source_;
    std::unique_ptr<Function> made_;
    Builder b_;
    ValueMap map_;
};

}  // namespace weft::ir
