#include "runtime/spatial/arguments.h"

#include <bit>
#include <cstddef>

#include "runtime/bytes.h"
#include "support/error.h"

namespace weft::runtime::spatial {

namespace {

static_assert(sizeof(devlib::ArrayFields) == sizeof(ArrayView) && alignof(devlib::ArrayFields) == alignof(ArrayView));
static_assert(offsetof(devlib::ArrayFields, shape) == offsetof(ArrayView, shape));
static_assert(offsetof(devlib::ArrayFields, strides) == offsetof(ArrayView, strides));

std::string described(const Array& array) {
    return array.dtype.python_name() + " of shape " + shape_text(array.shape()) +
           (array.is_contiguous() ? "" : ", not contiguous");
}

void require_device(const Array& array, std::string_view name, const Array& other, std::string_view other_name,
                    std::string_view api) {
    if (array.device == other.device) return;
    throw UsageError(api, std::string(name) + " is on '" + array.device->alias + "', and " + std::string(other_name) +
                              " on '" + other.device->alias + "'. help: " + std::string(name) + ".to('" +
                              other.device->alias + "')");
}

}  // namespace

void require_points(const Array& array, std::string_view name, std::string_view api) {
    const bool is_vec3 = array.dtype == Type::vector(Scalar::f32, 3) || array.dtype == Type::vector(Scalar::f64, 3);
    if (!is_vec3 || array.ndim != 1 || !array.is_contiguous())
        throw UsageError(api, std::string(name) +
                                  ": expected a contiguous array of vec3f or vec3d with one dimension, got " +
                                  described(array));
    // Kernels and trees number them in 32 bits.
    if (array.size() > INT32_MAX)
        throw UsageError(api,
                         std::string(name) + ": expected at most " + std::to_string(INT32_MAX) + " elements, got " +
                             std::to_string(array.size()),
                         ErrorCategory::value);
}

void require_like(const Array& array, std::string_view name, const Array& other, std::string_view other_name,
                  std::string_view api) {
    require_points(array, name, api);
    require_device(array, name, other, other_name, api);
    if (array.dtype == other.dtype && array.size() == other.size()) return;
    throw UsageError(api, std::string(name) + ": expected as many elements of the same type as " +
                              std::string(other_name) + " has, " + described(other) + ", got " + described(array));
}

void require_integers(const Array& array, std::string_view name, const Array& other, std::string_view other_name,
                      std::string_view api) {
    if (array.dtype != Type::scalar(Scalar::i32) || array.ndim != 1 || !array.is_contiguous())
        throw UsageError(api, std::string(name) + ": expected a contiguous array of int32 with one dimension, got " +
                                  described(array));
    require_device(array, name, other, other_name, api);
}

std::vector<std::int32_t> read_groups(const std::optional<Array>& groups, std::int64_t count, const Array& other,
                                      std::string_view other_name, std::string_view api) {
    if (!groups) return {};
    require_integers(*groups, "groups", other, other_name, api);
    if (groups->size() != count)
        throw UsageError(api,
                         "groups: expected a number for each of " + std::to_string(count) + " items, got " +
                             std::to_string(groups->size()),
                         ErrorCategory::value);
    std::vector<std::int32_t> numbers(static_cast<std::size_t>(count));
    if (count > 0) read_bytes(*groups->device, numbers.data(), groups->view.data, groups->size_bytes());
    return numbers;
}

devlib::ArrayFields fields_of(const ArrayView& view) { return std::bit_cast<devlib::ArrayFields>(view); }
devlib::ArrayFields fields_of(const Array& array) { return fields_of(array.view); }

}  // namespace weft::runtime::spatial
