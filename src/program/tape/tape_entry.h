// An entry of a tape: something that ran, and its backward pass.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "program/tape/tape_memory.h"

namespace weft::program {

// A gradient of a launch's argument that is read in place of the array's own, with the strides of the array.
struct SuppliedGradient {
    std::size_t parameter;
    runtime::Array gradient;
};

class TapeEntry {
public:
    // Arrays that count as one write to each memory that they lie in.
    using Group = std::vector<const Variable*>;
    using Visit = std::function<void(const Variable&, bool is_written)>;
    // The arguments of an entry's backward pass.
    struct Backward {
        TapeMemory& memory;
        std::span<const SuppliedGradient> supplied;
        const std::function<Group()>& written_after;  // the arrays that later entries write
    };

    virtual ~TapeEntry() = default;
    // Reports its needs and writes to the tape's memory (TapeMemory::begin_entry()), before it runs.
    virtual void record(TapeMemory& memory) = 0;
    // Adds to the gradients of arrays that it read, and consumes those of arrays that it overwrote.
    virtual void backward(const Backward& backward) = 0;

    virtual std::vector<Group> written() const = 0;
    // Visits all its arrays; one may appear several times.
    virtual void for_each_array(const Visit& visit) const = 0;
    // Arrays whose gradients the backward pass may start from.
    virtual Group may_start() const;
    virtual bool is_launch() const { return false; }
    // The kernel of a launch that has no backward pass only because of enable_backward=False; else null.
    virtual const std::string* left_out() const { return nullptr; }
    // Whether its backward pass is a function of the user's.
    virtual bool is_unknown() const { return false; }
    // Its arrays for stopped_gradients.h; `index` tells them apart. Empty if they are not known.
    struct Use {
        const Variable* array = nullptr;
        std::size_t index = 0;
        bool is_read = false, is_written = false, is_overwritten = false;
    };
    virtual std::vector<Use> uses() const { return {}; }
    // Whether it writes floats to an array without a gradient, and reads or writes one that has one.
    virtual bool may_stop_gradients() const;
    // Whether its write in one place may have a derivative by its read in another.
    virtual bool has_derivative(const Use&, const Use&) const { return true; }
    virtual std::string use_text(const Use&) const { return text(); }
    // Equal for entries that do the same with arrays that have gradients at the same places.
    virtual const void* kind() const { return nullptr; }
    // The argument that the array is, if the entry is a launch that overwrites all of it and does nothing else with it;
    // else -1.
    virtual int overwritten(const Variable&) const { return -1; }
    virtual std::string text() const = 0;  // for messages
};

}  // namespace weft::program
