// a + b, -a, abs(a), a < b, a += b, a @ b, float(a): CPython calls these slots; warp._arrays.arithmetic and
// warp._arrays.products map kernels over the elements.
#include <cstring>

#include "bindings/arrays/array_object.h"
#include "bindings/python/numpy_api.h"

namespace weft::bindings {
namespace {

PyObject* arithmetic_module = nullptr;
PyObject* products_module = nullptr;

nb::object arithmetic(const char* name) { return function_of("warp._arrays.arithmetic", arithmetic_module, name); }

bool has_memory(PyObject* object) {
    PyArray* array = array_pointer(object);
    return array && !array->is_annotation;
}

struct Symbol {
    char text[4];
};

template <Symbol kSymbol>
PyObject* binary(PyObject* a, PyObject* b) {
    return guarded([&]() -> PyObject* {
        // Annotations have no elements; Python then says that the operator is not supported.
        if (!has_memory(a) && !has_memory(b)) Py_RETURN_NOTIMPLEMENTED;
        return arithmetic("binary")(kSymbol.text, nb::handle(a), nb::handle(b)).release().ptr();
    });
}

template <Symbol kSymbol>
PyObject* inplace(PyObject* a, PyObject* b) {
    return guarded([&]() -> PyObject* {
        if (!has_memory(a)) Py_RETURN_NOTIMPLEMENTED;
        return arithmetic("inplace")(kSymbol.text, nb::handle(a), nb::handle(b)).release().ptr();
    });
}

template <Symbol kSymbol>
PyObject* unary(PyObject* a) {
    return guarded([&] {
        memory_of(a, kSymbol.text);
        return arithmetic("unary")(kSymbol.text, nb::handle(a)).release().ptr();
    });
}

PyObject* power(PyObject* a, PyObject* b, PyObject*) { return binary<Symbol{"**"}>(a, b); }
PyObject* inplace_power(PyObject* a, PyObject* b, PyObject*) { return inplace<Symbol{"**"}>(a, b); }

PyObject* product(PyObject* a, PyObject* b) {
    return guarded([&] {
        return function_of("warp._arrays.products", products_module, "product")(nb::handle(a), nb::handle(b))
            .release()
            .ptr();
    });
}

// `wp.array[float] | None` in a signature: a union of typing, with the annotation in it.
PyObject* either(PyObject* a, PyObject* b) {
    return guarded([&]() -> PyObject* {
        if (has_memory(a) || has_memory(b)) return binary<Symbol{"|"}>(a, b);
        const nb::object either_of = nb::module_::import_("typing").attr("Union");
        return nb::object(either_of[nb::make_tuple(nb::handle(a), nb::handle(b))]).release().ptr();
    });
}

// float(loss): the number in an array of one scalar.
nb::object only_number(PyObject* self, const char* api) {
    const runtime::Array& array = memory_of(self, api).array;
    if (!array.dtype.is_scalar() || array.size() != 1) {
        throw UsageError(api,
                         "an array of " + array.dtype.python_name() + " of shape " +
                             runtime::shape_text(array.shape()) + " is not one number; expected one scalar element",
                         ErrorCategory::type);
    }
    return value_to_python(array.dtype, runtime::HostElement(array).data());
}

PyObject* to_float(PyObject* self) {
    return guarded([&] { return PyNumber_Float(only_number(self, "float()").ptr()); });
}

PyObject* to_int(PyObject* self) {
    return guarded([&] { return PyNumber_Long(only_number(self, "int()").ptr()); });
}

template <typename Function>
PyType_Slot slot(int id, Function* function) {
    return {id, reinterpret_cast<void*>(function)};
}

}  // namespace

std::vector<PyType_Slot> arithmetic_slots() {
    return {
        slot(Py_nb_add, binary<Symbol{"+"}>),
        slot(Py_nb_subtract, binary<Symbol{"-"}>),
        slot(Py_nb_multiply, binary<Symbol{"*"}>),
        slot(Py_nb_true_divide, binary<Symbol{"/"}>),
        slot(Py_nb_floor_divide, binary<Symbol{"//"}>),
        slot(Py_nb_remainder, binary<Symbol{"%"}>),
        slot(Py_nb_power, power),
        slot(Py_nb_and, binary<Symbol{"&"}>),
        slot(Py_nb_or, either),
        slot(Py_nb_xor, binary<Symbol{"^"}>),
        slot(Py_nb_lshift, binary<Symbol{"<<"}>),
        slot(Py_nb_rshift, binary<Symbol{">>"}>),
        slot(Py_nb_matrix_multiply, product),
        slot(Py_nb_negative, unary<Symbol{"-"}>),
        slot(Py_nb_positive, unary<Symbol{"+"}>),
        slot(Py_nb_absolute, unary<Symbol{"abs"}>),
        slot(Py_nb_float, to_float),
        slot(Py_nb_int, to_int),
        slot(Py_nb_invert, unary<Symbol{"~"}>),
        slot(Py_nb_inplace_add, inplace<Symbol{"+"}>),
        slot(Py_nb_inplace_subtract, inplace<Symbol{"-"}>),
        slot(Py_nb_inplace_multiply, inplace<Symbol{"*"}>),
        slot(Py_nb_inplace_true_divide, inplace<Symbol{"/"}>),
        slot(Py_nb_inplace_floor_divide, inplace<Symbol{"//"}>),
        slot(Py_nb_inplace_remainder, inplace<Symbol{"%"}>),
        slot(Py_nb_inplace_power, inplace_power),
        slot(Py_nb_inplace_and, inplace<Symbol{"&"}>),
        slot(Py_nb_inplace_or, inplace<Symbol{"|"}>),
        slot(Py_nb_inplace_xor, inplace<Symbol{"^"}>),
        slot(Py_nb_inplace_lshift, inplace<Symbol{"<<"}>),
        slot(Py_nb_inplace_rshift, inplace<Symbol{">>"}>),
    };
}

// Annotations are equal if they mean one type, arrays if they are the same object (Python's default for a comparison
// that is not implemented here). NumPy's arrays compare element by element, and so do `<` and its kin.
PyObject* array_compare(PyObject* a, PyObject* b, int op) {
    if (has_memory(a) && (op == Py_EQ || op == Py_NE)) {
        if (a == b) return PyBool_FromLong(op == Py_EQ);
        if (!numpy::ndarray_pointer(b)) Py_RETURN_NOTIMPLEMENTED;
        return guarded([&] { return PyObject_RichCompare(numpy_view(a).ptr(), b, op); });
    }
    if (has_memory(a)) {
        static constexpr const char* kSymbols[] = {"<", "<=", "==", "!=", ">", ">="};
        return guarded(
            [&] { return arithmetic("binary")(kSymbols[op], nb::handle(a), nb::handle(b)).release().ptr(); });
    }
    if ((op != Py_EQ && op != Py_NE) || !array_pointer(b)) Py_RETURN_NOTIMPLEMENTED;
    PyArray &left = value_of(a), &right = value_of(b);
    bool equal = right.is_annotation && left.array.ndim == right.array.ndim && left.array.dtype == right.array.dtype &&
                 (!left.array.dtype.is_none() || left.dtype.is(right.dtype));
    return PyBool_FromLong(equal == (op == Py_EQ));
}

}  // namespace weft::bindings
