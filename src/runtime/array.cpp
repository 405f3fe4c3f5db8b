#include "runtime/array.h"

#include <algorithm>

#include "runtime/memory_watch.h"
#include "support/error.h"

namespace weft::runtime {
namespace {

// The array's buffer, for those who watch.
void describe(const Array& array) {
    if (array.buffer->watched == 0) return;
    describe_taken(array.buffer->watched,
                   "array[" + array.dtype.python_name() + ", " + shape_text(array.shape()) + "]");
}

void check_axis(const Array& array, int axis) {
    WEFT_CHECK(axis >= 0 && axis < array.ndim, "array axis " + std::to_string(axis) + " out of range");
}

void advance(Array& array, std::int64_t offset_bytes) {
    if (array.view.data) array.view.data = static_cast<char*>(array.view.data) + offset_bytes;
    if (array.view.grad) array.view.grad = static_cast<char*>(array.view.grad) + offset_bytes;
}

Array with_shape(Type dtype, std::span<const std::int64_t> shape, Device& device) {
    Array array;
    array.dtype = dtype;
    array.ndim = static_cast<int>(shape.size());
    array.device = &device;
    for (std::size_t i = 0; i < shape.size(); ++i) array.view.shape[i] = shape[i];
    set_contiguous_strides(array);
    return array;
}

// Extents inside an element: none for scalars, (3,) for vec3, (2, 2) for mat22.
Shape inner_extents(Type dtype) {
    if (dtype.is_matrix()) return {dtype.rows(), dtype.cols()};
    return dtype.is_numeric_aggregate() ? Shape{dtype.components()} : Shape{};
}

// Views elements of several numbers as their numbers, in new last dimensions.
Array split(const Array& array, Type dtype) {
    const Shape inner = inner_extents(array.dtype);
    Array result = array;
    result.dtype = dtype;
    result.ndim += static_cast<int>(inner.size());
    if (result.ndim > kMaxDims) {
        throw UsageError("array.view()", "an array of " + array.dtype.python_name() + " with shape " +
                                             shape_text(array.shape()) + " would have " + std::to_string(result.ndim) +
                                             " dimensions as numbers; at most 4 are possible. help: flatten()");
    }
    std::int64_t stride = dtype.size_bytes();
    for (int axis = result.ndim - 1; axis >= array.ndim; --axis) {
        result.view.shape[axis] = inner[static_cast<std::size_t>(axis - array.ndim)];
        result.view.strides[axis] = stride;
        stride *= result.view.shape[axis];
    }
    return result;
}

// The reverse: the last dimensions become those of the elements. A single element gives an array of one.
Array join(const Array& array, Type dtype) {
    const Shape inner = inner_extents(dtype);
    const auto count = static_cast<int>(inner.size());
    const auto fail = [&](const std::string& why) {
        throw UsageError("array.view()", "an array of " + array.dtype.python_name() + " with shape " +
                                             shape_text(array.shape()) + " cannot be seen as " + dtype.python_name() +
                                             ": " + why);
    };
    Array result = array;
    result.dtype = dtype;
    result.ndim -= count;
    if (result.ndim < 0 || !std::equal(inner.begin(), inner.end(), array.view.shape + result.ndim))
        fail("its last dimensions must be " + shape_text(inner));
    std::int64_t stride = array.dtype.size_bytes();
    for (int axis = array.ndim - 1; axis >= result.ndim; --axis) {
        if (array.view.shape[axis] > 1 && array.view.strides[axis] != stride)
            fail("its last dimension has gaps. help: contiguous()");
        stride *= array.view.shape[axis];
        result.view.shape[axis] = result.view.strides[axis] = 0;
    }
    if (result.ndim == 0) {
        result.ndim = 1;
        result.view.shape[0] = 1;
        result.view.strides[0] = dtype.size_bytes();
    }
    return result;
}

}  // namespace

std::int64_t Array::longest_extent() const { return shape().empty() ? 0 : std::ranges::max(shape()); }

std::int64_t Array::size() const {
    std::int64_t count = 1;
    for (int i = 0; i < ndim; ++i) count *= view.shape[i];
    return count;
}

std::int64_t Array::size_bytes() const { return size() * dtype.size_bytes(); }

bool Array::is_contiguous() const {
    std::int64_t expected = dtype.size_bytes();
    for (int i = ndim - 1; i >= 0; --i) {
        if (view.shape[i] == 0) return true;
        if (view.shape[i] != 1 && view.strides[i] != expected) return false;
        expected *= view.shape[i];
    }
    return true;
}

std::pair<const std::byte*, const std::byte*> Array::extent() const {
    auto low = static_cast<const std::byte*>(view.data);
    auto high = low;
    if (size() == 0) return {low, high};
    for (int i = 0; i < ndim; ++i) {
        std::int64_t reach = (view.shape[i] - 1) * view.strides[i];
        (reach < 0 ? low : high) += reach;
    }
    return {low, high + dtype.size_bytes()};
}

std::string shape_text(std::span<const std::int64_t> shape) {
    std::string text = "(";
    for (std::size_t i = 0; i < shape.size(); ++i) {
        if (i > 0) text += ", ";
        text += std::to_string(shape[i]);
    }
    return text + (shape.size() == 1 ? ",)" : ")");
}

std::int64_t checked_size(std::span<const std::int64_t> shape, std::int64_t element_bytes, std::string_view api) {
    if (shape.empty()) {
        throw UsageError(api, "arrays have 1 to 4 dimensions, got the shape (). help: shape=1 for a single element",
                         ErrorCategory::value);
    }
    if (shape.size() > kMaxDims) {
        throw UsageError(api,
                         "arrays have at most " + std::to_string(kMaxDims) + " dimensions, got " +
                             std::to_string(shape.size()) + ": " + shape_text(shape),
                         ErrorCategory::value);
    }
    std::int64_t count = 1;
    std::int64_t bytes = element_bytes;  // as if no dimension were 0, since strides have to fit too
    for (std::int64_t n : shape) {
        if (n < 0) {
            throw UsageError(api, "a dimension cannot be negative, got the shape " + shape_text(shape),
                             ErrorCategory::value);
        }
        if (n != 0 && __builtin_mul_overflow(bytes, n, &bytes)) {
            throw UsageError(api, "an array of shape " + shape_text(shape) + " does not fit any memory",
                             ErrorCategory::memory);
        }
        count *= n;
    }
    return count;
}

void set_contiguous_strides(Array& array) {
    std::int64_t stride = array.dtype.size_bytes();
    for (int i = array.ndim - 1; i >= 0; --i) {
        array.view.strides[i] = stride;
        stride *= array.view.shape[i] > 0 ? array.view.shape[i] : 1;
    }
}

Array wrap(void* address, Type dtype, std::span<const std::int64_t> shape, const Shape* strides, Device& device,
           std::string_view api) {
    if (checked_size(shape, dtype.size_bytes(), api) > 0 && !address)
        throw UsageError(api, "'ptr' is 0, and the shape " + shape_text(shape) + " is not empty", ErrorCategory::value);
    const std::int64_t alignment = dtype.alignment();
    const auto position = reinterpret_cast<std::uintptr_t>(address);
    if (position % static_cast<std::uintptr_t>(alignment) != 0) {
        throw UsageError(api,
                         "'ptr' is " + std::to_string(position) + ", expected a multiple of " +
                             std::to_string(alignment) + ", the alignment of " + dtype.python_name(),
                         ErrorCategory::value);
    }
    Array array;
    array.dtype = dtype;
    array.ndim = static_cast<int>(shape.size());
    array.device = &device;
    std::copy(shape.begin(), shape.end(), array.view.shape);
    set_contiguous_strides(array);
    if (strides) {
        if (strides->size() != shape.size()) {
            throw UsageError(
                api,
                "the strides " + shape_text(*strides) + " are not as many as the dimensions of " + shape_text(shape),
                ErrorCategory::value);
        }
        for (std::int64_t stride : *strides) {
            if (stride % alignment == 0) continue;
            throw UsageError(api,
                             "the strides " + shape_text(*strides) + " are in bytes, expected multiples of " +
                                 std::to_string(alignment) + ", the alignment of " + dtype.python_name(),
                             ErrorCategory::value);
        }
        std::copy(strides->begin(), strides->end(), array.view.strides);
    }
    array.view.data = address;
    auto [low, high] = array.extent();
    array.buffer = std::make_shared<Buffer>();
    array.buffer->release = [] {};  // the memory does not belong to the device's pool
    array.buffer->data = address;
    array.buffer->size_bytes = high - low;
    array.buffer->device = &device;
    return array;
}

Array empty(Type dtype, std::span<const std::int64_t> shape, Device& device) {
    std::int64_t count = checked_size(shape, dtype.size_bytes(), "empty()");
    Array array = with_shape(dtype, shape, device);
    array.buffer = allocate(count * dtype.size_bytes(), device);
    array.view.data = array.buffer->data;
    describe(array);
    return array;
}

Array zeros(Type dtype, std::span<const std::int64_t> shape, Device& device) {
    std::int64_t count = checked_size(shape, dtype.size_bytes(), "zeros()");
    Array array = with_shape(dtype, shape, device);
    array.buffer = allocate_zeroed(count * dtype.size_bytes(), device);
    array.view.data = array.buffer->data;
    describe(array);
    return array;
}

Array slice(const Array& array, int axis, std::int64_t start, std::int64_t count, std::int64_t step) {
    check_axis(array, axis);
    Array result = array;
    result.view.shape[axis] = count;
    // An empty slice may start past the end; it stays at the front so that no pointer leaves the buffer.
    if (count > 0) advance(result, start * array.view.strides[axis]);
    if (result.size() == 0) result.view.data = nullptr;  // as every empty array: launches rely on it
    // With one element or none the step may be anything up to 2^63: it is never taken.
    if (count > 1) result.view.strides[axis] = array.view.strides[axis] * step;
    return result;
}

Array pick(const Array& array, int axis, std::int64_t index) {
    check_axis(array, axis);
    Array result = array;
    advance(result, index * array.view.strides[axis]);
    for (int i = axis; i + 1 < array.ndim; ++i) {
        result.view.shape[i] = array.view.shape[i + 1];
        result.view.strides[i] = array.view.strides[i + 1];
    }
    result.ndim = array.ndim - 1;
    result.view.shape[result.ndim] = 0;
    result.view.strides[result.ndim] = 0;
    return result;
}

Array new_axis(const Array& array, int axis) {
    if (array.ndim == kMaxDims) {
        throw UsageError("array[]",
                         "None would make an array of 5 dimensions of one of shape " + shape_text(array.shape()) +
                             "; at most 4 are possible",
                         ErrorCategory::index);
    }
    Array result = array;
    for (int i = array.ndim; i > axis; --i) {
        result.view.shape[i] = array.view.shape[i - 1];
        result.view.strides[i] = array.view.strides[i - 1];
    }
    result.view.shape[axis] = 1;
    bool last = axis == array.ndim;
    result.view.strides[axis] = last ? array.dtype.size_bytes() : array.view.shape[axis] * array.view.strides[axis];
    ++result.ndim;
    return result;
}

Array reshape(const Array& array, std::span<const std::int64_t> shape) {
    constexpr const char* kApi = "array.reshape()";
    std::vector<std::int64_t> wanted(shape.begin(), shape.end());
    std::int64_t size = array.size();
    auto misfit = [&] {
        return UsageError(kApi,
                          "an array of shape " + shape_text(array.shape()) + " has " + std::to_string(size) +
                              " elements, which do not fill the shape " + shape_text(shape),
                          ErrorCategory::value);
    };
    int inferred = -1;
    std::int64_t known = 1;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        if (wanted[i] == -1) {
            if (inferred >= 0) {
                throw UsageError(kApi, "only one dimension can be -1, got " + shape_text(shape), ErrorCategory::value);
            }
            inferred = static_cast<int>(i);
        } else if (__builtin_mul_overflow(known, wanted[i], &known)) {
            throw misfit();
        }
    }
    if (inferred >= 0) {
        if (known <= 0 || size % known != 0) throw misfit();
        wanted[inferred] = size / known;
    }
    if (checked_size(wanted, array.dtype.size_bytes(), kApi) != size) throw misfit();
    if (!array.is_contiguous()) {
        throw UsageError(kApi,
                         "the array of shape " + shape_text(array.shape()) +
                             " is not contiguous, so it has no view of another shape. help: contiguous().reshape(...)");
    }
    Array result = array;
    result.ndim = static_cast<int>(wanted.size());
    for (int i = 0; i < kMaxDims; ++i) {
        result.view.shape[i] = i < result.ndim ? wanted[i] : 0;
        result.view.strides[i] = 0;
    }
    set_contiguous_strides(result);
    return result;
}

Array transpose(const Array& array, std::span<const int> axes) {
    constexpr const char* kApi = "array.transpose()";
    bool seen[kMaxDims] = {};
    bool valid = static_cast<int>(axes.size()) == array.ndim;
    Array result = array;
    for (int i = 0; valid && i < array.ndim; ++i) {
        int axis = axes[i] < 0 ? axes[i] + array.ndim : axes[i];
        valid = axis >= 0 && axis < array.ndim && !seen[axis];
        if (!valid) break;
        seen[axis] = true;
        result.view.shape[i] = array.view.shape[axis];
        result.view.strides[i] = array.view.strides[axis];
    }
    if (!valid) {
        std::vector<std::int64_t> wide(axes.begin(), axes.end());
        throw UsageError(
            kApi,
            "axes must name each of the " + std::to_string(array.ndim) + " dimensions once, got " + shape_text(wide),
            ErrorCategory::value);
    }
    return result;
}

Array reinterpret(const Array& array, Type dtype) {
    if (dtype.size_bytes() == array.dtype.size_bytes()) {
        Array result = array;
        result.dtype = dtype;
        return result;
    }
    const auto number_bytes = [](Type type) {
        return type.is_scalar() || type.is_numeric_aggregate() ? type.scalar_type().size_bytes() : 0;
    };
    if (number_bytes(dtype) > 0 && number_bytes(dtype) == number_bytes(array.dtype)) {
        if (dtype.is_scalar()) return split(array, dtype);
        if (array.dtype.is_scalar()) return join(array, dtype);
    }
    throw UsageError("array.view()",
                     "elements of " + array.dtype.python_name() + " have " + std::to_string(array.dtype.size_bytes()) +
                         " bytes, those of " + dtype.python_name() + " " + std::to_string(dtype.size_bytes()) +
                         ": expected as many, or numbers of as many and vectors of them",
                     ErrorCategory::type);
}

void throw_gone(const Array& array, std::string_view api, const std::string& name) {
    throw UsageError(std::string(api), name + " has no memory any more: it shows " + array.dtype.python_name() +
                                           " of shape " + shape_text(array.shape()) +
                                           " in memory of a tensor, which has other memory since (resize_(), set_(), "
                                           ".data = ...). help: convert the tensor again");
}

void require_writable(const Array& array, std::string_view api) {
    if (!array.buffer || !array.buffer->is_read_only) return;
    throw UsageError(api,
                     "the array of shape " + shape_text(array.shape()) +
                         " lies in memory that its owner lends to be read only (a JAX array, a read-only NumPy array). "
                         "help: write to a copy, wp.clone(array)",
                     ErrorCategory::value);
}

bool overlap(const Array& a, const Array& b) {
    auto [a_low, a_high] = a.extent();
    auto [b_low, b_high] = b.extent();
    return a_low < b_high && b_low < a_high;
}

}  // namespace weft::runtime
