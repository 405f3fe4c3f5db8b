#include "weft/array.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <optional>

#include "embed/access.h"
#include "embed/guarded.h"
#include "embed/shown_arrays.h"
#include "runtime/array_copies.h"
#include "runtime/bytes.h"
#include "types/names.h"

namespace weft {

// ---- Dtype ----

// A Type is one pointer, to a node that lives for ever.
static_assert(sizeof(Type) == sizeof(const void*) && std::is_trivially_copyable_v<Type>);

Type Access::type(const Dtype& dtype) { return std::bit_cast<Type>(dtype.node_); }

Dtype::Dtype(std::string_view name) {
    guarded([&] {
        const std::optional<Type> type = named_type(name);
        if (!type) {
            std::vector<std::string> names;
            for (const auto& [known, meaning] : named_types()) names.push_back(known);
            throw UsageError(
                "Dtype()",
                "there is no dtype '" + std::string(name) + "'; did you mean " + join_or(nearest(name, names)) + "?",
                ErrorCategory::value);
        }
        node_ = type->node();
    });
}

std::string Dtype::name() const { return Access::type(*this).python_name(); }
std::int64_t Dtype::size_bytes() const { return Access::type(*this).size_bytes(); }

// ---- Array ----

Array::Array() = default;
Array::Array(const Array&) = default;
Array::Array(Array&&) noexcept = default;
Array& Array::operator=(const Array&) = default;
Array& Array::operator=(Array&&) noexcept = default;
Array::~Array() = default;
Array::Array(std::shared_ptr<Implementation> implementation) : implementation_(std::move(implementation)) {}

Array Access::array(runtime::Array array) {
    return Array(std::make_shared<Array::Implementation>(Array::Implementation{{std::move(array)}}));
}

Array::Implementation& Array::get(const char* api) const {
    if (!implementation_)
        throw std::invalid_argument(std::string(api) + ": this Array is none: it was made by Array()");
    return *implementation_;
}

Array Array::empty(Dtype dtype, std::span<const std::int64_t> shape, std::string_view device) {
    return guarded([&] { return Access::array(runtime::empty(Access::type(dtype), shape, runtime::device(device))); });
}
Array Array::zeros(Dtype dtype, std::span<const std::int64_t> shape, std::string_view device) {
    return guarded([&] { return Access::array(runtime::zeros(Access::type(dtype), shape, runtime::device(device))); });
}
Array Array::empty(Dtype dtype, std::initializer_list<std::int64_t> shape, std::string_view device) {
    return empty(dtype, std::span(shape.begin(), shape.size()), device);
}
Array Array::zeros(Dtype dtype, std::initializer_list<std::int64_t> shape, std::string_view device) {
    return zeros(dtype, std::span(shape.begin(), shape.size()), device);
}

Array Array::wrap(void* ptr, Dtype dtype, std::span<const std::int64_t> shape, std::span<const std::int64_t> strides) {
    const runtime::Shape steps(strides.begin(), strides.end());
    return guarded([&] {
        return Access::array(runtime::wrap(ptr, Access::type(dtype), shape, strides.empty() ? nullptr : &steps,
                                           runtime::host_device(), "Array::wrap()"));
    });
}
Array Array::wrap(void* ptr, Dtype dtype, std::initializer_list<std::int64_t> shape) {
    return wrap(ptr, dtype, std::span(shape.begin(), shape.size()));
}

void count_write(const runtime::BufferPtr& buffer) {
    if (buffer) std::atomic_ref<std::uint64_t>(buffer->version).fetch_add(1, std::memory_order_relaxed);
}

Dtype Array::dtype() const { return Access::dtype(get("Array::dtype()").array.dtype); }
int Array::ndim() const { return get("Array::ndim()").array.ndim; }
std::span<const std::int64_t> Array::shape() const { return get("Array::shape()").array.shape(); }
std::span<const std::int64_t> Array::strides() const { return get("Array::strides()").array.strides(); }
std::int64_t Array::size() const { return get("Array::size()").array.size(); }
bool Array::is_contiguous() const { return get("Array::is_contiguous()").array.is_contiguous(); }
ArrayView Array::view() const {
    if (!implementation_) return {};
    remember_memory(implementation_->array.buffer);
    remember_memory(implementation_->gradient);
    return implementation_->array.view;
}
std::string Array::device() const { return get("Array::device()").array.device->alias; }

void* Array::address() const {
    const runtime::Array& array = get("Array::data()").array;
    if (!array.device->is_host_memory)
        throw std::invalid_argument("Array::data(): the array is on '" + array.device->alias +
                                    "', whose memory the host cannot read. help: array.to(\"cpu\").data<...>()");
    return runtime::host_data(array);
}

void Array::check_part(std::size_t size_bytes, bool is_number) const {
    const Type dtype = get("Array::data()").array.dtype;
    const bool of_numbers = dtype.is_scalar() || dtype.is_numeric_aggregate();
    const auto part = static_cast<std::int64_t>(size_bytes);
    const bool fits = is_number ? of_numbers && part == dtype.scalar_type().size_bytes() : part == dtype.size_bytes();
    if (fits) return;
    const std::string elements = dtype.python_name() + " of " + std::to_string(dtype.size_bytes()) + " bytes" +
                                 (of_numbers ? ", made of " + dtype.scalar_type().python_name() : "");
    throw std::invalid_argument("Array::data(): a part of " + std::to_string(part) + " bytes; the elements are " +
                                elements);
}

Array Array::slice(int axis, std::int64_t start, std::int64_t count, std::int64_t step) const {
    const runtime::Array& array = get("Array::slice()").array;
    return guarded([&] {
        if (axis < 0 || axis >= array.ndim)
            throw UsageError("Array::slice()", "axis " + std::to_string(axis) + " of an array of " +
                                                   std::to_string(array.ndim) + " dimensions");
        const std::int64_t extent = array.view.shape[axis];
        std::int64_t last = 0;
        const bool fits = count >= 0 && step != 0 &&
                          (count == 0 || (!__builtin_mul_overflow(count - 1, step, &last) &&
                                          !__builtin_add_overflow(last, start, &last) && start >= 0 && start < extent &&
                                          last >= 0 && last < extent));
        if (!fits)
            throw UsageError("Array::slice()", std::to_string(count) + " elements from " + std::to_string(start) +
                                                   " in steps of " + std::to_string(step) +
                                                   " leave an axis of extent " + std::to_string(extent));
        Array view = Access::array(runtime::slice(array, axis, start, count, step));
        view.implementation_->gradient = get("Array::slice()").gradient;
        view.implementation_->requires_grad = get("Array::slice()").requires_grad;
        return view;
    });
}

void Array::require_gradient() const {
    Implementation& self = get("Array::require_gradient()");
    guarded([&] {
        const Type dtype = self.array.dtype;
        const bool of_numbers = dtype.is_scalar() || dtype.is_numeric_aggregate();
        if (!of_numbers || !dtype.scalar_type().is_float())
            throw UsageError("Array::require_gradient()",
                             "an array of " + dtype.python_name() + " has no gradient; expected one of floats");
        if (!self.requires_grad) make_gradient(self);
    });
}

Array Array::gradient() const {
    const Implementation& self = get("Array::gradient()");
    return self.requires_grad ? Access::array(gradient_of(self)) : Array();
}

Array Array::clone() const {
    const runtime::Array& array = get("Array::clone()").array;
    return guarded([&] { return Access::array(runtime::clone(array)); });
}

Array Array::to(std::string_view device) const {
    const runtime::Array& array = get("Array::to()").array;
    return guarded([&] {
        runtime::Device& there = runtime::device(device);
        return array.device == &there ? *this : Access::array(runtime::clone(array, there));
    });
}

void Array::copy_from(const Array& source) const {
    const runtime::Array &to = get("Array::copy_from()").array, &from = source.get("Array::copy_from()").array;
    guarded([&] {
        const bool fits = to.dtype == from.dtype &&
                          std::equal(to.shape().begin(), to.shape().end(), from.shape().begin(), from.shape().end());
        if (!fits)
            throw UsageError("Array::copy_from()", "a source of " + from.dtype.python_name() + " " +
                                                       runtime::shape_text(from.shape()) + "; expected " +
                                                       to.dtype.python_name() + " " + runtime::shape_text(to.shape()));
        runtime::copy(to, from);
        count_write(*this);
    });
}

void Array::zero() const {
    const runtime::Array& array = get("Array::zero()").array;
    guarded([&] {
        runtime::zero(array);
        count_write(*this);
    });
}

}  // namespace weft
