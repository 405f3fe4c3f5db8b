#include "bindings/numpy_api.h"

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "support/error.h"

namespace weft::bindings::numpy {
namespace {

static_assert(sizeof(Py_intptr_t) == sizeof(std::int64_t));

// NumPy's type numbers (NPY_TYPES), by what C calls the type.
enum Number : int {
    kBool = 0,
    kByte = 1,
    kUByte = 2,
    kShort = 3,
    kUShort = 4,
    kInt = 5,
    kUInt = 6,
    kLong = 7,
    kULong = 8,
    kLongLong = 9,
    kULongLong = 10,
    kFloat = 11,
    kDouble = 12,
    kHalf = 23
};

// Rows of the function table.
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

int number_of(Scalar scalar) {
    switch (scalar) {
        case Scalar::boolean:
            return kBool;
        case Scalar::i8:
            return kByte;
        case Scalar::u8:
            return kUByte;
        case Scalar::i16:
            return kShort;
        case Scalar::u16:
            return kUShort;
        case Scalar::i32:
            return kInt;
        case Scalar::u32:
            return kUInt;
        case Scalar::i64:
            return sizeof(long) == 8 ? kLong : kLongLong;
        case Scalar::u64:
            return sizeof(long) == 8 ? kULong : kULongLong;
        case Scalar::f16:
            return kHalf;
        case Scalar::f32:
            return kFloat;
        case Scalar::f64:
            return kDouble;
        case Scalar::bf16:
            return kUShort;
    }
    throw InternalError("NumPy has no type for " + std::string(info(scalar).python));
}

std::optional<Scalar> scalar_of_number(int number) {
    switch (number) {
        case kBool:
            return Scalar::boolean;
        case kByte:
            return Scalar::i8;
        case kUByte:
            return Scalar::u8;
        case kShort:
            return Scalar::i16;
        case kUShort:
            return Scalar::u16;
        case kInt:
            return Scalar::i32;
        case kUInt:
            return Scalar::u32;
        case kLong:
            return sizeof(long) == 8 ? Scalar::i64 : Scalar::i32;
        case kULong:
            return sizeof(long) == 8 ? Scalar::u64 : Scalar::u32;
        case kLongLong:
            return Scalar::i64;
        case kULongLong:
            return Scalar::u64;
        case kHalf:
            return Scalar::f16;
        case kFloat:
            return Scalar::f32;
        case kDouble:
            return Scalar::f64;
        default:
            return std::nullopt;
    }
}

// Types that packages add are known by their names.
bool is_bfloat(const Descriptor& descriptor) {
    constexpr int kFirstOfPackages = 256;
    const std::string_view name = descriptor.number >= kFirstOfPackages ? descriptor.type->tp_name : "";
    return name == "bfloat16" || name.ends_with(".bfloat16");
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
    constexpr char kForeignOrder = '>';  // Weft runs on little-endian machines only
    if (array.descriptor->byte_order == kForeignOrder) return std::nullopt;
    if (is_bfloat(*array.descriptor)) return Scalar::bf16;
    return scalar_of_number(array.descriptor->number);
}

nb::object make_ndarray(Scalar scalar, std::span<const Py_intptr_t> shape, const Py_intptr_t* strides, void* data,
                        nb::handle base) {
    constexpr int kAlignedWritable = 0x0100 | 0x0400;
    const Api& numpy = api();
    // The descriptor's reference is taken over, also where it fails.
    PyObject* result = numpy.new_from_descriptor(numpy.ndarray_type, numpy.descriptor_from_number(number_of(scalar)),
                                                 static_cast<int>(shape.size()), shape.data(), strides, data,
                                                 kAlignedWritable, nullptr);
    if (!result) throw nb::python_error();
    nb::object owned = nb::steal(result);
    if (base.is_valid() && numpy.set_base(result, base.inc_ref().ptr()) < 0) throw nb::python_error();
    if (scalar != Scalar::bf16) return owned;
    const nb::object dtype = bfloat_dtype();
    return dtype.is_valid() ? owned.attr("view")(dtype) : owned;
}

nb::object bfloat_dtype() {
    static PyObject* const dtype = []() -> PyObject* {
        nb::object package = nb::steal(PyImport_ImportModule("ml_dtypes"));
        if (package.is_valid()) return module().attr("dtype")(package.attr("bfloat16")).release().ptr();
        if (!PyErr_ExceptionMatches(PyExc_ImportError)) throw nb::python_error();
        PyErr_Clear();
        return nullptr;
    }();
    return nb::borrow(dtype);
}

nb::object bfloat_bits(nb::handle array) {
    const std::optional<Scalar> scalar = scalar_of(*ndarray_pointer(array));
    if (scalar == Scalar::u16) return nb::borrow(array);
    if (scalar == Scalar::bf16) return array.attr("view")("u2");
    nb::object numbers = array.attr("astype")("f4");
    nb::object bits = module().attr("empty")(numbers.attr("shape"), "u2");
    numbers = numbers.attr("ravel")();
    const NdArray &from = *ndarray_pointer(numbers), &to = *ndarray_pointer(bits);
    for (std::int64_t i = 0; i < to.size(); ++i)
        write_scalar(Scalar::bf16, read_scalar(Scalar::f32, from.data + 4 * i), to.data + 2 * i);
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
