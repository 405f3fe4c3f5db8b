#include "bindings/gradients/active_tape.h"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bindings/arrays/writes.h"
#include "bindings/devices/device.h"
#include "bindings/gradients/entries.h"
#include "bindings/gradients/python_launch.h"
#include "bindings/kernels/running.h"
#include "program/host/settings.h"

namespace weft::bindings {
namespace {

// A tape records the work of the thread that entered it, and no other thread's.
thread_local PyObject* active = nullptr;  // owned
thread_local PyTape* recorder = nullptr;  // of `active`

// ---- launches ----

// For a tape of a class that handles launches itself.
void run_taken(const program::CompiledKernel& compiled, const PackedLaunch& launch) {
    nb::list extents, given;
    for (const std::int64_t extent : launch.dims.span()) extents.append(extent);
    for (PyObject* value : launch.values) given.append(nb::handle(value));
    PyTape& self = *recorder;
    const nb::object tape = nb::borrow(active);
    const nb::object answer = tape.attr("_record_launch")(launch.kernel_object, nb::tuple(extents), given,
                                                          device_to_python(launch.device), true);
    if (answer.is_none()) return;  // the class has run it
    const auto kept = nb::borrow<nb::list>(answer);
    try {
        if (nb::len(kept) == 0) return run_unrecorded(compiled, launch);
        std::vector<runtime::Array> returned = arrays_of(kept);
        run_keeping_atomic_results(compiled, launch, returned);
        if (auto* last = dynamic_cast<PyRecordedLaunch*>(self.tape.entries().back().get()))
            last->returned = std::move(returned);
    } catch (...) {
        nb::error_scope keep;
        tape.attr("_forget_last")();
        throw;
    }
}

void run_recorded(const program::CompiledKernel& compiled, const PackedLaunch& launch) {
    PyTape& self = *recorder;
    const nb::object tape = nb::borrow(active);
    auto entry = std::make_shared<PyRecordedLaunch>(PyRecordedLaunch::LaunchDescription{
        launch.kernel_object, launch.device, launch.block, launch.dims.span(), launch.values, launch.holders});
    entry->set_blocks(launch.grid);
    entry->find_needs(compiled, launch.block, /*is_seen=*/true);
    self.tape.record(entry);
    try {
        if (entry->returned.empty())
            run_unrecorded(compiled, launch);
        else
            run_keeping_atomic_results(compiled, launch, entry->returned);
    } catch (...) {
        self.tape.forget_last();
        throw;
    }
}

// ---- the observer ----

// The thread's tape as arrays and launches know it.
class ActiveTape final : public WriteObserver, public LaunchRecorder {
public:
    void before_write(nb::handle to, nb::handle from) override {
        if (recorder->takes_all) {
            const nb::object tape = nb::borrow(active);
            tape.attr("_record_write")(to, from.is_valid() ? from : nb::handle(Py_None));
        } else {
            recorder->tape.record(std::make_shared<PyWrite>(nb::borrow(to), nb::borrow(from)));
        }
    }
    bool observes_stopped_gradients() const override { return !recorder->takes_all; }
    void run(const program::CompiledKernel& compiled, const PackedLaunch& launch) override {
        if (recorder->takes_all)
            run_taken(compiled, launch);
        else
            run_recorded(compiled, launch);
    }
};

void switch_to(PyObject* tape, PyTape* inside) {
    static ActiveTape observer;
    active = tape;
    recorder = inside;
    set_write_observer(inside ? &observer : nullptr);
    set_launch_recorder(inside ? &observer : nullptr);
}

// ---- operations on whole arrays ----

nb::object recorded(nb::str name, nb::handle run, nb::dict reads, nb::dict writes, nb::dict needs, nb::object parts) {
    const std::string api = nb::cast<std::string>(name);
    if (!active) return run_verified(api, "this", "", writes, run);
    auto operation = std::make_shared<PyOperation>(name, reads, writes, needs, std::move(parts));
    const bool checks = program::settings().verify_fp;
    const nb::object verified =
        checks ? nb::cpp_function([&] { return run_verified(api, "this", "", writes, run); }) : nb::borrow(run);
    const nb::object tape = nb::borrow(active);
    if (!recorder->takes_all) return record_operation(*recorder, std::move(operation), verified);
    tape.attr("_record_operation")(nb::cast(operation), verified);
    return operation->result;
}

}  // namespace

Unrecorded::Unrecorded() : tape_(active), recorder_(recorder) { switch_to(nullptr, nullptr); }
Unrecorded::~Unrecorded() { switch_to(tape_, recorder_); }

void set_active_tape(nb::handle next) {
    PyTape* const inside = next.is_none() ? nullptr : nb::cast<PyTape*>(next);
    PyObject* const before = active;
    switch_to(next.is_none() ? nullptr : next.inc_ref().ptr(), inside);
    Py_XDECREF(before);
}

void bind_active_tape(nb::module_& m) {
    m.def(
        "active_tape", [] { return active ? nb::borrow(active) : nb::none(); },
        "The tape that records in this thread, or None.");
    m.def("set_active_tape", &set_active_tape, nb::arg("tape").none(),
          "Makes a tape record the work of this thread; None: no tape.");
    m.def("recorded", &recorded, nb::arg("name"), nb::arg("run"), nb::arg("reads"), nb::arg("writes"), nb::arg("needs"),
          nb::arg("parts"),
          "Runs an operation on whole arrays; a tape that records has it as an entry (_gradients/recording.py).");
}

}  // namespace weft::bindings
