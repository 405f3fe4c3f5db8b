#include "bindings/gradients/tape.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <unordered_set>
#include <utility>

#include "bindings/arrays/array_object.h"
#include "bindings/devices/device.h"
#include "bindings/gradients/entries.h"
#include "bindings/kernels/packed.h"
#include "program/host/settings.h"
#include "program/tape/backward.h"
#include "program/tape/gradient_memory.h"
#include "program/tape/stopped_gradients.h"
#include "support/error.h"

namespace weft::bindings {
namespace {

nb::object to_python(PyTape& self, const std::shared_ptr<program::TapeEntry>& entry) {
    nb::object& object = self.objects[entry.get()];
    if (!object.is_valid()) object = nb::cast(entry);
    return object;
}

nb::list entries(PyTape& self) {
    nb::list result;
    for (const auto& entry : self.tape.entries()) result.append(to_python(self, entry));
    return result;
}

void forget_last(PyTape& self) {
    self.objects.erase(self.tape.entries().back().get());
    self.tape.forget_last();
}

void forget_all(PyTape& self) {
    // Destruction may run Python code, which finds an empty tape.
    const auto objects = std::exchange(self.objects, {});
    self.tape.clear();
}

// A launch that is made elsewhere, or by a Python class that handles launches itself.
nb::list record_launch(PyTape& self, nb::handle kernel_object, nb::handle dim, nb::list values, nb::handle device,
                       bool is_seen) {
    Packed packed(kernel_object, values, device, "launch()");
    const Dimensions dims = launch_dimensions(packed.kernel, dim.ptr(), packed.block.data());
    auto launch = std::make_shared<PyRecordedLaunch>(PyRecordedLaunch::LaunchDescription{
        packed.kernel_object, packed.device, packed.block.data(), dims.span(), packed.values, packed.holders});
    program::Kernel& core = packed.kernel.core();
    launch->find_needs(core.facts(core.variant_of(packed.device, dims.span(), packed.block.data())),
                       packed.block.data(), is_seen);
    self.tape.record(launch);
    nb::list returned;
    for (const runtime::Array& one : launch->returned) returned.append(nb::steal(make_array(one)));
    return returned;
}

// ---- other entries ----

void record_write_of(PyTape& self, nb::object to, nb::object source) {
    if (source.is_none()) source = nb::object();
    self.tape.record(std::make_shared<PyWrite>(std::move(to), std::move(source)));
}

// ---- backward pass ----

// A subclass in Python may run entries backward itself, and hears of the events of a pass.
class PythonHost final : public program::BackwardHost {
public:
    explicit PythonHost(PyTape& tape) : tape_(tape) {}

    void make_gradient(program::Variable& of) override { allocate_gradient(value_of(object_of(of).ptr())); }
    void share_gradient(program::Variable& to, const program::Variable& of) override {
        set_gradient(value_of(object_of(to).ptr()), value_of(object_of(of).ptr()).grad().ptr(), "Tape.backward()");
    }
    void begin(const program::Variable* loss, std::span<const program::Variable* const> seeds) override {
        nb::list objects;
        for (const program::Variable* seed : seeds) objects.append(object_of(*seed));
        nb::find(tape_).attr("_begin_backward")(loss ? object_of(*loss) : nb::none(), objects);
    }
    void reverse(program::Tape& tape, std::size_t index, std::span<const program::SuppliedGradient> supplied) override {
        if (!tape_.takes_all) return tape.reverse(index, supplied);
        nb::find(tape_).attr("_reverse")(to_python(tape_, tape.entries()[index]));
    }
    void tell_left_out(std::span<const std::string> kernels) override {
        nb::list names;
        for (const std::string& kernel : kernels) names.append(nb::str(kernel.c_str(), kernel.size()));
        nb::find(tape_).attr("_tell_left_out")(names);
    }

private:
    PyTape& tape_;
};

void backward(PyTape& self, nb::handle loss, nb::dict grads) {
    const auto array = [](nb::handle object) -> PyArray& {
        return array_argument(object.ptr(), "Tape.backward()", "array");
    };
    std::vector<program::Seed> seeds;
    for (const auto& [of, gradient] : grads) seeds.push_back({&array(of), array(gradient).array});
    PythonHost host(self);
    program::backward(self.tape, host, loss.is_none() ? nullptr : &array(loss), seeds);
}

void reverse_all(PyTape& self) {
    PythonHost host(self);
    program::reverse_all(self.tape, host);
}

// Sets the gradients of all arrays to zero, each once.
void zero(PyTape& self) {
    std::unordered_set<const program::Variable*> seen;
    std::vector<nb::object> arrays;
    for (const auto& entry : self.tape.entries())
        entry->for_each_array([&](const program::Variable& one, bool) {
            if (one.requires_grad && seen.insert(&one).second) arrays.push_back(object_of(one));
        });
    for (const nb::object& array : arrays) {
        const program::Variable& one = value_of(array.ptr());
        if (one.requires_grad) program::clear_gradient(one);  // another thread may remove it meanwhile
    }
}

// ---- garbage ----

int traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    if (!nb::inst_ready(self)) return 0;
    const PyTape& tape = *nb::inst_ptr<PyTape>(self);
    for (const auto& [entry, object] : tape.objects) Py_VISIT(object.ptr());
    for (const auto& entry : tape.tape.entries()) {
        if (!tape.objects.empty() && tape.objects.contains(entry.get())) continue;  // its object visits its members
        if (const int stop = dynamic_cast<const Visited&>(*entry).traverse(visit, arg)) return stop;
    }
    return 0;
}

int clear(PyObject* self) {
    if (nb::inst_ready(self)) forget_all(*nb::inst_ptr<PyTape>(self));
    return 0;
}

PyType_Slot kSlots[] = {
    {Py_tp_traverse, reinterpret_cast<void*>(&traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(&clear)},
    {0, nullptr},
};

}  // namespace

nb::object record_operation(PyTape& self, std::shared_ptr<PyOperation> operation, nb::handle run) {
    self.tape.record(operation);
    try {
        operation->result = run();
    } catch (...) {
        nb::error_scope keep;
        forget_last(self);
        throw;
    }
    return operation->result;
}

void bind_tape(nb::module_& m) {
    nb::class_<PyTape>(m, "TapeRecorder", nb::type_slots(kSlots), "The base of wp.Tape: the recorded entries.")
        .def(nb::init<>())
        .def_rw("_takes_all", &PyTape::takes_all,
                "Whether all is handed to _record_launch(), _record_write() and _record_operation() of the class, and "
                "not recorded without it.")
        .def_prop_ro("_entries", &entries, "The recorded entries, in order.")
        .def(
            "_entry", [](PyTape& self, std::size_t index) { return to_python(self, self.tape.entries().at(index)); },
            nb::arg("index"), "One of these.")
        .def_prop_ro(
            "_count", [](PyTape& self) { return self.tape.entries().size(); }, "How many entries there are.")
        .def_prop_ro(
            "_kept",
            [](PyTape& self) {
                const program::TapeMemory::CopyStatistics& kept = self.tape.memory().kept();
                return nb::make_tuple(kept.copies, kept.bytes, kept.peak_bytes);
            },
            "The number of copies, their bytes, and the most bytes there have been.")
        .def("_record_launch", &record_launch, nb::arg("kernel"), nb::arg("dim").none(), nb::arg("values"),
             nb::arg("device").none(), nb::arg("is_seen"),
             "Records a launch that is about to run. Returns the arrays that the launch fills with its atomic results; "
             "it has none if the launch is made unseen. Classes that run the launch themselves return None.")
        .def("_record_write", &record_write_of, nb::arg("to"), nb::arg("source").none(),
             "Records that the host is about to write all elements: those of the source, or others.")
        .def("_record_operation", &record_operation, nb::arg("operation"), nb::arg("run"),
             "Records an operation on whole arrays and runs it. An operation that fails is not on the tape.")
        .def(
            "_record_function",
            [](PyTape& self, nb::object backward, nb::list arrays) {
                self.tape.record(std::make_shared<PyFunction>(std::move(backward), std::move(arrays)));
            },
            nb::arg("backward"), nb::arg("arrays"), "Records a backward function of the program.")
        .def("_forget_last", &forget_last, "Removes the last entry, which has failed.")
        .def(
            "_may_stop_gradients", [](PyTape& self) { return program::may_stop_gradients(self.tape); },
            "0 if no gradient can stop; else the same number for tapes of the same launches.")
        .def(
            "_stopped_gradients",
            [](PyTape& self, nb::list seeds) {
                std::vector<const program::Variable*> arrays;
                for (nb::handle seed : seeds)
                    arrays.push_back(&array_argument(seed.ptr(), "Tape.backward()", "an array to start from"));
                nb::list texts;
                for (const std::string& text : program::stopped_gradients(self.tape, arrays)) texts.append(text);
                return texts;
            },
            nb::arg("seeds"),
            "Where gradients from these arrays stop, because an array between has none; of no seeds, from all.")
        .def("_backward", &backward, nb::arg("loss").none(), nb::arg("grads"),
             "The backward pass from these seeds. Calls _begin_backward(loss, seeds) before the first entry, and "
             "_tell_left_out(kernels) at its end if launches of kernels with enable_backward=False are on the tape.")
        .def("_reverse_entries", &reverse_all,
             "The same from the gradients that the arrays hold, without _begin_backward().")
        .def("_zero", &zero, "Sets the gradients of all arrays on the tape to zero.")
        .def_prop_rw(
            "_tells_kept", [](PyTape& self) { return self.tape.memory().on_keep != nullptr; },
            [](PyTape& self, bool tells) {
                self.tape.memory().on_keep = nullptr;
                if (!tells) return;
                self.tape.memory().on_keep = [&self](std::span<const program::SavedPrimalPtr> needs) {
                    nb::find(self).attr("_kept_now")(std::vector<program::SavedPrimalPtr>(needs.begin(), needs.end()));
                };
            },
            "Whether a _kept_now() of the class is told of needs whose contents were just copied, which lie in one "
            "memory.")
        .def("_clear", &forget_all, "Removes all entries.");
    m.def("check_known_zeros", &program::check_known_zeros, nb::arg("on"),
          "For tests: whether gradients that are known to be zero are read, and raise an InternalError if they are "
          "not.");
}

}  // namespace weft::bindings
