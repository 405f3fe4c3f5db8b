// Setting shape, strides, ptr and the like of an array: another view of the same memory, in place.
//
// Programs that simulate batches of worlds write `a.strides = (0,) + a.strides; a.ndim += 1; a.shape = (n,) + a.shape`.
// While these three have different numbers of dimensions, the array cannot be used (PendingLayout); its attributes read
// as they were set.
#include <algorithm>

#include "bindings/arrays/array_object.h"
#include "bindings/arrays/writes.h"
#include "bindings/devices/device.h"

namespace weft::bindings {

using runtime::Array;
using runtime::Shape;

namespace {

Shape shape_of(const Array& array) { return {array.shape().begin(), array.shape().end()}; }
Shape strides_of(const Array& array) { return {array.strides().begin(), array.strides().end()}; }

// Lowest and one past the highest byte of the elements, counted from the first one. The arguments may be any numbers.
std::pair<__int128, __int128> reach_of(const Shape& shape, const Shape& strides, std::int64_t element_bytes) {
    __int128 low = 0, high = element_bytes;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        const __int128 reach = static_cast<__int128>(shape[axis] - 1) * strides[axis];
        (reach < 0 ? low : high) += reach;
    }
    return {low, high};
}

void require_inside(const runtime::Buffer& buffer, std::intptr_t first, std::pair<__int128, __int128> reach,
                    const Shape& shape, const Shape& strides, const char* of, const char* api) {
    const auto begin = reinterpret_cast<std::intptr_t>(buffer.data);
    const __int128 at = static_cast<__int128>(first) - begin;
    if (at + reach.first >= 0 && at + reach.second <= buffer.size_bytes) return;
    const auto text = [](__int128 number) {
        const auto most = static_cast<__int128>(INT64_MAX);
        return std::to_string(static_cast<std::int64_t>(std::clamp(number, -most, most)));
    };
    throw UsageError(api,
                     "the shape " + runtime::shape_text(shape) + " with strides of " + runtime::shape_text(strides) +
                         " bytes reaches from byte " + text(at + reach.first) + " to " + text(at + reach.second) +
                         ", and the memory of the " + of + " has " + std::to_string(buffer.size_bytes) +
                         " bytes. help: wp.empty() and wp.copy() make a larger array",
                     ErrorCategory::value);
}

// Changes the view; its gradient begins at the same place. If that is no view of its memory, throws and changes
// nothing.
void show(PyArray& array, const Shape& shape, const Shape& strides, std::intptr_t address, const char* api) {
    const Array& old = array.array;
    const std::int64_t bytes = old.dtype.size_bytes();
    const std::int64_t size = runtime::checked_size(shape, bytes, api);
    for (const std::int64_t stride : strides) {
        if (stride % old.dtype.alignment() == 0) continue;
        throw UsageError(api,
                         "the strides " + runtime::shape_text(strides) + " are in bytes, expected multiples of " +
                             std::to_string(old.dtype.alignment()) + ", the alignment of " + old.dtype.python_name(),
                         ErrorCategory::value);
    }
    if (array.requires_grad && write_observer())
        throw UsageError(api,
                         "a tape is recording, and the array has a gradient: its layout cannot be changed in "
                         "place. help: change it before, or use another view (reshape, slices, wp.array(ptr=...))");
    Array changed = old;
    if (size > 0) {
        const auto reach = reach_of(shape, strides, bytes);
        require_inside(*old.buffer, address, reach, shape, strides, "array", api);
        if (array.gradient)
            require_inside(*array.gradient, reinterpret_cast<std::intptr_t>(old.view.grad), reach, shape, strides,
                           "gradient", api);
    }
    changed.ndim = static_cast<int>(shape.size());
    std::ranges::fill(changed.view.shape, 0);
    std::ranges::fill(changed.view.strides, 0);
    std::ranges::copy(shape, changed.view.shape);
    std::ranges::copy(strides, changed.view.strides);
    changed.view.data = size > 0 ? reinterpret_cast<void*>(address) : nullptr;
    array.array = std::move(changed);
    array.set_grad({});  // made again at its next use, with the new layout
}

// The address of the first element; of an array without any, that of its memory.
std::intptr_t first_byte(const PyArray& array) {
    if (array.array.view.data) return static_cast<std::intptr_t>(array.array.address());
    return array.array.buffer ? reinterpret_cast<std::intptr_t>(array.array.buffer->data) : 0;
}

Shape packed_strides(Array array, const Shape& shape) {
    array.ndim = static_cast<int>(shape.size());
    std::ranges::copy(shape, array.view.shape);
    runtime::set_contiguous_strides(array);
    return strides_of(array);
}

std::int64_t count_of(const Shape& shape) {
    std::int64_t count = 1;
    for (const std::int64_t extent : shape)
        if (__builtin_mul_overflow(count, extent, &count)) return -1;
    return count;
}

// Whether no layout is pending.
bool is_whole(const PyArray& array) { return !array.is_annotation; }

// Applies the attributes that were set, if they agree on the number of dimensions.
void settle(PyArray& array, const char* api) {
    const PendingLayout& pending = *array.pending;
    const Array& old = array.array;
    const Shape shape = pending.shape.value_or(shape_of(old));
    Shape strides = pending.strides.value_or(strides_of(old));
    if (pending.ndim.value_or(static_cast<int>(shape.size())) != static_cast<int>(shape.size())) return;
    if (!pending.strides && strides.size() != shape.size() && old.is_contiguous() && count_of(shape) == old.size())
        strides = packed_strides(old, shape);
    if (strides.size() != shape.size()) return;
    array.pending.reset();  // if show() throws, all is as it was before the first of them
    array.is_annotation = false;
    show(array, shape, strides, first_byte(array), api);
}

PendingLayout& pending_of(PyArray& array) {
    if (!array.pending) array.pending = std::make_unique<PendingLayout>();
    array.is_annotation = true;  // nothing uses it meanwhile
    return *array.pending;
}

// An array with memory, or in the middle of a change.
PyArray& array_of(PyObject* self, PyObject* value, const char* api) {
    if (!value) throw UsageError(api, "cannot be deleted", ErrorCategory::attribute);
    PyArray& array = value_of(self);
    return array.pending ? array : memory_of(self, api);
}

int set_by(auto&& body) {
    return guarded(
        [&] {
            body();
            return 0;
        },
        -1);
}

void require_dimensions(std::size_t count, const char* api) {
    if (count >= 1 && count <= kMaxDims) return;
    throw UsageError(api, "arrays have 1 to 4 dimensions, got " + std::to_string(count), ErrorCategory::value);
}

[[noreturn]] void refuse(const char* api, const std::string& is, PyObject* value, const std::string& help) {
    throw UsageError(api, is + ", and is set to " + describe(value) + ". help: " + help, ErrorCategory::attribute);
}

}  // namespace

int array_set_shape(PyObject* self, PyObject* value) {
    return set_by([&] {
        constexpr const char* kApi = "array.shape";
        PyArray& array = array_of(self, value, kApi);
        const Shape shape = shape_argument(value, kApi);
        require_dimensions(shape.size(), kApi);
        if (is_whole(array)) {
            const Array& old = array.array;
            const bool as_many = count_of(shape) == old.size();
            if (as_many && old.is_contiguous())
                return show(array, shape, packed_strides(old, shape), first_byte(array), kApi);
            if (shape.size() == static_cast<std::size_t>(old.ndim))
                return show(array, shape, strides_of(old), first_byte(array), kApi);
        }
        pending_of(array).shape = shape;
        settle(array, kApi);
    });
}

int array_set_strides(PyObject* self, PyObject* value, void*) {
    return set_by([&] {
        constexpr const char* kApi = "array.strides";
        PyArray& array = array_of(self, value, kApi);
        const Shape strides = shape_argument(value, kApi);
        require_dimensions(strides.size(), kApi);
        if (is_whole(array) && strides.size() == static_cast<std::size_t>(array.array.ndim))
            return show(array, shape_of(array.array), strides, first_byte(array), kApi);
        pending_of(array).strides = strides;
        settle(array, kApi);
    });
}

int array_set_ndim(PyObject* self, PyObject* value, void*) {
    return set_by([&] {
        constexpr const char* kApi = "array.ndim";
        PyArray& array = array_of(self, value, kApi);
        const std::int64_t ndim = integer(value, kApi, "ndim");
        require_dimensions(static_cast<std::size_t>(std::max<std::int64_t>(ndim, 0)), kApi);
        if (is_whole(array) && ndim == array.array.ndim) return;
        pending_of(array).ndim = static_cast<int>(ndim);
        settle(array, kApi);
    });
}

int array_set_size(PyObject* self, PyObject* value, void*) {
    return set_by([&] {
        constexpr const char* kApi = "array.size";
        PyArray& array = array_of(self, value, kApi);
        const std::int64_t size = integer(value, kApi, "size");
        if (array.pending || size == array.array.size()) {
            if (!array.pending || size == count_of(array.pending->shape.value_or(shape_of(array.array)))) return;
        } else if (array.array.ndim == 1) {
            return show(array, {size}, strides_of(array.array), first_byte(array), kApi);
        }
        refuse(kApi, "follows from the shape", value, "set shape");
    });
}

int array_set_ptr(PyObject* self, PyObject* value, void*) {
    return set_by([&] {
        constexpr const char* kApi = "array.ptr";
        PyArray& array = array_of(self, value, kApi);
        const Array& old = array.array;
        const std::intptr_t address = value == Py_None ? 0 : static_cast<std::intptr_t>(integer(value, kApi, "ptr"));
        if (address == static_cast<std::intptr_t>(old.address())) return;
        constexpr const char* kHelp = "wp.array(ptr=address, shape=..., dtype=...) makes an array of other memory";
        if (array.pending || old.size() == 0) refuse(kApi, "is the address of no element", value, kHelp);
        if (array.requires_grad)
            refuse(kApi, "belongs to an array with a gradient, which lies elsewhere", value,
                   "a slice, whose gradient goes along");
        if (address % old.dtype.alignment() != 0)
            refuse(kApi, "is a multiple of " + std::to_string(old.dtype.alignment()), value, kHelp);
        show(array, shape_of(old), strides_of(old), address, kApi);
    });
}

int array_set_device(PyObject* self, PyObject* value, void*) {
    return set_by([&] {
        constexpr const char* kApi = "array.device";
        PyArray& array = array_of(self, value, kApi);
        if (&device_from_python(value, kApi) == array.array.device) return;
        refuse(kApi, "is the owner of the memory, '" + array.array.device->alias + "'", value,
               "a.to(device) copies to another device");
    });
}

int array_set_capacity(PyObject* self, PyObject* value, void*) {
    return set_by([&] {
        constexpr const char* kApi = "array.capacity";
        PyArray& array = array_of(self, value, kApi);
        const std::int64_t bytes = array.array.buffer ? array.array.buffer->size_bytes : 0;
        if (integer(value, kApi, "capacity") == bytes) return;
        refuse(kApi, "is the size of the memory, " + std::to_string(bytes) + " bytes", value,
               "wp.empty() makes a larger array, a slice or a.shape = ... shows less of this one");
    });
}

int array_set_is_contiguous(PyObject* self, PyObject* value, void*) {
    return set_by([&] {
        constexpr const char* kApi = "array.is_contiguous";
        PyArray& array = array_of(self, value, kApi);
        if (array.pending) return;  // follows from the attributes being set
        const Array& of = array.array;
        const bool wanted = PyObject_IsTrue(value) == 1;
        // The stride along an axis of one element is never used: either answer is right.
        const bool is_open = std::ranges::any_of(of.shape(), [](std::int64_t extent) { return extent <= 1; });
        if (wanted == of.is_contiguous() || (is_open && of.is_contiguous())) return;
        refuse(kApi, std::string("follows from shape and strides: it is ") + (of.is_contiguous() ? "True" : "False"),
               value, wanted ? "a.contiguous() copies" : "set strides");
    });
}

int array_set_pinned(PyObject* self, PyObject* value, void*) {
    return set_by([&] {
        constexpr const char* kApi = "array.pinned";
        PyArray& array = array_of(self, value, kApi);
        if ((PyObject_IsTrue(value) == 1) == array.pinned) return;
        refuse(kApi, std::string("says how the memory was allocated: it is ") + (array.pinned ? "True" : "False"),
               value, "wp.empty(..., pinned=True) and wp.copy()");
    });
}

}  // namespace weft::bindings
