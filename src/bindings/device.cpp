#include "bindings/device.h"

#include <nanobind/stl/string.h>

#include <map>
#include <string>

#include "bindings/array.h"
#include "bindings/types.h"
#include "support/error.h"

namespace weft::bindings {
namespace {

using runtime::Device;

bool equals(const Device& self, nb::handle other) {
    if (PyUnicode_Check(other.ptr())) return self.alias == nb::cast<std::string>(other);
    const Device* device = nullptr;
    return nb::try_cast(other, device) && device == &self;
}

}  // namespace

runtime::Device& device_from_python(nb::handle object, std::string_view api) {
    if (!object.is_valid() || object.is_none()) return runtime::default_device();
    if (PyUnicode_Check(object.ptr())) {
        Py_ssize_t length;
        const char* text = PyUnicode_AsUTF8AndSize(object.ptr(), &length);
        if (!text) throw nb::python_error();
        return runtime::device({text, static_cast<std::size_t>(length)});
    }
    Device* device = nullptr;
    if (nb::try_cast(object, device) && device) return *device;
    throw UsageError(api, "a device is a name like 'cpu', a Device or None, got " + describe(object),
                     ErrorCategory::type);
}

nb::object device_to_python(runtime::Device& device) {
    static auto* objects = new std::map<Device*, PyObject*>;
    PyObject*& object = (*objects)[&device];
    if (!object) object = nb::cast(&device, nb::rv_policy::reference).release().ptr();
    return nb::borrow(object);
}

void bind_devices(nb::module_& m) {
    nb::class_<Device>(m, "Device", "A processor that owns arrays and runs kernels. Compares equal to its name.")
        .def_ro("alias", &Device::alias, "The name programs use: \"cpu\", \"cuda:0\".")
        .def_ro("name", &Device::name, "The name of the processor.")
        .def_ro("ordinal", &Device::ordinal, "Number of a CUDA device; -1 for the CPU.")
        .def_ro("is_cpu", &Device::is_cpu, "Whether this is the processor that Python runs on.")
        .def_prop_ro(
            "is_cuda", [](const Device& self) { return !self.is_cpu; }, "Whether this is a GPU.")
        .def("__str__", [](const Device& self) { return self.alias; })
        .def("__repr__", [](const Device& self) { return "Device('" + self.alias + "')"; })
        .def("__eq__", &equals, nb::arg("other").none())
        .def(
            "__ne__", [](const Device& self, nb::handle other) { return !equals(self, other); },
            nb::arg("other").none())
        // Equal to its name, so it hashes as its name.
        .def("__hash__", [](const Device& self) { return nb::hash(nb::str(self.alias.c_str())); });

    m.def(
        "get_device", [](nb::handle name) { return device_to_python(device_from_python(name, "get_device()")); },
        nb::arg("ident") = nb::none(),
        "The device of a name (or a Device itself); without an argument, the default device of this thread.\n\n"
        "Raises: UsageError where there is no such device.");
    m.def(
        "set_device", [](nb::handle name) { runtime::set_default_device(device_from_python(name, "set_device()")); },
        nb::arg("ident"), "Makes a device the default of this thread.");
    m.def(
        "get_devices",
        [] {
            nb::list result;
            for (Device* device : runtime::devices()) result.append(device_to_python(*device));
            return result;
        },
        "All devices: the CPU first.");
    m.def(
        "get_cuda_devices",
        [] {
            nb::list result;
            for (Device* device : runtime::devices()) {
                if (!device->is_cpu) result.append(device_to_python(*device));
            }
            return result;
        },
        "All CUDA devices, by ordinal.");
    m.def(
        "get_cuda_device",
        [](nb::handle ordinal) -> nb::object {
            std::string name = ordinal.is_none() ? "cuda" : "cuda:" + nb::cast<std::string>(nb::str(ordinal));
            return device_to_python(runtime::device(name));
        },
        nb::arg("ordinal") = nb::none(), "The CUDA device of a number; without an argument, the current one.");
    m.def(
        "get_cuda_device_count",
        [] {
            int count = 0;
            for (Device* device : runtime::devices()) count += !device->is_cpu;
            return count;
        },
        "How many CUDA devices there are.");
    m.def("is_cpu_available", [] { return true; }, "Whether kernels can run on the CPU.");
    m.def(
        "is_cuda_available",
        [] {
            for (Device* device : runtime::devices()) {
                if (!device->is_cpu) return true;
            }
            return false;
        },
        "Whether there is a CUDA device.");
    m.def(
        "is_device_available",
        [](nb::handle name) {
            for (Device* device : runtime::devices()) {
                if (equals(*device, name)) return true;
            }
            return false;
        },
        nb::arg("device"), "Whether there is a device of this name.");
    m.def(
        "get_preferred_device", [] { return device_to_python(*runtime::devices().back()); },
        "The first CUDA device where there is one, else the CPU.");
    m.def(
        "synchronize", [] {},
        "Waits until all devices have done their work. Launches on the CPU end before they return.");
    m.def(
        "synchronize_device", [](nb::handle device) { device_from_python(device, "synchronize_device()"); },
        nb::arg("device") = nb::none(),
        "Waits until a device has done its work. Launches on the CPU end before they return.");
}

}  // namespace weft::bindings
