// Kernels that wp.compile_aot_module() wrote to a file, in a C++ program without Python.
//
//     weft::Program program = weft::Program::load("simulation.weft");
//     weft::Kernel step = program.kernel("step");
//     step.launch({1000}, {0.01f, positions, velocities});
//
// A launch of code for CPUs runs on all CPU threads and has finished when it returns. Code for GPUs, from
// compile_aot_module(..., arch=75), runs on the GPU of its arrays, one launch after the other; weft::synchronize() and
// copies to the host wait for it. Programs, kernels and launches may be used by several threads at once. Invalid calls
// and files throw std::invalid_argument.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "weft/array.h"

namespace weft {

// The value of a parameter: a number, an array (Array() for none), or the bytes of a vector, matrix or struct. Numbers
// are converted to the type of the parameter as in Python: floats are rounded, integers must fit, and floats are not
// converted to integers.
class Argument {
public:
    template <typename Value>
        requires(!std::is_same_v<Value, Argument>)
    Argument(const Value& value) {
        if constexpr (std::is_same_v<Value, bool>) {
            value_ = value;
        } else if constexpr (std::is_floating_point_v<Value>) {
            value_ = static_cast<double>(value);
        } else if constexpr (std::is_enum_v<Value>) {
            *this = Argument(static_cast<std::underlying_type_t<Value>>(value));
        } else if constexpr (std::is_integral_v<Value> && std::is_unsigned_v<Value>) {
            value_ = static_cast<std::uint64_t>(value);
        } else if constexpr (std::is_integral_v<Value>) {
            value_ = static_cast<std::int64_t>(value);
        } else if constexpr (std::is_same_v<Value, Array>) {
            value_ = value;
        } else {
            static_assert(std::is_trivially_copyable_v<Value> && !std::is_pointer_v<Value>,
                          "expected a number, a weft::Array, or a plain struct or std::array of the parameter's bytes");
            auto bytes = std::as_bytes(std::span<const Value, 1>(&value, 1));
            value_ = std::vector<std::byte>(bytes.begin(), bytes.end());
        }
    }

private:
    std::variant<bool, std::int64_t, std::uint64_t, double, Array, std::vector<std::byte>> value_;
    friend struct Access;
};

// The points of a launch: an int, or one to four extents in braces.
class Grid {
public:
    Grid(std::int64_t extent) : extents_{extent}, ndim_(1) {}
    Grid(std::initializer_list<std::int64_t> extents) : ndim_(extents.size()) {
        if (ndim_ < 1 || ndim_ > extents_.size())
            throw std::invalid_argument("a grid has one to four extents, found " + std::to_string(ndim_));
        std::copy(extents.begin(), extents.end(), extents_.begin());
    }
    std::span<const std::int64_t> extents() const { return std::span(extents_).first(ndim_); }

private:
    std::array<std::int64_t, 4> extents_{};
    std::size_t ndim_ = 0;
};

struct Parameter {
    std::string name;
    std::string type;  // as in Python: "float32", "array2d[vec3f]"
    Dtype dtype;       // of a value, or of an array's elements
    int ndim = 0;      // of an array; 0 for a value
};

class WEFT_API Kernel {
public:
    const std::string& name() const;
    const std::vector<Parameter>& parameters() const;

    // Loads the code on a device, as its first launch there would, and describes it: "machine code for sm_90", "PTX for
    // sm_75, compiled by the driver for sm_90", with the reason if the file's machine code is not used; on "cpu" always
    // machine code. Throws if there is no such device, or the file has no code for it.
    std::string load(std::string_view device) const;

    // Runs the kernel once for every point of the grid `dim`, of one to four extents.
    void launch(std::span<const std::int64_t> dim, std::span<const Argument> arguments) const;
    void launch(std::initializer_list<std::int64_t> dim, std::initializer_list<Argument> arguments) const {
        launch(std::span(dim.begin(), dim.size()), std::span(arguments.begin(), arguments.size()));
    }
    void launch(std::int64_t dim, std::initializer_list<Argument> arguments) const {
        launch(std::span(&dim, 1), std::span(arguments.begin(), arguments.size()));
    }

private:
    struct Implementation;
    explicit Kernel(std::shared_ptr<const Implementation> implementation)
        : implementation_(std::move(implementation)) {}
    std::shared_ptr<const Implementation> implementation_;
    friend class Program;
    friend struct Access;
};

class WEFT_API Program {
public:
    // Reads a file and prepares its kernels. Throws if the file does not exist, is damaged, has another version, or
    // needs a processor or GPU that this machine lacks.
    static Program load(const std::filesystem::path& path);

    std::vector<std::string> kernel_names() const;
    Kernel kernel(std::string_view name) const;

private:
    explicit Program(std::vector<Kernel> kernels) : kernels_(std::move(kernels)) {}
    std::vector<Kernel> kernels_;
};

// Returns when all launches on all devices are done. Throws their errors.
WEFT_API void synchronize();

// Threads of CPU launches: $WARP_CPU_THREADS, else one per CPU of this process.
WEFT_API int cpu_threads();
WEFT_API void set_cpu_threads(int count);

}  // namespace weft
