// Common subexpressions: operations whose value has been computed already.
//
// Scopes follow regions, so a value that is found dominates the operation that asks for it. Loads count as equal only
// within one epoch of memory. Everything that may write starts a new epoch, and, as arrays may overlap, it does so for
// all arrays.
#pragma once

#include <deque>
#include <unordered_set>
#include <vector>

#include "ir/ir.h"

namespace weft::transform {

class CommonSubexpressions {
public:
    // The value that `operation` would compute again, or null; then later calls find its own. Null for operations that
    // are never merged (effects, regions).
    ir::Value* find_or_add(const ir::Operation& operation);

    // After a store: a load from the same element gives the stored value.
    void note_store(const ir::Operation& store);

    int epoch() const { return epoch_; }
    void set_epoch(int epoch) { epoch_ = epoch; }
    void new_epoch() { epoch_ = ++last_epoch_; }

    // Forgets at its end the values that were added during its life.
    class Scope {
    public:
        explicit Scope(CommonSubexpressions& values) : values_(values), size_(values.log_.size()) {}
        ~Scope() { values_.forget_since(size_); }
        Scope(const Scope&) = delete;
        Scope& operator=(const Scope&) = delete;

    private:
        CommonSubexpressions& values_;
        std::size_t size_;
    };

private:
    struct Entry {
        const ir::Operation* operation;
        int epoch;  // 0 for operations that do not read memory
        ir::Value* value;
    };
    struct Hash {
        std::size_t operator()(const Entry& entry) const;
    };
    struct Equal {
        bool operator()(const Entry& a, const Entry& b) const;
    };
    void forget_since(std::size_t size);

    std::unordered_set<Entry, Hash, Equal> entries_;
    std::vector<Entry> log_;
    std::deque<ir::Operation> loads_;  // the loads that stores stand for
    int epoch_ = 1;
    int last_epoch_ = 1;
};

}  // namespace weft::transform
