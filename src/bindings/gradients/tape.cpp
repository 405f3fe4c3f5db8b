#include "bindings/gradients/tape.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <unordered_set>
#include <utility>

#include "bindings/arrays/array_object.h"
#include "bindings/gradients/recording.h"
#include "bindings/kernels/packed.h"
#include "bindings/python/device.h"
#include "support/error.h"

namespace weft::bindings {
namespace {

// A tape records what the thread that entered it does, and nothing that others do meanwhile.
thread_local PyObject* active = nullptr;  // owned
thread_local PyTape* recorder = nullptr;  // in it

// What Python itself records: a copy, an operation on whole arrays, a function of the user.
class PyEntry : public program::TapeEntry {
public:
    PyEntry(nb::object entry, std::vector<program::NeedPtr> needs)
        : object(std::move(entry)), needs_(std::move(needs)) {
        for (nb::handle together : object.attr("written")()) {
            Group& group = written_.emplace_back();
            for (nb::handle array : together) {
                group.push_back(&array_argument(array.ptr(), "Tape", "array"));
                held.push_back(nb::borrow(array));
            }
        }
    }
    void record(program::TapeMemory& memory) override {
        for (const program::NeedPtr& need : needs_) memory.need(need);
        for (const Group& group : written_)
            for (const program::Variable* one : group) memory.write(*one);
        for (const Group& group : written_) memory.count_writes(group);
    }
    std::vector<Group> written() const override { return written_; }

    nb::object object;
    std::vector<nb::object> held;

private:
    std::vector<program::NeedPtr> needs_;
    std::vector<Group> written_;
};

nb::object to_python(const std::shared_ptr<program::TapeEntry>& entry) {
    if (auto launch = std::dynamic_pointer_cast<PyLaunch>(entry)) return nb::cast(std::move(launch));
    return static_cast<const PyEntry&>(*entry).object;
}

nb::list entries(PyTape& self) {
    nb::list result;
    for (const auto& entry : self.tape.entries()) result.append(to_python(entry));
    return result;
}

// Each of these once, in order.
class Arrays {
public:
    void add(nb::handle array) {
        if (seen_.insert(array.ptr()).second) list.append(array);
    }
    nb::list list;

private:
    std::unordered_set<PyObject*> seen_;
};

nb::list arrays(PyTape& self) {
    Arrays found;
    for (const auto& entry : self.tape.entries())
        for (nb::handle array : to_python(entry).attr("arrays")()) found.add(array);
    return found.list;
}

nb::list retaining(PyTape& self) {
    Arrays found;
    for (const auto& entry : self.tape.entries())
        for (const program::TapeEntry::Group& group : entry->written())
            for (const program::Variable* one : group)
                if (one->retain_grad) found.add(object_of(*one));
    return found.list;
}

// A launch that is made elsewhere, or by a class of Python's that takes launches.
nb::list record_launch(PyTape& self, nb::handle kernel_object, nb::handle dim, nb::list values, nb::handle device,
                       bool is_seen) {
    Packed packed(kernel_object, values, device, "launch()");
    const Dimensions dims = launch_dimensions(packed.kernel, dim.ptr(), packed.block.data());
    auto launch = std::make_shared<PyLaunch>(PyLaunch::Given{packed.kernel_object, packed.device, packed.block.data(),
                                                             dims.span(), packed.values, packed.holders});
    program::Kernel& core = packed.kernel.core();
    launch->find_needs(core.facts(core.variant_of(dims.span(), packed.block.data())), packed.block.data(), is_seen);
    self.tape.record(launch);
    nb::list records;
    for (const runtime::Array& record : launch->records) records.append(nb::steal(make_array(record)));
    return records;
}

// `supplied` is by number of an entry, then by argument.
void reverse_launch(PyTape& self, std::size_t index, nb::dict supplied) {
    std::vector<program::SuppliedGradient> gradients;
    if (nb::len(supplied) != 0 && supplied.contains(nb::int_(index)))
        for (const auto& [parameter, gradient] : nb::borrow<nb::dict>(supplied[nb::int_(index)]))
            gradients.push_back(
                {nb::cast<std::size_t>(parameter), array_argument(gradient.ptr(), "Tape", "gradient").array});
    self.tape.go_back(index, gradients);
}

// Through the launches before entry `end`. Gives the number of the first entry that it has left: another kind, one
// without an adjoint; or any, so that other threads and Ctrl-C have their turn now and then.
std::ptrdiff_t reverse_launches(PyTape& self, std::size_t end, nb::dict supplied) {
    constexpr std::size_t kAtOnce = 256;
    const std::size_t last = end > kAtOnce ? end - kAtOnce : 0;
    for (std::size_t i = std::min(end, self.tape.entries().size()); i-- > last;) {
        const auto* const launch = dynamic_cast<const PyLaunch*>(self.tape.entries()[i].get());
        if (!launch || launch->needs().is_left_out) return static_cast<std::ptrdiff_t>(i);
        reverse_launch(self, i, supplied);
    }
    return static_cast<std::ptrdiff_t>(last) - 1;
}

// Sets the gradients of all arrays to zero, each once.
void zero(PyTape& self) {
    std::unordered_set<PyObject*> seen;
    std::vector<nb::object> gradients;
    const auto add = [&](const PyArray& array) {
        if (array.grad.is_valid() && seen.insert(array.grad.ptr()).second) gradients.push_back(array.grad);
    };
    for (const auto& entry : self.tape.entries()) {
        if (const auto* launch = dynamic_cast<const PyLaunch*>(entry.get())) {
            for (const PyLaunch::Argument& one : launch->arrays())
                if (one.array) add(static_cast<const PyArray&>(*one.array));
            for (const PyLaunch::Nested& nested : launch->nested())
                for (const program::Variable* one : nested.arrays) add(static_cast<const PyArray&>(*one));
        } else {
            for (nb::handle array : to_python(entry).attr("arrays")())
                add(array_argument(array.ptr(), "Tape.zero()", "array"));
        }
    }
    for (const nb::object& gradient : gradients) {
        const runtime::Array& array = value_of(gradient.ptr()).array;
        without_gil(array.size_bytes(), [&] { runtime::zero(array); });
        count_write(value_of(gradient.ptr()));
    }
}

// ---- garbage ----

int traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    if (!nb::inst_ready(self)) return 0;
    for (const auto& entry : nb::inst_ptr<PyTape>(self)->tape.entries()) {
        if (const auto* launch = dynamic_cast<const PyLaunch*>(entry.get())) {
            if (entry.use_count() > 1) continue;  // Python has it as an object, which is not visited
            if (const int stop = launch->traverse(visit, arg)) return stop;
        } else if (const auto* other = dynamic_cast<const PyEntry*>(entry.get())) {
            Py_VISIT(other->object.ptr());
            for (const nb::object& one : other->held) Py_VISIT(one.ptr());
        }
    }
    return 0;
}

int clear(PyObject* self) {
    if (nb::inst_ready(self)) nb::inst_ptr<PyTape>(self)->tape.clear();
    return 0;
}

PyType_Slot kSlots[] = {
    {Py_tp_traverse, reinterpret_cast<void*>(&traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(&clear)},
    {0, nullptr},
};

}  // namespace

PyObject* active_tape() { return active; }
PyTape* active_recorder() { return recorder; }

Unrecorded::Unrecorded() : tape_(std::exchange(active, nullptr)), recorder_(std::exchange(recorder, nullptr)) {}
Unrecorded::~Unrecorded() {
    active = tape_;
    recorder = recorder_;
}

void set_active_tape(nb::handle next) {
    PyTape* const inside = next.is_none() ? nullptr : nb::cast<PyTape*>(next);
    PyObject* const before = active;
    active = next.is_none() ? nullptr : next.inc_ref().ptr();
    recorder = inside;
    Py_XDECREF(before);
}

void bind_tape(nb::module_& m) {
    bind_recorded_launch(m);
    m.def(
        "active_tape", [] { return active ? nb::borrow(active) : nb::none(); },
        "The tape that records in this thread, or None.");
    m.def("set_active_tape", &set_active_tape, nb::arg("tape").none(),
          "Makes a tape record what this thread does, or none.");
    nb::class_<PyTape>(m, "TapeRecorder", nb::type_slots(kSlots), "The base of wp.Tape: what it has recorded.")
        .def(nb::init<>())
        .def_rw("_takes_launches", &PyTape::takes_launches,
                "Whether launches are handed to a _record_launch() of the class, and not recorded without it.")
        .def_prop_ro("_entries", &entries, "What was recorded, in order.")
        .def(
            "_entry", [](PyTape& self, std::size_t index) { return to_python(self.tape.entries().at(index)); },
            nb::arg("index"), "One of these.")
        .def_prop_ro(
            "_count", [](PyTape& self) { return self.tape.entries().size(); }, "How many entries there are.")
        .def_prop_ro(
            "_kept",
            [](PyTape& self) {
                const program::TapeMemory::Kept& kept = self.tape.memory().kept();
                return nb::make_tuple(kept.copies, kept.bytes, kept.peak_bytes);
            },
            "The number of copies, their bytes, and the most bytes there have been.")
        .def("_arrays", &arrays, "All arrays on the tape, each once.")
        .def("_retaining", &retaining, "The arrays that something recorded writes and that retain their gradients.")
        .def("_record_launch", &record_launch, nb::arg("kernel"), nb::arg("dim").none(), nb::arg("values"),
             nb::arg("device").none(), nb::arg("is_seen"),
             "Records a launch that is about to run. Gives the arrays in which it has to keep what its atomics give; "
             "none "
             "may be where the launch is made elsewhere, unseen. Classes that run it themselves give None.")
        .def(
            "_append",
            [](PyTape& self, nb::object entry, std::vector<program::NeedPtr> needs) {
                self.tape.record(std::make_shared<PyEntry>(std::move(entry), std::move(needs)));
            },
            nb::arg("entry"), nb::arg("needs"),
            "Adds an entry that is about to run, and the needs of what it reads: keeps what it overwrites and somebody "
            "needs, which may be itself.")
        .def(
            "_forget_last", [](PyTape& self) { self.tape.forget_last(); }, "What was recorded last has failed.")
        .def("_reverse_launch", &reverse_launch, nb::arg("index"), nb::arg("supplied"),
             "Goes back through a launch. `supplied` has gradients that are read in place of array.grad, by number of "
             "an "
             "entry, then by number of an argument.")
        .def(
            "_reverse_launches", &reverse_launches, nb::arg("end"), nb::arg("supplied"),
            "Goes back through launches before entry `end`. Gives the number of the first entry that is left; -1 where "
            "none is.")
        .def("_zero", &zero, "Sets the gradients of all arrays on the tape to zero.")
        .def(
            "_check_versions", [](PyTape& self) { self.tape.memory().check_versions(); },
            "Raises where recorded and present values would mix.")
        .def_prop_rw(
            "_tells_kept", [](PyTape& self) { return self.tape.memory().on_keep != nullptr; },
            [](PyTape& self, bool tells) {
                self.tape.memory().on_keep = nullptr;
                if (!tells) return;
                self.tape.memory().on_keep = [&self](std::span<const program::NeedPtr> needs) {
                    nb::find(self).attr("_kept_now")(std::vector<program::NeedPtr>(needs.begin(), needs.end()));
                };
            },
            "Whether a _kept_now() of the class is told of needs whose contents were just copied, which lie in one "
            "memory.")
        .def("_clear", [](PyTape& self) { self.tape.clear(); }, "Forgets what was recorded.");
}

}  // namespace weft::bindings
