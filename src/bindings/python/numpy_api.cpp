#include "bindings/python/numpy_api.h"

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>

#include "support/error.h"

namespace weft::bindings::numpy {
namespace {

static_assert(sizeof(Py_intptr_t) == sizeof(std::int64_t));

// types.def has NumPy's numbers for a C whose long has 64 bits; "long long" then has two numbers of its own.
static_assert(sizeof(long) == 8);
constexpr int kLongLong = 9, kULongLong = 10;

// Entries of the function table, with their indices.
struct Api {
    PyTypeObject* ndarray_type;                  // 2
    Descriptor* (*descriptor_from_number)(int);  // 45
    int (*copy_into)(PyObject*, PyObject*);      // 50
    PyObject* (*new_from_descriptor)(PyTypeObject*, Descriptor*, int, const Py_intptr_t*, const Py_intptr_t*, void*,
                                     int, PyObject*);  // 94
    int (*set_base)(PyObject*, PyObject*);             // 282
    PyObject* as_array;
};

Api* loaded = nullptr;

nb::object multiarray_module() {
    PyObject* module = PyImport_ImportModule("numpy._core._multiarray_umath");
    if (!module && PyErr_ExceptionMatches(PyExc_ModuleNotFoundError)) {
        PyErr_Clear();
        module = PyImport_ImportModule("numpy.core._multiarray_umath");  // NumPy 1
    }
    if (!module) throw nb::python_error();
    return nb::steal(module);
}

Api* load() {
    nb::object capsule = multiarray_module().attr("_ARRAY_API");
    void** table = static_cast<void**>(PyCapsule_GetPointer(capsule.ptr(), nullptr));
    if (!table) throw nb::python_error();
    unsigned version = reinterpret_cast<unsigned (*)()>(table[0])() >> 24;
    if (version != 1 && version != 2) {
        throw UsageError("import warp", "the C interface of this NumPy has version " + std::to_string(version) +
                                            ", expected 1 or 2. help: pip install 'numpy<3'");
    }
    auto* api = new Api;
    api->ndarray_type = static_cast<PyTypeObject*>(table[2]);
    api->descriptor_from_number = reinterpret_cast<decltype(api->descriptor_from_number)>(table[45]);
    api->copy_into = reinterpret_cast<decltype(api->copy_into)>(table[50]);
    api->new_from_descriptor = reinterpret_cast<decltype(api->new_from_descriptor)>(table[94]);
    api->set_base = reinterpret_cast<decltype(api->set_base)>(table[282]);
    api->as_array = nb::object(module().attr("asarray")).release().ptr();
    return api;
}

const Api& api() {
    if (!loaded) loaded = load();
    return *loaded;
}

std::optional<Scalar> scalar_of_number(int number) {
    if (number == kLongLong) return Scalar::i64;
    if (number == kULongLong) return Scalar::u64;
    for (const ScalarInfo& row : all_scalars())
        if (row.numpy_number == number && !row.is_bits_in_numpy()) return row.id;
    return std::nullopt;
}

}  // namespace

std::int64_t NdArray::size() const {
    std::int64_t count = 1;
    for (Py_intptr_t n : shape()) count *= n;
    return count;
}

const NdArray* ndarray_pointer(nb::handle object) {
    if (!PyObject_TypeCheck(object.ptr(), api().ndarray_type)) return nullptr;
    return reinterpret_cast<const NdArray*>(object.ptr());
}

std::optional<Scalar> scalar_of(const NdArray& array) {
    constexpr char kForeignOrder = '>';  // Weft runs only on little-endian machines
    if (array.descriptor->byte_order == kForeignOrder) return std::nullopt;
    // Types of packages are known by their names: "bfloat16", "ml_dtypes.bfloat16".
    constexpr int kFirstOfPackages = 256;
    if (array.descriptor->number < kFirstOfPackages) return scalar_of_number(array.descriptor->number);
    const std::string_view name = array.descriptor->type->tp_name;
    return scalar_of_package(name.substr(name.rfind('.') + 1));
}

nb::object make_ndarray(Scalar scalar, std::span<const Py_intptr_t> shape, const Py_intptr_t* strides, void* data,
                        nb::handle base, bool is_writable) {
    constexpr int kAligned = 0x0100, kWritable = 0x0400;
    const Api& numpy = api();
    // The call consumes the descriptor's reference, even if it fails.
    PyObject* result = numpy.new_from_descriptor(
        numpy.ndarray_type, numpy.descriptor_from_number(info(scalar).numpy_number), static_cast<int>(shape.size()),
        shape.data(), strides, data, is_writable ? kAligned | kWritable : kAligned, nullptr);
    if (!result) throw nb::python_error();
    nb::object owned = nb::steal(result);
    if (base.is_valid() && numpy.set_base(result, base.inc_ref().ptr()) < 0) throw nb::python_error();
    if (!info(scalar).is_bits_in_numpy()) return owned;
    const nb::object dtype = package_dtype(scalar);
    return dtype.is_valid() ? owned.attr("view")(dtype) : owned;
}

std::optional<Scalar> scalar_of_package(std::string_view name) {
    for (const ScalarInfo& row : all_scalars())
        if (row.is_bits_in_numpy() && name == row.python) return row.id;
    return std::nullopt;
}

nb::object package_dtype(Scalar scalar) {
    // Null: the package is not installed.
    static PyObject* const package = []() -> PyObject* {
        nb::object found = nb::steal(PyImport_ImportModule("ml_dtypes"));
        if (found.is_valid()) return found.release().ptr();
        if (!PyErr_ExceptionMatches(PyExc_ImportError)) throw nb::python_error();
        PyErr_Clear();
        return nullptr;
    }();
    static auto& dtypes = *new std::unordered_map<Scalar, PyObject*>;
    if (!package) return nb::object();
    PyObject*& dtype = dtypes[scalar];
    if (!dtype) dtype = module().attr("dtype")(nb::handle(package).attr(info(scalar).python)).release().ptr();
    return nb::borrow(dtype);
}

nb::object bits_of_numbers(nb::handle array, Scalar scalar) {
    const std::optional<Scalar> found = scalar_of(*ndarray_pointer(array));
    const ScalarInfo& row = info(scalar);
    if (found == bits_of(scalar)) return nb::borrow(array);
    if (found == scalar) return array.attr("view")(row.numpy);
    const Scalar read = found == Scalar::f32 ? Scalar::f32 : Scalar::f64;
    nb::object numbers = array.attr("astype")(info(read).numpy);
    nb::object bits = module().attr("empty")(numbers.attr("shape"), row.numpy);
    numbers = numbers.attr("ravel")();
    const NdArray &from = *ndarray_pointer(numbers), &to = *ndarray_pointer(bits);
    for (std::int64_t i = 0; i < to.size(); ++i)
        write_scalar(scalar, read_scalar(read, from.data + info(read).bytes() * i), to.data + row.bytes() * i);
    return bits;
}

void copy_into(nb::handle destination, nb::handle source) {
    if (api().copy_into(destination.ptr(), source.ptr()) < 0) throw nb::python_error();
}

nb::object as_array(nb::handle object) {
    PyObject* result = PyObject_CallOneArg(api().as_array, object.ptr());
    if (!result) throw nb::python_error();
    return nb::steal(result);
}

nb::object module() { return nb::module_::import_("numpy"); }

}  // namespace weft::bindings::numpy
