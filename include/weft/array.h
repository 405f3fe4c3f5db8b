// Arrays of C++ programs: typed, strided views of shared memory, as wp.array is in Python.
//
//     weft::Array x = weft::Array::of({1.0f, 2.0f, 3.0f});
//     weft::Array v = weft::Array::zeros("vec3f", {1000});
//     float* numbers = v.data<float>();                        // 3000 of them
//
// Copying an Array shares its memory; clone() copies the elements. The memory of an array is the host's, or that of a
// GPU ("cuda:0"), which the program reads through to("cpu"). Invalid calls throw std::invalid_argument, with a text
// that names the expected and the found value.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "weft/array_view.h"

#define WEFT_API __attribute__((visibility("default")))

namespace weft {

// The type of an array's elements, by its Python name: "float32", "int8", "bool", "vec3f", "vec2ub", "mat33d", "quatf",
// "transformf", "spatial_vectorf". Names without a suffix ("vec3") are of float32. Structs and vectors of other lengths
// have no name: use Parameter::dtype of the parameter that the array is for.
class WEFT_API Dtype {
public:
    Dtype(std::string_view name);
    Dtype(const char* name) : Dtype(std::string_view(name)) {}
    Dtype(const std::string& name) : Dtype(std::string_view(name)) {}

    // The type of a C++ number or bool.
    template <typename Number>
    static Dtype of();

    std::string name() const;
    std::int64_t size_bytes() const;
    bool operator==(const Dtype&) const = default;

private:
    explicit Dtype(const void* node) : node_(node) {}
    const void* node_;
    friend struct Access;
};

template <typename Number>
Dtype Dtype::of() {
    static_assert(std::is_arithmetic_v<Number> && sizeof(Number) <= 8, "expected a number or bool");
    if constexpr (std::is_same_v<Number, bool>) {
        return "bool";
    } else {
        const char* kind = std::is_floating_point_v<Number> ? "float" : std::is_signed_v<Number> ? "int" : "uint";
        return kind + std::to_string(8 * sizeof(Number));
    }
}

class WEFT_API Array {
public:
    // No array: for a parameter of a kernel, the equivalent of None in Python.
    Array();
    Array(const Array&);
    Array(Array&&) noexcept;
    Array& operator=(const Array&);
    Array& operator=(Array&&) noexcept;
    ~Array();

    // An array with its own memory, 64-byte aligned, uninitialized or zero. One to four extents.
    static Array empty(Dtype dtype, std::span<const std::int64_t> shape, std::string_view device = "cpu");
    static Array empty(Dtype dtype, std::initializer_list<std::int64_t> shape, std::string_view device = "cpu");
    static Array zeros(Dtype dtype, std::span<const std::int64_t> shape, std::string_view device = "cpu");
    static Array zeros(Dtype dtype, std::initializer_list<std::int64_t> shape, std::string_view device = "cpu");

    // A one-dimensional array with a copy of the numbers.
    template <typename Number>
    static Array of(std::span<const Number> numbers) {
        Array array = empty(Dtype::of<Number>(), {static_cast<std::int64_t>(numbers.size())});
        std::copy(numbers.begin(), numbers.end(), array.template data<Number>());
        return array;
    }
    template <typename Number>
    static Array of(const std::vector<Number>& numbers) {
        return of(std::span<const Number>(numbers));
    }
    template <typename Number>
    static Array of(std::initializer_list<Number> numbers) {
        return of(std::span<const Number>(numbers.begin(), numbers.size()));
    }

    // An array over memory of the caller, which must outlive the array and its copies. Strides are in bytes; without
    // them the elements are in C order without gaps.
    static Array wrap(void* ptr, Dtype dtype, std::span<const std::int64_t> shape,
                      std::span<const std::int64_t> strides = {});
    static Array wrap(void* ptr, Dtype dtype, std::initializer_list<std::int64_t> shape);

    explicit operator bool() const { return implementation_ != nullptr; }
    Dtype dtype() const;
    int ndim() const;
    std::span<const std::int64_t> shape() const;
    std::span<const std::int64_t> strides() const;
    std::int64_t size() const;  // number of elements
    bool is_contiguous() const;
    std::string device() const;  // "cpu", "cuda:0"
    ArrayView view() const;      // to be stored in a field of a struct

    // The first element, of an array in the host's memory. `Part` is the type by which the memory is read: the scalar
    // of the dtype, or a struct of the element's size.
    template <typename Part = void>
    Part* data() const {
        if constexpr (!std::is_void_v<Part>) check_part(sizeof(Part), std::is_arithmetic_v<Part>);
        return static_cast<Part*>(address());
    }

    // Gives the array a gradient of zeros, an array of the same shape and strides, unless it has one. weft::Tape adds
    // to it (tape.h). Copies of this Array share it, and so do views that are made later.
    void require_gradient() const;
    Array gradient() const;  // Array() if there is none

    // A view of `count` elements of one axis: start, start + step, …
    Array slice(int axis, std::int64_t start, std::int64_t count, std::int64_t step = 1) const;
    Array clone() const;  // on the same device
    // The array itself if it is on that device, else a copy there. If that is the CPU, the copy is done when the call
    // returns.
    Array to(std::string_view device) const;
    void copy_from(const Array& source) const;  // source: same shape and dtype, any device; may overlap
    void zero() const;

private:
    struct Implementation;
    explicit Array(std::shared_ptr<Implementation> implementation);
    void* address() const;
    void check_part(std::size_t size_bytes, bool is_number) const;
    Implementation& get(const char* api) const;

    std::shared_ptr<Implementation> implementation_;
    friend struct Access;
};

}  // namespace weft
