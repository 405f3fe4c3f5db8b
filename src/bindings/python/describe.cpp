#include "bindings/python/describe.h"

#include <nanobind/stl/string.h>

namespace weft::bindings {

bool is_numpy_array(nb::handle object) {
    static PyTypeObject* array_class = nullptr;
    if (!array_class) {
        nb::handle numpy = PyDict_GetItemString(PyImport_GetModuleDict(), "numpy");
        if (!numpy.is_valid() || !nb::hasattr(numpy, "ndarray")) return false;
        array_class = reinterpret_cast<PyTypeObject*>(nb::object(numpy.attr("ndarray")).release().ptr());
    }
    return PyObject_TypeCheck(object.ptr(), array_class);
}

std::string describe(nb::handle value) {
    if (value.is_none()) return "None";
    if (PyType_Check(value.ptr())) return "the class " + nb::cast<std::string>(value.attr("__name__"));
    const nb::handle python_class(reinterpret_cast<PyObject*>(Py_TYPE(value.ptr())));
    const auto module = nb::cast<std::string>(nb::str(nb::getattr(python_class, "__module__", nb::str(""))));
    auto name = nb::cast<std::string>(nb::str(python_class.attr("__name__")));
    if (!module.empty() && module != "builtins" && module != "warp" && module.rfind("warp.", 0) != 0)
        name = module + "." + name;
    if (PyBool_Check(value.ptr()) || PyLong_CheckExact(value.ptr()) || PyFloat_CheckExact(value.ptr())) {
        return name + " " + nb::repr(value).c_str();
    }
    if (PyTuple_Check(value.ptr()) || PyList_Check(value.ptr())) {
        return name + " of length " + std::to_string(nb::len(value));
    }
    if (is_numpy_array(value)) {
        return name + " of shape " + nb::str(nb::object(value.attr("shape"))).c_str() + " and dtype " +
               nb::str(nb::object(value.attr("dtype"))).c_str();
    }
    return name;
}

}  // namespace weft::bindings
