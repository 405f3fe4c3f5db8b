// What stands on a tape: something that ran, and how to go back through it.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "program/tape_memory.h"

namespace weft::program {

// A gradient of an argument of a launch that is read in place of the array's own, and has the strides of the array.
struct SuppliedGradient {
    std::size_t parameter;
    runtime::Array gradient;
};

class TapeEntry {
public:
    // Arrays that count as one write to each memory that they lie in.
    using Group = std::vector<const Variable*>;
    using Visit = std::function<void(const Variable&, bool is_written)>;
    // What going back through an entry is given.
    struct Backward {
        TapeMemory& memory;
        std::span<const SuppliedGradient> supplied;
        const std::function<Group()>& written_after;  // the arrays that later entries write
    };

    virtual ~TapeEntry() = default;
    // Tells the tape's memory what it needs and writes (TapeMemory::begin_entry()), as it is about to run.
    virtual void record(TapeMemory& memory) = 0;
    // Adds to the gradients of what was read, and uses up those of what was overwritten.
    virtual void backward(const Backward& backward) = 0;

    virtual std::vector<Group> written() const = 0;
    // All arrays that it has to do with; one may stand here several times.
    virtual void for_each_array(const Visit& visit) const = 0;
    // Those whose gradients the backward pass may start from.
    virtual Group may_start() const;
    virtual bool is_launch() const { return false; }
    // Whether going back does what nobody but the user knows.
    virtual bool is_unknown() const { return false; }
    // Its arrays as stopped_gradients.h asks for them; `place` tells them apart. None where nothing is known of them.
    struct Use {
        const Variable* array = nullptr;
        std::size_t place = 0;
        bool is_read = false, is_written = false, is_overwritten = false;
    };
    virtual std::vector<Use> uses() const { return {}; }
    // Whether it writes floats to an array without a gradient, and has to do with one that has one.
    virtual bool may_stop_gradients() const;
    // Whether what it writes in one place may have a derivative by what it reads in another.
    virtual bool has_derivative(const Use&, const Use&) const { return true; }
    virtual std::string use_text(const Use&) const { return text(); }
    // The same for entries that do the same with arrays that have gradients at the same places.
    virtual const void* kind() const { return nullptr; }
    // Which argument the array is, if the entry is a launch that overwrites all of it and does nothing else with it; -1
    // if not.
    virtual int overwritten(const Variable&) const { return -1; }
    virtual std::string text() const = 0;  // for messages
};

}  // namespace weft::program
