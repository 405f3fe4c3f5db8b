// Entries of wp.Tape besides launches: writes by the host, operations on whole arrays, functions of the user. Each
// keeps its arrays alive, and becomes a Python object at its first use there.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <utility>
#include <vector>

#include "bindings/values/array_value.h"
#include "program/tape/recorded_write.h"

namespace weft::bindings {

// The interface of an entry to Python's garbage collector.
class Visited {
public:
    virtual ~Visited() = default;
    virtual int traverse(visitproc visit, void* arg) const = 0;
};

class PyWrite final : public program::RecordedWrite, public Visited {
public:
    PyWrite(nb::object to, nb::object from);
    int traverse(visitproc visit, void* arg) const override;

private:
    nb::object to_object_, from_object_;  // the latter is null for numbers from elsewhere
};

// An operation on whole arrays, which python/warp/_gradients/recording.py describes: how each array that it reads
// affects each that it writes.
class PyOperation final : public program::TapeEntry, public Visited {
public:
    // The dicts have arrays by their names in messages; `needs` are arrays whose contents are factors of gradients.
    PyOperation(nb::object name, nb::dict reads, nb::dict writes, nb::dict needs, nb::object parts);

    void record(program::TapeMemory& memory) override;
    void backward(const Backward& backward) override;
    std::vector<Group> written() const override;
    void for_each_array(const Visit& visit) const override;
    std::string text() const override;
    std::vector<Use> uses() const override;
    std::string use_text(const Use& use) const override;
    int traverse(visitproc visit, void* arg) const override;

    // The parts that gradients go through. Known after the operation.
    nb::list parts();
    // The factors of a part, with the contents from before the operation.
    nb::list factors(nb::handle part) const;
    // The gradients of written arrays, as gradient_of(array) gives them, copied to new arrays, by the id of the written
    // array. The originals become zeros.
    nb::dict take(nb::handle gradient_of);
    nb::dict needs() const;

    nb::object name, result;
    nb::dict reads, writes;

private:
    nb::list all_parts();

    struct Factor {
        nb::object name, array;
        program::SavedPrimalPtr primal;
    };
    std::vector<Factor> needs_;
    nb::object make_parts_, parts_;
};

// A backward step of the user's own: record_func().
class PyFunction final : public program::TapeEntry, public Visited {
public:
    PyFunction(nb::object backward, nb::list arrays) : backward_(std::move(backward)), arrays_(std::move(arrays)) {}

    void record(program::TapeMemory&) override {}
    void backward(const Backward& backward) override;
    std::vector<Group> written() const override { return {}; }
    void for_each_array(const Visit& visit) const override;
    Group may_start() const override;
    bool is_unknown() const override { return true; }
    std::string text() const override;
    int traverse(visitproc visit, void* arg) const override;

private:
    nb::object backward_;
    nb::list arrays_;
};

// Calls run(), and checks these arrays, which it writes, by name if wp.config.verify_fp asks for that.
nb::object run_verified(const std::string& api, const std::string& writer, const std::string& what,
                        const nb::dict& arrays, nb::handle run);

// Slots for the Python classes of all kinds of entries.
extern PyType_Slot entry_slots[];
void bind_entries(nb::module_& m);

}  // namespace weft::bindings
