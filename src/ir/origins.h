// The parameters that arrays come from.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "ir/ir.h"

namespace weft::ir {

// For each value that holds arrays, the set of parameters that it may come from, as a fixed point. Arrays flow through
// views, structs, selections, branches and loops; a value made from several has all of their origins. Any load may
// return any stored array. A loaded array has the origins of the memory that it was loaded from.
class Origins {
public:
    explicit Origins(const Function& function);

    // Calls visit() with the number of each parameter.
    template <class Visit>
    void for_each(const Value& value, Visit&& visit) const {
        const std::uint64_t* bits = &sets_[static_cast<std::size_t>(value.id) * words_];
        for (std::size_t i = 0; i < function_.parameters().size(); ++i)
            if (bits[i / 64] >> (i % 64) & 1) visit(i);
    }

private:
    std::uint64_t* set(const Value& value) { return &sets_[static_cast<std::size_t>(value.id) * words_]; }
    void add(const Value& to, const Value& from);
    void merge(std::uint64_t* into, const std::uint64_t* from);
    void flow(const Operation& operation);
    void carry(const Operation& loop, const Region& region, std::size_t first_init, std::size_t first_argument);
    void yields_to(const std::vector<Value*>& targets, const Region& region);

    const Function& function_;
    std::size_t words_;
    std::vector<std::uint64_t> sets_;
    std::vector<std::uint64_t> stored_;  // the origins of stored values
    bool changed_ = false;
};

// The parameters that a value is computed from; all of them if it is carried by a loop or comes from a branch.
std::set<std::size_t> parameters_behind(const Function& function, const Value& value);

}  // namespace weft::ir
