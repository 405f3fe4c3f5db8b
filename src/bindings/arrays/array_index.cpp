// a[...] and a[...] = value: whole numbers (negative ones count from the end), slices with steps, None and one Ellipsis
// give views. With a number for every dimension the element itself is read or written. Arrays of integers as indices
// give an indexedarray (python/warp/_arrays/indexed.py).
#include <algorithm>

#include "bindings/arrays/array_object.h"
#include "bindings/arrays/writes.h"
#include "bindings/python/numpy_api.h"
#include "bindings/structs/structs.h"
#include "bindings/values/values.h"
#include "runtime/array_copies.h"
#include "types/pattern.h"

namespace weft::bindings {
namespace {

using runtime::Array;

struct Step {
    bool is_pick = false;
    bool is_new = false;  // None: an axis of one element
    std::int64_t start = 0;
    std::int64_t count = 0;
    std::int64_t step = 1;
};

// Steps for each of the first `count` axes; the others stay.
struct Selection {
    Step steps[2 * kMaxDims];
    int count = 0;
};

bool is_array_of_indices(PyObject* item) {
    return array_pointer(item) || numpy::ndarray_pointer(item) || PyList_Check(item);
}

// Whether warp._arrays.indexed handles the key.
bool has_arrays(PyObject* key) {
    if (!PyTuple_Check(key)) return !PyLong_CheckExact(key) && !PySlice_Check(key) && is_array_of_indices(key);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); ++i) {
        if (is_array_of_indices(PyTuple_GET_ITEM(key, i))) return true;
    }
    return false;
}

[[noreturn]] void throw_out_of_range(std::int64_t index, int axis, std::int64_t size) {
    throw UsageError("array[]",
                     "index " + std::to_string(index) + " is out of range: dimension " + std::to_string(axis) +
                         " has " + std::to_string(size) + (size == 1 ? " element" : " elements"),
                     ErrorCategory::index);
}

[[noreturn]] void throw_bad_index(PyObject* item) {
    throw UsageError("array[]",
                     "an index is an integer, a slice, None, '...' or a one-dimensional array of integers, got " +
                         describe(item) + ". help: array.numpy()[...] indexes by masks",
                     ErrorCategory::type);
}

Step read_step(PyObject* item, int axis, std::int64_t size) {
    Step result;
    if (item == Py_None) {
        result.is_new = true;
        return result;
    }
    if (PySlice_Check(item)) {
        Py_ssize_t start, stop, step;
        if (PySlice_Unpack(item, &start, &stop, &step) < 0) throw nb::python_error();
        result.count = PySlice_AdjustIndices(size, &start, &stop, step);
        result.start = start;
        result.step = step;
        return result;
    }
    if (!PyIndex_Check(item) || PyBool_Check(item) || array_pointer(item)) throw_bad_index(item);
    std::int64_t index = PyNumber_AsSsize_t(item, PyExc_IndexError);
    if (index == -1 && PyErr_Occurred()) throw nb::python_error();
    result.is_pick = true;
    result.start = index < 0 ? index + size : index;
    if (result.start < 0 || result.start >= size) throw_out_of_range(index, axis, size);
    return result;
}

Selection read_selection(const Array& array, PyObject* key) {
    Selection result;
    if (!PyTuple_Check(key) && key != Py_Ellipsis && key != Py_None) {
        result.steps[0] = read_step(key, 0, array.view.shape[0]);
        result.count = 1;
        return result;
    }
    PyObject* const single[] = {key};
    PyObject* const* items = PyTuple_Check(key) ? &PyTuple_GET_ITEM(key, 0) : single;
    Py_ssize_t count = PyTuple_Check(key) ? PyTuple_GET_SIZE(key) : 1;
    Py_ssize_t ellipses = 0, added = 0;
    for (Py_ssize_t i = 0; i < count; ++i) {
        ellipses += items[i] == Py_Ellipsis;
        added += items[i] == Py_None;
    }
    if (ellipses > 1) {
        throw UsageError("array[]", "there can be only one '...' in an index", ErrorCategory::index);
    }
    Py_ssize_t used = count - ellipses - added;  // of the array's axes
    if (used > array.ndim) {
        throw UsageError("array[]",
                         std::to_string(used) + " indices for an array of " + std::to_string(array.ndim) +
                             (array.ndim == 1 ? " dimension" : " dimensions"),
                         ErrorCategory::index);
    }
    if (added > kMaxDims) {
        throw UsageError("array[]", "arrays have at most 4 dimensions, got " + std::to_string(added) + " times None",
                         ErrorCategory::index);
    }
    int axis = 0;
    for (Py_ssize_t i = 0; i < count; ++i) {
        if (items[i] == Py_None) {
            result.steps[result.count++].is_new = true;
        } else if (items[i] != Py_Ellipsis) {
            result.steps[result.count++] = read_step(items[i], axis, array.view.shape[axis]);
            ++axis;
        } else {
            for (std::int64_t skipped = array.ndim - used; skipped > 0; --skipped) {
                result.steps[result.count++] = {false, false, 0, array.view.shape[axis], 1};
                ++axis;
            }
        }
    }
    return result;
}

// An element has no dimensions left.
Array select(const Array& array, const Selection& selection) {
    if (selection.count == 1 && !selection.steps[0].is_new) {
        const Step& step = selection.steps[0];
        return step.is_pick ? runtime::pick(array, 0, step.start)
                            : runtime::slice(array, 0, step.start, step.count, step.step);
    }
    // Picks first: then new axes have room.
    Array result = array;
    int axis = 0;
    for (int i = 0; i < selection.count; ++i) {
        const Step& step = selection.steps[i];
        if (step.is_new) continue;
        if (step.is_pick) {
            result = runtime::pick(result, axis, step.start);
        } else {
            result = runtime::slice(result, axis++, step.start, step.count, step.step);
        }
    }
    axis = 0;
    for (int i = 0; i < selection.count; ++i) {
        const Step& step = selection.steps[i];
        if (step.is_new) result = runtime::new_axis(result, axis);
        axis += !step.is_pick;
    }
    return result;
}

PyObject* read_element(const Array& element) {
    runtime::refuse_recording(*element.device, "array[]", "look at arrays after wp.capture_launch()");
    const runtime::HostElement bytes(element);
    if (element.dtype.is_struct()) {
        return struct_to_python(element.dtype, bytes.data(), element.buffer.get()).release().ptr();
    }
    return value_to_python(element.dtype, bytes.data()).release().ptr();
}

void write_element(const Array& element, PyObject* value) {
    runtime::require_writable(element, "array[...] = ...");
    if (element.dtype.is_struct()) require_arrays_on(*element.device, value, "array[...] = ...");
    runtime::HostElement bytes(element);
    if (!write_value(value, element.dtype, bytes.data())) {
        throw_unfit("array[]", "cannot store " + describe(value) + " as " + element.dtype.python_name(), value,
                    element.dtype);
    }
    bytes.store();
    if (element.dtype.is_struct()) keep_arrays(value, *element.buffer, element.offset());
}

void write_view(const Array& view, PyObject* value) {
    if (PyArray* source = array_pointer(value)) {
        const Array& from = memory_of(value, "array[]").array;
        if (from.dtype == view.dtype && std::ranges::equal(from.shape(), view.shape())) {
            require_same_reach(view, from, "array[...] = ...");
            runtime::refuse_lost_copy(*view.device, *from.device);
            without_gil(view.size_bytes(), [&] { runtime::copy(view, from); });
            return;
        }
        if (view.dtype != source->array.dtype && !view.dtype.is_scalar()) {
            throw UsageError("array[]",
                             "cannot store an array of " + source->array.dtype.python_name() + " in one of " +
                                 view.dtype.python_name() + ". help: astype()",
                             ErrorCategory::type);
        }
    } else if (auto element = element_bytes(value, view.dtype)) {
        if (view.dtype.is_struct()) require_arrays_on(*view.device, value, "array[...] = ...");
        without_gil(view.size_bytes(), [&] { runtime::fill(view, element->data()); });
        if (view.dtype.is_struct()) keep_arrays(value, *view.buffer);
        return;
    }
    write_foreign(view, value, "array[]");
}

// Reports `array[key] = value` to the tape.
void record_assignment(PyArray& array, const Selection& selection, PyObject* value) {
    const auto part = [&](const Array& of) {
        Array selected = select(of, selection);
        if (selected.ndim == 0) {  // one element
            selected.ndim = 1;
            selected.view.shape[0] = 1;
            selected.view.strides[0] = selected.dtype.size_bytes();
        }
        return selected;
    };
    nb::object written = nb::steal(make_view(array, part));
    const Array& to = value_of(written.ptr()).array;
    PyArray* from = array_pointer(value);
    const bool moves = from && from->array.dtype == to.dtype && std::ranges::equal(from->array.shape(), to.shape());
    if (from && from->requires_grad && !moves) {
        throw UsageError("array[]",
                         "a tape is recording, and the assignment of an array that requires a gradient converts or "
                         "repeats its elements, which is not recorded. help: assign an array of the same dtype and "
                         "shape, or launch a kernel");
    }
    record_write(written, moves ? value : nullptr);
}

}  // namespace

nb::object indexed_function(const char* name) {
    static PyObject* module = nullptr;
    return function_of("warp._arrays.indexed", module, name);
}

bool is_indexed(PyObject* object) {
    if (array_pointer(object)) return false;
    const std::optional<Type> type = struct_type_of_class(Py_TYPE(object));
    return type && indexed_type(*type).is_array();
}

nb::object chosen_elements(PyObject* object) {
    return is_indexed(object) ? nb::object(nb::handle(object).attr("contiguous")()) : nb::borrow(object);
}

PyObject* array_subscript(PyObject* self, PyObject* key) {
    return guarded([&] {
        PyArray& array = memory_of(self, "array[]");
        if (has_arrays(key)) return indexed_function("from_key")(nb::handle(self), nb::handle(key)).release().ptr();
        Selection selection = read_selection(array.array, key);
        int picks = 0, added = 0;
        for (int i = 0; i < selection.count; ++i) {
            picks += selection.steps[i].is_pick;
            added += selection.steps[i].is_new;
        }
        if (picks == array.array.ndim && added == 0) return read_element(select(array.array, selection));
        return make_view(array, [&](const Array& of) { return select(of, selection); });
    });
}

int array_assign_subscript(PyObject* self, PyObject* key, PyObject* value) {
    return guarded(
        [&] {
            if (!value) throw UsageError("array[]", "elements cannot be deleted", ErrorCategory::type);
            PyArray& array = memory_of(self, "array[]");
            if (has_arrays(key)) {
                indexed_function("from_key")(nb::handle(self), nb::handle(key)).attr("assign")(nb::handle(value));
                return 0;
            }
            const Selection selection = read_selection(array.array, key);
            Array part = select(array.array, selection);
            if (write_observer()) record_assignment(array, selection, value);
            if (part.ndim == 0) {
                write_element(part, value);
            } else {
                write_view(part, value);
            }
            count_write(array);
            return 0;
        },
        -1);
}

// For iteration, which ends at an IndexError.
PyObject* array_item(PyObject* self, Py_ssize_t index) {
    return guarded([&]() -> PyObject* {
        PyArray& array = memory_of(self, "array[]");
        if (index < 0 || index >= array.array.view.shape[0]) {
            PyErr_SetString(PyExc_IndexError, "array index out of range");
            return nullptr;
        }
        if (array.array.ndim == 1) return read_element(runtime::pick(array.array, 0, index));
        return make_view(array, [&](const Array& of) { return runtime::pick(of, 0, index); });
    });
}

}  // namespace weft::bindings
