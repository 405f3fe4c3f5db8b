// The parameters that arrays come from.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "ir/ir.h"

namespace weft::ir {

// Which parameters each value that holds arrays may lead to: a set of parameters per value, grown until nothing
// changes. Arrays flow through views, structs, selections, branches and loops; a value made from several leads to all
// of theirs. What was stored anywhere may come out of any memory again. What comes out of memory leads to the
// parameters that lead to this memory.
class Origins {
public:
    explicit Origins(const Function& function);

    // Calls visit(number of the parameter).
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
    std::vector<std::uint64_t> stored_;  // what values that were stored lead to
    bool changed_ = false;
};

// The parameters that a value is computed from; all of them where it comes round a loop or out of a branch.
std::set<std::size_t> parameters_behind(const Function& function, const Value& value);

}  // namespace weft::ir
