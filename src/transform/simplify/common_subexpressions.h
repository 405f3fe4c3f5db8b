// Values that are computed already at a place in the program: common subexpressions.
//
// Scopes follow regions, so whatever is found dominates the place it is asked from. Loads count as equal only within
// one epoch of memory: everything that may write starts a new one. Arrays may overlap, so any write ends the epoch of
// all.
#pragma once

#include <deque>
#include <unordered_set>
#include <vector>

#include "ir/ir.h"

namespace weft::transform {

class CommonSubexpressions {
public:
    // The value that `operation` would give again, or null; from then on `operation` gives it. Operations that are
    // never merged (effects, regions) give null.
    ir::Value* find_or_add(const ir::Operation& operation);

    // After a store: a load from the same place gives the stored value.
    void note_store(const ir::Operation& store);

    int epoch() const { return epoch_; }
    void set_epoch(int epoch) { epoch_ = epoch; }
    void new_epoch() { epoch_ = ++last_epoch_; }

    // What is added during the life of a Scope is forgotten at its end.
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
        int epoch;  // 0 for what does not read memory
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
