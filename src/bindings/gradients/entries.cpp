#include "bindings/gradients/entries.h"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include "bindings/arrays/array_object.h"
#include "program/host/settings.h"
#include "program/launch/gradient_claim.h"
#include "program/launch/nan_check.h"

namespace weft::bindings {

using program::TapeEntry;
using program::Variable;

namespace {

PyArray& entry_array(nb::handle object) { return array_argument(object.ptr(), "Tape", "array"); }

std::string text_of(nb::handle text) { return nb::cast<std::string>(text); }

// Whether its gradient may be other than zeros.
bool is_smooth(const PyArray& array) {
    const Type dtype = array.array.dtype;
    return array.requires_grad && (dtype.is_scalar() || dtype.is_numeric_aggregate()) &&
           info(dtype.scalar()).is_float();
}

}  // namespace

nb::object run_verified(const std::string& api, const std::string& writer, const std::string& what,
                        const nb::dict& arrays, nb::handle run) {
    if (!program::settings().verify_fp) return run();
    program::NanCheck check;
    for (const auto& [name, array] : arrays)
        check.watch(text_of(name), array_argument(array.ptr(), api.c_str(), "array").array);
    nb::object result = run();
    check.check(api, writer, what);
    return result;
}

// ---- writes ----

PyWrite::PyWrite(nb::object to, nb::object from)
    : RecordedWrite(entry_array(to), from.is_valid() ? &entry_array(from) : nullptr),
      to_object_(std::move(to)),
      from_object_(std::move(from)) {}

int PyWrite::traverse(visitproc visit, void* arg) const {
    Py_VISIT(to_object_.ptr());
    Py_VISIT(from_object_.ptr());
    return 0;
}

// ---- operations on whole arrays ----

PyOperation::PyOperation(nb::object name, nb::dict reads, nb::dict writes, nb::dict needs, nb::object parts)
    : name(std::move(name)),
      result(nb::none()),
      reads(std::move(reads)),
      writes(std::move(writes)),
      make_parts_(std::move(parts)) {
    for (const auto& [key, array] : needs)
        needs_.push_back(
            {nb::borrow(key), nb::borrow(array), std::make_shared<program::SavedPrimal>(entry_array(array))});
    for (const auto& [key, array] : this->reads) entry_array(array);
    for (const auto& [key, array] : this->writes) entry_array(array);
}

void PyOperation::record(program::TapeMemory& memory) {
    for (const Factor& one : needs_) memory.save(one.primal);
    for (const auto& [key, array] : writes) memory.write(entry_array(array), /*counts=*/true);
}

std::vector<TapeEntry::Group> PyOperation::written() const {
    std::vector<Group> groups;
    for (const auto& [key, array] : writes) groups.push_back({&entry_array(array)});
    return groups;
}

void PyOperation::for_each_array(const Visit& visit) const {
    for (const auto& [key, array] : reads) visit(entry_array(array), false);
    for (const auto& [key, array] : writes) visit(entry_array(array), true);
}

std::vector<TapeEntry::Use> PyOperation::uses() const {
    std::vector<Use> found;
    for (const auto& [key, array] : reads) found.push_back({&entry_array(array), found.size(), true, false, false});
    for (const auto& [key, array] : writes) found.push_back({&entry_array(array), found.size(), false, true, false});
    return found;
}

std::string PyOperation::use_text(const Use& use) const {
    std::size_t index = 0;
    for (const nb::dict& arrays : {reads, writes})
        for (const auto& [key, array] : arrays)
            if (index++ == use.index) return "argument '" + text_of(key) + "' of " + text_of(name);
    return text();
}

std::string PyOperation::text() const { return "<" + text_of(name) + ">"; }

int PyOperation::traverse(visitproc visit, void* arg) const {
    for (const nb::object* one : {&name, &result, &make_parts_, &parts_}) Py_VISIT(one->ptr());
    Py_VISIT(reads.ptr());
    Py_VISIT(writes.ptr());
    for (const Factor& one : needs_) {
        Py_VISIT(one.name.ptr());
        Py_VISIT(one.array.ptr());
    }
    return 0;
}

nb::list PyOperation::all_parts() {
    if (!parts_.is_valid()) parts_ = nb::list(make_parts_(result));
    return nb::borrow<nb::list>(parts_);
}

nb::list PyOperation::parts() {
    nb::list found;
    for (nb::handle part : all_parts())
        if (is_smooth(entry_array(part.attr("written"))) && is_smooth(entry_array(reads[part.attr("read")])))
            found.append(part);
    return found;
}

nb::list PyOperation::factors(nb::handle part) const {
    nb::list found;
    for (nb::handle factor : part.attr("factors"))
        for (const auto& [key, array, primal] : needs_)
            if (key.equal(factor)) found.append(primal->copy ? nb::steal(make_array(*primal->copy)) : array);
    return found;
}

nb::dict PyOperation::take(nb::handle gradient_of) {
    nb::dict taken;
    for (nb::handle part : all_parts()) {
        const nb::object written = part.attr("written"), gradient = gradient_of(written);
        const nb::int_ id(reinterpret_cast<std::uintptr_t>(written.ptr()));
        if (gradient.is_none() || taken.contains(id)) continue;
        taken[id] = keep(gradient);
        gradient.attr("zero_")();
    }
    return taken;
}

nb::dict PyOperation::needs() const {
    nb::dict result;
    for (const Factor& one : needs_) result[one.name] = nb::cast(one.primal);
    return result;
}

void PyOperation::backward(const Backward&) {
    nb::dict read_gradients;
    std::vector<program::Extent> memory;
    const auto add = [&](const Variable& one) {
        if (!one.requires_grad) return;
        const auto [begin, end] = gradient_of(one).extent();
        if (begin != end) memory.push_back({begin, end});
    };
    for (const auto& [key, array] : reads) {
        if (entry_array(array).requires_grad) read_gradients[key] = array.attr("grad");
        add(entry_array(array));
    }
    for (const auto& [key, array] : writes) add(entry_array(array));
    const program::GradientClaim claim(std::move(memory));
    const nb::object gradient_of_array = nb::cpp_function([](nb::handle array) { return array.attr("grad"); });
    const nb::object run = nb::cpp_function([&] {
        const nb::dict gradients = take(gradient_of_array);
        for (nb::handle part : parts()) {
            const nb::object written = part.attr("written");
            const nb::int_ id(reinterpret_cast<std::uintptr_t>(written.ptr()));
            part.attr("backward")(gradients[id], reads[part.attr("read")].attr("grad"), *factors(part));
        }
    });
    run_verified("Tape.backward()", "the backward pass of " + text_of(name), "the gradient of ", read_gradients, run);
}

// ---- functions of the user ----

void PyFunction::backward(const Backward&) {
    nb::dict gradients;
    std::size_t index = 0;
    for (nb::handle array : arrays_) {
        const std::string name = "arrays[" + std::to_string(index++) + "]";
        if (entry_array(array).requires_grad) gradients[name.c_str()] = array.attr("grad");
    }
    run_verified("Tape.backward()", text(), "the gradient of ", gradients, backward_);
}

void PyFunction::for_each_array(const Visit& visit) const {
    for (nb::handle array : arrays_) visit(entry_array(array), false);
}

TapeEntry::Group PyFunction::may_start() const {
    Group group;
    for (nb::handle array : arrays_) group.push_back(&entry_array(array));
    return group;
}

std::string PyFunction::text() const {
    return "<function " + std::string(nb::str(nb::getattr(backward_, "__name__", backward_)).c_str()) + ">";
}

int PyFunction::traverse(visitproc visit, void* arg) const {
    Py_VISIT(backward_.ptr());
    Py_VISIT(arrays_.ptr());
    return 0;
}

// ---- for Python ----

namespace {

nb::list objects_of(const TapeEntry::Group& variables) {
    nb::list result;
    for (const Variable* one : variables) result.append(object_of(*one));
    return result;
}

// A tape has the object of each of its entries, if there is one (PyTape::objects). So the entry's members are visited
// once: here.
int traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    if (!nb::inst_ready(self)) return 0;
    const auto* const entry = dynamic_cast<const Visited*>(nb::inst_ptr<TapeEntry>(self));
    return entry ? entry->traverse(visit, arg) : 0;
}

}  // namespace

PyType_Slot entry_slots[] = {
    {Py_tp_traverse, reinterpret_cast<void*>(&traverse)},
    {0, nullptr},
};

void bind_entries(nb::module_& m) {
    nb::class_<TapeEntry>(m, "TapeEntry", nb::type_slots(entry_slots), "An entry of a tape.")
        .def(
            "arrays",
            [](const TapeEntry& self) {
                nb::list result;
                self.for_each_array([&](const Variable& one, bool) { result.append(object_of(one)); });
                return result;
            },
            "All arrays that it has to do with.")
        .def(
            "known_arrays", [](nb::handle self) { return self.attr("arrays")(); },
            "The arrays that the program has given.")
        .def(
            "uses",
            [](const TapeEntry& self) {
                nb::list result;
                self.for_each_array([&](const Variable& one, bool is_written) {
                    result.append(nb::make_tuple(object_of(one), is_written));
                });
                return result;
            },
            "(array, whether it is written), for all arrays.")
        .def(
            "written",
            [](const TapeEntry& self) {
                nb::list result;
                for (const TapeEntry::Group& group : self.written()) result.append(objects_of(group));
                return result;
            },
            "The arrays that it writes; those of one list count as one write to each memory.")
        .def("__repr__", [](const TapeEntry& self) { return self.text(); });
    nb::class_<PyWrite, TapeEntry>(m, "RecordedWrite", nb::type_slots(entry_slots),
                                   "A copy by the host on a tape, or numbers from elsewhere.")
        .def_prop_ro(
            "to", [](const PyWrite& self) { return object_of(self.to()); }, "The array that was written.")
        .def_prop_ro(
            "source", [](const PyWrite& self) { return self.from() ? object_of(*self.from()) : nb::none(); },
            "The array that was copied; None for numbers from elsewhere.");
    nb::class_<PyOperation, TapeEntry>(m, "RecordedOperation", nb::type_slots(entry_slots),
                                       "An operation on whole arrays, on a tape.")
        .def_prop_ro(
            "name", [](const PyOperation& self) { return self.name; }, "How messages call it.")
        .def_prop_ro(
            "reads", [](const PyOperation& self) { return self.reads; }, "The arrays that it reads, by name.")
        .def_prop_ro(
            "writes", [](const PyOperation& self) { return self.writes; }, "Those that it writes, by name.")
        .def_prop_ro("needs", &PyOperation::needs, "The needs of those whose contents are factors, by name.")
        .def_prop_rw(
            "result", [](const PyOperation& self) { return self.result; },
            [](PyOperation& self, nb::object result) { self.result = std::move(result); },
            nb::for_setter(nb::arg("result").none()), "Its result.")
        .def("parts", &PyOperation::parts, "Those that gradients go through. Known when it has run.")
        .def("factors", &PyOperation::factors, nb::arg("part"), "Of a part, as they were before the operation.")
        .def(
            "take", &PyOperation::take, nb::arg("gradient_of"),
            "The gradients of the written array, by its id, as arrays of their own. They are used up: zeros are left.");
    nb::class_<PyFunction, TapeEntry>(m, "RecordedFunction", nb::type_slots(entry_slots),
                                      "A backward function of the program, on a tape: record_func().");
    m.def(
        "reverse_copy",
        [](nb::handle to, nb::handle source) {
            program::reverse_copy(entry_array(to), source.is_none() ? nullptr : &entry_array(source));
        },
        nb::arg("to"), nb::arg("source").none(),
        "The backward pass of a copy: adds the gradient of `to` to that of the source, and leaves zeros.");
    m.def("run_verified", &run_verified, nb::arg("api"), nb::arg("writer"), nb::arg("what"), nb::arg("arrays"),
          nb::arg("run"), "Calls run(), which writes these arrays, and raises if wp.config.verify_fp asks for it.");
}

}  // namespace weft::bindings
