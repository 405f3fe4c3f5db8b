// Streams and events, for the functions of python/warp/_devices/streams.py.
#include "bindings/devices/stream.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <fstream>

#include "bindings/devices/device.h"
#include "bindings/python/describe.h"
#include "bindings/python/lock.h"
#include "runtime/cuda_devices.h"
#include "runtime/foreign_memory.h"
#include "runtime/ipc.h"
#include "runtime/recording.h"
#include "runtime/timing.h"
#include "support/error.h"

namespace weft::bindings {
namespace {

using runtime::Device;

// wp.Event
struct PyEvent {
    std::shared_ptr<runtime::Event> event;
    Device* device;
    bool has_time;
    bool is_interprocess = false;
};

// A handle of CUDA's.
std::uint64_t handle_argument(nb::handle given, const Device& device, const char* api, const char* name,
                              const char* what) {
    if (!device.gpu())
        throw UsageError(api, std::string(name) + " is for CUDA devices, and '" + device.alias + "' is none",
                         ErrorCategory::value);
    std::uint64_t handle = 0;
    if (!nb::try_cast(given, handle))
        throw UsageError(
            api, std::string(name) + " is " + describe(given.ptr()) + ", expected the handle of " + what + ", an int",
            ErrorCategory::type);
    return handle;
}

PyEvent make_event(nb::handle device, nb::handle cuda_event, bool enable_timing, bool interprocess) {
    Device& on = device_from_python(device, "Event()");
    if (interprocess) {
        if (enable_timing || !cuda_event.is_none())
            throw UsageError("Event()",
                             std::string("interprocess is True, and ") +
                                 (enable_timing ? "enable_timing too: events of several processes have no time"
                                                : "cuda_event is given: its library decides about that"),
                             ErrorCategory::value);
        return {runtime::make_interprocess_event(on, "Event()"), &on, false, true};
    }
    if (cuda_event.is_none()) return {on.make_event(enable_timing), &on, enable_timing};
    const std::uint64_t handle = handle_argument(cuda_event, on, "Event()", "cuda_event", "an event");
    if (handle == 0)
        throw UsageError("Event()", "cuda_event is 0, expected the handle of an event", ErrorCategory::value);
    return {runtime::foreign_event(on, handle), &on, true};
}

nb::bytes event_handle(PyEvent& self) {
    if (!self.is_interprocess)
        throw UsageError("Event.ipc_handle()", "the event belongs to this process. help: wp.Event(interprocess=True)");
    const runtime::IpcHandle handle = runtime::event_ipc_handle(*self.event);
    return nb::bytes(handle.data(), handle.size());
}

PyEvent open_event(nb::handle given, nb::handle device) {
    const char* const api = "event_from_ipc_handle()";
    Device& on = device_from_python(device, api);
    runtime::IpcHandle handle;
    if (!PyBytes_Check(given.ptr()) || static_cast<std::size_t>(PyBytes_GET_SIZE(given.ptr())) != handle.size())
        throw UsageError(api, "handle is " + describe(given) + ", expected the 64 bytes that Event.ipc_handle() gave",
                         ErrorCategory::value);
    std::memcpy(handle.data(), PyBytes_AS_STRING(given.ptr()), handle.size());
    return {runtime::open_event_ipc_handle(handle, on, api), &on, false, true};
}

PyStream make_stream(nb::handle device, int priority, nb::handle cuda_stream) {
    Device& on = device_from_python(device, "Stream()");
    if (cuda_stream.is_none()) return {on.make_stream(priority)};
    return {runtime::foreign_stream(on, handle_argument(cuda_stream, on, "Stream()", "cuda_stream", "a stream"))};
}

void require_same(const Device& a, const Device& b, const char* api, const char* what,
                  const std::string& help = "take both from one device") {
    if (&a != &b)
        throw UsageError(
            api, std::string(what) + " is of '" + b.alias + "', the stream of '" + a.alias + "'. help: " + help);
}

// Streams of CUDA devices may wait for each other, on any devices; a CPU's cannot wait for them.
void require_may_wait(const Device& waiting, const Device& other, const char* api, const char* what) {
    if (waiting.gpu() && other.gpu()) return;
    require_same(waiting, other, api, what,
                 "streams wait for others of their device, and those of CUDA devices for each other; the host waits "
                 "by wp.synchronize_stream() and wp.synchronize_event()");
}

PyEvent record_event(PyStream& self, nb::handle event, bool external, const char* api) {
    PyEvent made;
    if (event.is_none())
        made = {self.device().make_event(), &self.device(), false};
    else if (!nb::try_cast(event, made))
        throw UsageError(api, "event is " + describe(event.ptr()) + ", expected a wp.Event or None",
                         ErrorCategory::type);
    require_same(self.device(), *made.device, api, "the event",
                 "an event is recorded in streams of its own device, and streams of all CUDA devices may wait for it");
    made.event->record(*self.stream, external);
    return made;
}

void wait_event(PyStream& self, PyEvent& event, bool external) {
    require_may_wait(self.device(), *event.device, "Stream.wait_event()", "the event");
    event.event->make_wait(*self.stream, external);
}

void wait_stream(PyStream& self, PyStream& other, nb::handle event, bool external) {
    require_may_wait(self.device(), other.device(), "Stream.wait_stream()", "the other stream");
    PyEvent recorded = record_event(other, event, false, "Stream.wait_stream()");
    recorded.event->make_wait(*self.stream, external);
}

double elapsed(PyEvent& start, PyEvent& end, bool synchronize) {
    const char* const api = "get_event_elapsed_time()";
    if (start.device != end.device)
        throw UsageError(api, "the events are of '" + start.device->alias + "' and '" + end.device->alias +
                                  "', expected one device");
    if (synchronize) end.event->synchronize();
    for (const PyEvent* event : {&start, &end}) {
        if (!event->has_time)
            throw UsageError(api, "an event does not measure time. help: wp.Event(enable_timing=True)");
        if (!event->event->is_recorded())
            throw UsageError(api, "an event was not recorded. help: wp.record_event(event) first");
    }
    return end.event->ms_since(*start.event);
}

}  // namespace

PyStream stream_argument(nb::handle stream, nb::handle device, const char* api) {
    PyStream given;
    if (stream.is_none()) return {runtime::current_stream_ptr(device_from_python(device, api))};
    if (!nb::try_cast(stream, given)) {
        throw UsageError(api, "stream is " + describe(stream.ptr()) + ", expected a wp.Stream or None",
                         ErrorCategory::type);
    }
    if (device.is_none()) return given;
    if (const Device& named = device_from_python(device, api); &named != &given.device())
        throw UsageError(api, "the stream is of '" + given.device().alias + "', not of '" + named.alias +
                                  "'. help: take both from one device");
    return given;
}

std::shared_ptr<runtime::Stream> launch_stream(PyObject* stream, const runtime::Device& device, const char* api) {
    PyStream given;
    if (!nb::try_cast(nb::handle(stream), given)) {
        throw UsageError(api, "stream is " + describe(stream) + ", expected a wp.Stream or None", ErrorCategory::type);
    }
    if (&given.device() != &device) {
        throw UsageError(api, "the stream is of '" + given.device().alias + "', the launch on '" + device.alias +
                                  "'. help: stream=wp.Stream('" + device.alias + "')");
    }
    return given.stream;
}

bool record_call(const Device& device, const char* name, std::vector<nb::object> held, std::function<void()> work) {
    runtime::Recording* const recording = runtime::current_recording(device);
    if (!recording) return false;
    // Python objects are released with Python's lock.
    std::shared_ptr<std::vector<nb::object>> objects(new std::vector<nb::object>(std::move(held)),
                                                     [](std::vector<nb::object>* all) {
                                                         if (!Py_IsInitialized()) return;
                                                         const PythonLock lock;
                                                         delete all;
                                                     });
    recording->memory().hold(objects);
    recording->add(name,
                   [work = std::move(work)] {
                       const PythonLock lock;
                       work();
                   },
                   {});
    return true;
}

void bind_streams(nb::module_& m) {
    nb::class_<PyEvent>(m, "Event",
                        "A moment in a stream, to wait for and to measure from.\n\n"
                        "Args:\n"
                        "    device: the device of its streams; by default the default device.\n"
                        "    cuda_event: the handle of an event of another library, an int, which lives as long as "
                        "this object; None for a new one.\n"
                        "    enable_timing: whether wp.get_event_elapsed_time() may ask for its time. Of an event of "
                        "another library that one decides.\n"
                        "    interprocess: whether other processes may know it, by ipc_handle(). It has no time then; "
                        "for CUDA devices.\n\n"
                        "It is recorded in streams of its device. Streams of all CUDA devices may wait for it.")
        .def(nb::new_(&make_event), nb::arg("device") = nb::none(), nb::arg("cuda_event") = nb::none(),
             nb::arg("enable_timing") = false, nb::arg("interprocess") = false)
        .def_prop_ro(
            "device", [](const PyEvent& self) { return device_to_python(*self.device); }, "Whose streams.")
        .def_prop_ro(
            "is_complete", [](PyEvent& self) { return self.event->is_complete(); },
            "Whether the work before it is done.")
        .def_prop_ro(
            "cuda_event",
            [](const PyEvent& self) -> std::optional<std::uint64_t> {
                if (self.device->is_cpu) return std::nullopt;
                return runtime::event_for_others(*self.event);
            },
            "Its handle for other libraries, which may record it and wait for it; None on the CPU.")
        .def("ipc_handle", &event_handle,
             "A handle of 64 bytes, by which another process takes the event with wp.event_from_ipc_handle().\n\n"
             "Raises: UsageError (a RuntimeError) if the event was not made with interprocess=True.");
    m.def("open_event_ipc_handle", &open_event, nb::arg("handle"), nb::arg("device"));

    nb::class_<PyStream>(m, "Stream",
                         "An order of work on a device. Work of one stream is done in order.\n\n"
                         "Args:\n"
                         "    device: by default the default device.\n"
                         "    priority: of CUDA devices: the lower, the more urgent; 0 for most, -1 for urgent work. "
                         "The driver takes the nearest that the device has.\n"
                         "    cuda_stream: the handle of a stream of another library, an int, which lives as long as "
                         "this object; None for a new one.\n\n"
                         "On the CPU all work is done when the call returns, so that streams have nothing to wait for.")
        .def(nb::new_(&make_stream), nb::arg("device") = nb::none(), nb::arg("priority") = 0,
             nb::arg("cuda_stream") = nb::none())
        .def_prop_ro(
            "device", [](const PyStream& self) { return device_to_python(self.device()); }, "Whose work.")
        .def_prop_ro(
            "cuda_stream",
            [](const PyStream& self) -> std::optional<std::uint64_t> {
                if (self.device().is_cpu) return std::nullopt;
                return runtime::stream_for_others(*self.stream);
            },
            "Its handle for other libraries, which may put work into it and capture it; None on the CPU.")
        .def_prop_ro(
            "is_capturing", [](const PyStream& self) { return self.stream->is_recorded(); },
            "Whether a graph is being captured from it.")
        .def_prop_ro(
            "is_complete", [](const PyStream& self) { return self.stream->is_complete(); },
            "Whether all of its work is done.")
        .def_prop_ro(
            "priority", [](const PyStream& self) { return self.stream->priority(); },
            "The urgency of its work: 0 for most, less for more urgent work.")
        .def(
            "record_event",
            [](PyStream& self, nb::object event, bool external) {
                PyEvent recorded = record_event(self, event, external, "Stream.record_event()");
                return event.is_none() ? nb::cast(std::move(recorded)) : event;
            },
            nb::arg("event") = nb::none(), nb::arg("external") = false,
            "Records an event of the stream's device, or a new one, behind the work that is in the stream; gives it "
            "back.\n\n"
            "external: in a capture each launch of the graph records it, for those outside of the graph; so it can "
            "measure time. Without it the event orders streams of the capture.")
        .def("wait_event", &wait_event, nb::arg("event"), nb::arg("external") = false,
             "Later work of the stream is done after the event, which may be of another CUDA "
             "device.\n\n"
             "external: in a capture each launch of the graph waits for the meaning that the event has then.")
        .def("wait_stream", &wait_stream, nb::arg("other_stream"), nb::arg("event") = nb::none(),
             nb::arg("external") = false,
             "Later work of the stream is done after the present work of the other one, which may be "
             "of another CUDA device.\n\n"
             "external: as of wait_event().")
        .def("__eq__",
             [](const PyStream& self, nb::handle other) {
                 PyStream that;
                 return nb::try_cast(other, that) && that.stream == self.stream;
             })
        .def("__hash__", [](const PyStream& self) { return std::hash<const void*>()(self.stream.get()); });

    nb::module_ streams = m.def_submodule("streams");
    streams.def(
        "current",
        [](nb::handle device) {
            return PyStream{runtime::current_stream_ptr(device_from_python(device, "get_stream()"))};
        },
        nb::arg().none());
    streams.def("set_current", [](const PyStream& stream) { runtime::set_current_stream(stream.stream); });
    streams.def("synchronize", [](const PyStream& stream) {
        runtime::refuse_recording(stream.device(), "synchronize_stream()", "wait after the capture");
        const nb::gil_scoped_release without;
        stream.stream->synchronize();
    });
    streams.def("synchronize_event", [](const PyEvent& event) {
        const nb::gil_scoped_release without;
        event.event->synchronize();
    });
    streams.def("elapsed", &elapsed);
    streams.def("begin_timing", &runtime::begin_timing);
    streams.def("end_timing", [] {
        std::vector<runtime::Activity> found;
        {
            const nb::gil_scoped_release without;
            found = runtime::end_timing();
        }
        nb::list all;
        for (const runtime::Activity& each : found)
            all.append(nb::make_tuple(device_to_python(*each.device), each.name, static_cast<int>(each.kind), each.ms));
        return all;
    });
}

}  // namespace weft::bindings
