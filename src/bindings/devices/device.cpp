#include "bindings/devices/device.h"

#include <map>

#include "bindings/python/describe.h"
#include "support/error.h"

namespace weft::bindings {

using runtime::Device;

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
                     ErrorCategory::value);
}

nb::object device_to_python(runtime::Device& device) {
    static auto* objects = new std::map<Device*, PyObject*>;
    PyObject*& object = (*objects)[&device];
    if (!object) object = nb::cast(&device, nb::rv_policy::reference).release().ptr();
    return nb::borrow(object);
}

}  // namespace weft::bindings
