#include "bindings/interop/jax_array.h"

#include "bindings/arrays/array_object.h"
#include "bindings/foreign/foreign.h"
#include "bindings/python/fastcall.h"
#include "bindings/values/types.h"

namespace weft::bindings {
namespace {

PyObject* python_module = nullptr;  // imported at its first use

nb::object python_function(const char* name) { return function_of("warp._interop.jax_arrays", python_module, name); }

// The class of arrays that hold numbers; JAX passes others while it traces.
PyTypeObject* array_type() {
    static PyObject* type = nullptr;
    if (!type) type = python_function("array_type")().release().ptr();
    return reinterpret_cast<PyTypeObject*>(type);
}

PyObject* from_jax(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
    return guarded([&] {
        constexpr const char* kApi = "from_jax()";
        static const Signature<2> signature(kApi, {"jax_array", "dtype"}, 1);
        const auto given = signature.parse(args, count, keywords);
        const nb::handle source = given[0];
        if (!PyObject_TypeCheck(source.ptr(), array_type())) {
            throw UsageError(kApi, nb::cast<std::string>(python_function("why_no_array")(source)), ErrorCategory::type);
        }
        const Type dtype = is_given(given[1]) ? dtype_argument(given[1], kApi) : Type::none();
        const ForeignName name(kApi, "jax_array");
        const std::optional<ForeignArray> found = read_foreign(source, name);
        return make_array(as_elements(*found, source, dtype, name));
    });
}

// A capsule of the array's memory, which JAX only reads; None on a GPU, as JAX has to name its stream. Memory that
// JAX could not use in place is an error.
nb::object capsule_for_jax(nb::handle source, bool has_64_bits) {
    constexpr const char* kApi = "to_jax()";
    constexpr std::uintptr_t kAlignment = 64;  // bytes; XLA's code for CPUs requires it
    const runtime::Array& array = array_argument(source.ptr(), kApi, "warp_array").array;
    const bool is_on_gpu = array.device->gpu() != nullptr;
    if (!is_on_gpu && !array.device->is_host_memory) {
        throw UsageError(kApi, "the array is on '" + array.device->alias +
                                   "', whose memory JAX cannot reach. help: array.to('cpu')");
    }
    const std::uintptr_t past = is_on_gpu ? 0 : reinterpret_cast<std::uintptr_t>(array.view.data) % kAlignment;
    if (past != 0) {
        throw UsageError(kApi, "the array begins " + std::to_string(past) +
                                   " bytes behind a multiple of 64, and JAX uses memory in place only if it begins "
                                   "at one. help: to_jax(wp.clone(array)) copies");
    }
    const bool has_numbers = array.dtype.is_scalar() || array.dtype.is_numeric_aggregate();
    if (has_numbers && !has_64_bits && info(array.dtype.scalar()).bits == 64) {
        throw UsageError(kApi, "the array has numbers of type " + std::string(info(array.dtype.scalar()).python) +
                                   ", and JAX computes with 32 bits unless told otherwise. help: "
                                   "jax.config.update('jax_enable_x64', True), or convert the array first");
    }
    if (is_on_gpu) return nb::none();
    return capsule_of(export_unversioned(array, kApi));
}

PyMethodDef function = {
    "from_jax", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&from_jax)), METH_FASTCALL | METH_KEYWORDS,
    "from_jax($module, jax_array, dtype=None)\n--\n\n"
    "An array over the memory of an array of JAX, without a copy; it keeps that alive.\n\n"
    "Arrays of JAX never change, so this one is read-only: a launch or a call that would write to it is an error.\n"
    "It waits until JAX has computed the numbers. It has no gradient: wp.jax_kernel is differentiated by JAX.\n\n"
    "Args:\n"
    "    jax_array: an array that holds numbers, on one device.\n"
    "    dtype: of the elements; by default that of the array. Vectors and matrices take the last\n"
    "        dimensions; integers of one size stand for each other.\n\n"
    "Raises: a TypeError if `jax_array` is no array of JAX, is traced (inside of jax.jit) or has numbers that Weft\n"
    "does not have, UsageError (a RuntimeError) if dtype, shape or device do not fit."};

}  // namespace

void bind_jax_arrays(nb::module_& m) {
    add_functions(m, {&function, 1});
    m.def("capsule_for_jax", &capsule_for_jax, nb::arg("array").none(), nb::arg("has_64_bits"),
          "A DLPack capsule of an array for JAX, which only reads it; None on a GPU.");
}

}  // namespace weft::bindings
