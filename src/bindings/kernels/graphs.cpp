// Functions for python/warp/_devices/graphs.py.
#include "bindings/kernels/graphs.h"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bindings/devices/device.h"
#include "bindings/devices/stream.h"
#include "bindings/kernels/running.h"
#include "bindings/values/array_value.h"
#include "program/launch/recorded_run.h"
#include "runtime/cuda_devices.h"
#include "runtime/recording.h"
#include "support/error.h"

namespace weft::bindings {
namespace {

using runtime::Device;

const runtime::Array& condition_of(nb::handle object) {
    return array_argument(object.ptr(), "capture_if()", "condition").array;
}

// The recording of the current stream, which a body of the condition may have changed.
runtime::Recording& recording_of_condition(nb::handle condition) {
    Device& device = *condition_of(condition).device;
    if (runtime::Recording* const found = runtime::current_recording(device)) return *found;
    throw UsageError("capture_if()", "the body of a condition has made another stream of '" + device.alias +
                                         "' the current one, which is not being captured. help: "
                                         "wp.ScopedStream() in the body, which gives the stream back");
}

}  // namespace

void bind_graphs(nb::module_& m) {
    nb::class_<runtime::Graph>(m, "Graph",
                               "Captured work, to be run by wp.capture_launch(); the type of ScopedCapture.graph.")
        .def("__init__",
             [](nb::handle, nb::args, nb::kwargs) {
                 throw UsageError("Graph()", "graphs come from wp.capture_end() and wp.ScopedCapture");
             })
        .def_prop_ro(
            "device", [](const runtime::Graph& self) { return device_to_python(self.device()); },
            "The device of its capture, on which it runs.");

    nb::module_ graphs = m.def_submodule("graphs");
    graphs.def(
        "begin",
        [](nb::handle device, nb::handle stream, int mode, bool is_external, std::string thread) {
            PyStream of = stream_argument(stream, device, "capture_begin()");
            of.device().begin_capture(*of.stream, {mode, is_external, std::move(thread)});
        },
        nb::arg().none(), nb::arg().none(), nb::arg("mode"), nb::arg("is_external"), nb::arg("thread"));
    graphs.def(
        "is_default_captured_elsewhere",
        [](const PyStream& of) {
            const runtime::Stream& stream = *of.stream;
            const runtime::Recording::Owner owner = runtime::Recording::owner_of(stream);
            return &stream == &stream.device().default_stream() && !owner.thread.empty() && !owner.has_ended;
        },
        nb::arg("stream"), "Whether it is a default stream that another thread captures, which is there still.");
    graphs.def("end_of_thread", &runtime::end_recordings_of_thread);
    graphs.def(
        "end",
        [](nb::handle device, nb::handle stream) {
            PyStream of = stream_argument(stream, device, "capture_end()");
            return of.device().end_capture(*of.stream);
        },
        nb::arg().none(), nb::arg().none());
    graphs.def("has_conditions", [] {
        const std::vector<Device*> all = runtime::cuda_devices();
        return !all.empty() && all.front()->gpu()->has_conditions;
    });
    graphs.def("drop", [](const PyStream& stream) { runtime::drop_recording(*stream.stream); });
    graphs.def(
        "launch",
        [](const std::shared_ptr<runtime::Graph>& graph, nb::handle stream) {
            if (launch_recorder()) {
                throw UsageError("capture_launch()",
                                 "a tape is recording, and cannot record the work of a graph. help: launch the graph "
                                 "outside of 'with tape:', or capture tape and backward() in the graph");
            }
            const PyStream of =
                stream.is_none() ? PyStream{runtime::current_stream_ptr(graph->device())} : nb::cast<PyStream>(stream);
            program::launch_graph(graph, *of.stream);
        },
        nb::arg(), nb::arg().none());
    graphs.def("dot", [](const std::shared_ptr<runtime::Graph>& graph, bool verbose) { return graph->dot(verbose); });
    graphs.def(
        "captures_condition",
        [](nb::handle condition, nb::handle stream, const std::string& api) {
            const runtime::Array& array = condition_of(condition);
            const PyStream of = stream_argument(stream, device_to_python(*array.device), api.c_str());
            if (of->recording()) return true;
            runtime::refuse_beside_recording(*array.device, api, "the condition");
            return false;
        },
        nb::arg(), nb::arg().none(), nb::arg(),
        "Whether the work on a condition is captured; an error where another device is.");
    graphs.def("begin_condition", [](nb::handle condition, bool repeats, bool on_true, bool on_false) {
        const runtime::Array& array = condition_of(condition);
        recording_of_condition(condition).begin_condition(
            array, repeats ? runtime::ConditionKind::repeat : runtime::ConditionKind::choose, {on_true, on_false});
    });
    graphs.def("end_condition", [](nb::handle condition, bool is_complete) {
        recording_of_condition(condition).end_condition(is_complete);
    });
    graphs.def("begin_branch",
               [](nb::handle condition, bool on_true) { recording_of_condition(condition).begin_branch(on_true); });
    graphs.def("end_branch", [](nb::handle condition) { return recording_of_condition(condition).end_branch(); });
    graphs.def(
        "add_if",
        [](nb::handle condition, std::shared_ptr<runtime::Graph> on_true, std::shared_ptr<runtime::Graph> on_false) {
            program::record_if(condition_of(condition), std::move(on_true), std::move(on_false));
        },
        nb::arg(), nb::arg().none(), nb::arg().none());
    graphs.def("add_while", [](nb::handle condition, std::shared_ptr<runtime::Graph> body) {
        program::record_while(condition_of(condition), std::move(body));
    });
}

}  // namespace weft::bindings
