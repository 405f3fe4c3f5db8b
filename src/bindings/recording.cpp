#include "bindings/recording.h"

#include <cstring>

#include "bindings/array_object.h"
#include "bindings/finite.h"
#include "program/settings.h"
#include "runtime/array.h"

namespace weft::bindings {
namespace {

// A tape records what the thread that entered it does, and nothing that others do meanwhile.
thread_local PyObject* tape = nullptr;  // owned

// (buffer, first byte, one past the last, writes so far): which memory an array shows, and how often it was written.
nb::tuple memory_of_array(nb::handle object) {
    const runtime::Array& array = array_argument(object.ptr(), "Tape", "array").array;
    auto [begin, end] = array.extent();
    return nb::make_tuple(reinterpret_cast<std::uintptr_t>(array.buffer.get()), reinterpret_cast<std::uintptr_t>(begin),
                          reinterpret_cast<std::uintptr_t>(end), array.buffer ? array.buffer->version : 0);
}

// A copy with the same strides, gaps included.
nb::object keep(nb::handle object) {
    const runtime::Array& array = array_argument(object.ptr(), "Tape", "array").array;
    auto [low, high] = array.extent();
    runtime::Array copy = array;
    copy.view.grad = nullptr;
    copy.buffer = runtime::allocate(high - low, *array.device);
    if (copy.buffer->data) {
        moving(high - low, [&, low = low, high = high] {
            std::memcpy(copy.buffer->data, low, static_cast<std::size_t>(high - low));
        });
        copy.view.data =
            static_cast<std::byte*>(copy.buffer->data) + (static_cast<const std::byte*>(array.view.data) - low);
        copy.buffer->references.add_all(array.buffer->references, *copy.buffer);
    }
    return nb::steal(make_array(std::move(copy)));
}

// run(), and what wp.config.verify_fp says of the arrays that it writes.
nb::object run_verified(const std::string& api, const std::string& culprit, const std::string& what,
                        const nb::dict& arrays, const nb::callable& run) {
    if (!program::settings().verify_fp) return run();
    FiniteCheck check;
    for (const auto& [name, array] : arrays)
        check.watch(nb::cast<std::string>(name), array_argument(array.ptr(), api.c_str(), "array").array);
    nb::object result = run();
    check.check(api, culprit, what);
    return result;
}

}  // namespace

PyObject* active_tape() { return tape; }

void count_write(PyArray& array) {
    if (array.array.buffer) ++array.array.buffer->version;
}

void record_write(PyObject* to, PyObject* from) {
    if (!tape) return;
    nb::handle(tape).attr("_record_write")(nb::handle(to), from ? nb::handle(from) : nb::handle(Py_None));
}

void record_write(PyArray& to, PyArray* from) {
    if (!tape) return;
    const auto same = [](const runtime::Array& array) { return array; };
    nb::object target = nb::steal(make_view(to, same));
    nb::object source = from ? nb::steal(make_view(*from, same)) : nb::none();
    record_write(target.ptr(), from ? source.ptr() : nullptr);
}

void bind_recording(nb::module_& m) {
    m.def(
        "active_tape", [] { return tape ? nb::borrow(tape) : nb::none(); },
        "The tape that records in this thread, or None.");
    m.def(
        "set_active_tape",
        [](nb::handle next) {
            PyObject* const before = tape;
            tape = next.is_none() ? nullptr : next.inc_ref().ptr();
            Py_XDECREF(before);
        },
        nb::arg("tape").none(), "Makes a tape record what this thread does, or none.");
    m.def("memory_of", &memory_of_array, nb::arg("array"));
    m.def(
        "count_write", [](nb::handle array) { count_write(array_argument(array.ptr(), "Tape", "array")); },
        nb::arg("array"), "For writes through NumPy's views, which are seen by nobody else.");
    m.def("run_verified", &run_verified, nb::arg("api"), nb::arg("culprit"), nb::arg("what"), nb::arg("arrays"),
          nb::arg("run"), "Calls run(), which writes these arrays, and raises where wp.config.verify_fp asks for it.");
    m.def("keep", &keep, nb::arg("array"), "A copy of the array's memory, with the same strides.");
}

}  // namespace weft::bindings
