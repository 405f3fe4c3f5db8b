#include "bindings/python/python_function.h"

namespace weft::bindings {

nb::object function_of(const char* module, PyObject*& kept, const char* name) {
    if (!kept) {
        nb::object imported = nb::module_::import_(module);
        if (!kept) kept = imported.release().ptr();
    }
    return nb::handle(kept).attr(name);
}

}  // namespace weft::bindings
