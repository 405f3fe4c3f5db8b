// What stands on wp.Tape besides launches: writes by the host, operations on whole arrays, functions of the user. Each
// keeps its arrays alive, and is an object of its own in Python where somebody asks for it.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <utility>
#include <vector>

#include "bindings/arrays/array.h"
#include "program/recorded_write.h"

namespace weft::bindings {

// What Python's garbage collector asks of an entry.
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
    nb::object to_object_, from_object_;  // the latter null for numbers from elsewhere
};

// An operation on whole arrays, which python/warp/_gradients/recording.py describes: how each array that it reads
// enters each that it writes.
class PyOperation final : public program::TapeEntry, public Visited {
public:
    // The dicts have arrays by the names that messages call them; `needs` are those whose contents are factors.
    PyOperation(nb::object name, nb::dict reads, nb::dict writes, nb::dict needs, nb::object parts);

    void record(program::TapeMemory& memory) override;
    void backward(const Backward& backward) override;
    std::vector<Group> written() const override;
    void for_each_array(const Visit& visit) const override;
    std::string text() const override;
    std::vector<Use> uses() const override;
    std::string use_text(const Use& use) const override;
    int traverse(visitproc visit, void* arg) const override;

    // Those that gradients go through. Known when it has run.
    nb::list parts();
    // The factors of a part as they were before the operation.
    nb::list factors(nb::handle part) const;
    // The gradients of what was written, as gradient_of(array) gives them, in arrays of their own, by the id of what
    // was written. They are used up: zeros are left.
    nb::dict take(nb::handle gradient_of);
    nb::dict needs() const;

    nb::object name, result;
    nb::dict reads, writes;

private:
    nb::list all_parts();

    struct Factor {
        nb::object name, array;
        program::SavedPrimalPtr need;
    };
    std::vector<Factor> needs_;
    nb::object make_parts_, parts_;
};

// What the user does by hand: record_func().
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

// run(), and what wp.config.verify_fp says of these arrays, which it writes, by name.
nb::object run_verified(const std::string& api, const std::string& writer, const std::string& what,
                        const nb::dict& arrays, nb::handle run);

// Of the Python class of every kind of entry.
extern PyType_Slot entry_slots[];
void bind_entries(nb::module_& m);

}  // namespace weft::bindings
