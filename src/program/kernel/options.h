// Everything that decides the machine code of a kernel besides the kernel itself: its options, those of wp.config, the
// kind of its launch and the layout of its arrays. The properties are the rows of ir/specialization.def.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "ir/specialization.h"
#include "jit/jit.h"
#include "transform/adjoint/adjoint.h"
#include "transform/pipeline.h"

namespace weft::program {

// Options of @wp.kernel and of its module; an empty one leaves the choice to wp.config.
struct KernelOptions {
    std::optional<bool> debug, fast_math, fuse_fp, line_info;
    std::optional<int> optimization_level, max_unroll;
    std::optional<int> lanes;           // threads per vector; 1 is the scalar code
    std::optional<bool> deterministic;  // settings().deterministic
    bool external_parameters = false;   // entry_point_abi, which CUDA devices do not have
    bool enable_backward = true;
#define WEFT_OF_CUDA(type, name, usual, ...) type name = usual;
#include "ir/specialization.def"
};

// The properties that a launch asks code for before the layout of its arrays is known.
struct Variant {
#define WEFT_OF_LAUNCH(type, name, usual, ...) type name = usual;
#define WEFT_OF_REQUEST(type, name, usual, ...) type name = usual;
#include "ir/specialization.def"

    // Different for different variants. Numbers are not negative, and have as many bits as kBits says.
    std::size_t index() const {
        std::size_t index = 0;
        int at = 0;
        const auto add = [&]<typename Property>(Property property) {
            index |= static_cast<std::size_t>(property) << at;
            at += kBits<Property>;
        };
#define WEFT_OF_LAUNCH(type, name, ...) add(name);
#define WEFT_OF_REQUEST(type, name, ...) add(name);
#include "ir/specialization.def"
        return index;
    }

private:
    template <typename Property>
    static constexpr int kBits = std::is_same_v<Property, bool> ? 1 : 16;
    static_assert(0
#define WEFT_OF_LAUNCH(type, ...) +kBits<type>
#define WEFT_OF_REQUEST(type, ...) +kBits<type>
#include "ir/specialization.def"
                  <= std::numeric_limits<std::size_t>::digits);
};

// The layout in memory of a launch's arrays, which decides about its code. Most arrays are packed, do not overlap, and
// show each element once: that is the usual layout.
struct LaunchLayout {
#define WEFT_OF_LAYOUT(type, name, usual, ...) type name = usual;
#include "ir/specialization.def"

    static constexpr std::size_t kCount = std::size_t{1}
#define WEFT_OF_LAYOUT(...) << 1
#include "ir/specialization.def"
    ;
    // Every property false: code for it serves all arrays but huge ones.
    static constexpr LaunchLayout without_promises() {
        LaunchLayout none;
#define WEFT_OF_LAYOUT(type, name, ...) none.name = false;
#include "ir/specialization.def"
        return none;
    }
    // Below kCount; 0 for the usual layout.
    std::size_t index() const {
        std::size_t index = 0, usual_index = 0;
        int at = 0;
        const auto add = [&](bool property, bool usual) {
            index |= static_cast<std::size_t>(property) << at;
            usual_index |= static_cast<std::size_t>(usual) << at++;
        };
#define WEFT_OF_LAYOUT(type, name, usual, ...) add(name, usual);
#include "ir/specialization.def"
        return index ^ usual_index;
    }
};

// The kernel itself if both are empty; else its adjoint, forward mode, or forward mode of the adjoint.
struct Derivation {
    std::vector<transform::Gradient> gradients;  // one for each parameter
    std::vector<bool> tangents;                  // by parameter: whether it has one
    std::vector<bool> numbers = {};              // of an adjoint: parameters whose numbers have gradients; empty: none

    auto operator<=>(const Derivation&) const = default;
};

// The options that passes on the IR depend on.
struct PassOptions : transform::PassProperties {
    Derivation derivation;
    std::int64_t stack_bytes = transform::AdjointOptions().stack_bytes;
    std::optional<std::int64_t> stack_slots;  // transform::AdjointOptions::stack_slots, if the target asks for it

    bool operator==(const PassOptions&) const = default;
};

// The properties of launches of some code.
struct LaunchProperties {
#define WEFT_PROPERTY(type, name, usual, passes, analyses, code, launches) WEFT_ONLY_##launches(type name = usual;)
#include "ir/specialization.def"

    bool operator==(const LaunchProperties&) const = default;
};

// The request for one piece of code.
struct CompileOptions {
#define WEFT_OF_REQUEST(...)
#define WEFT_PROPERTY(type, name, usual, ...) type name = usual;
#include "ir/specialization.def"
    Derivation derivation;
    std::int64_t stack_bytes = PassOptions().stack_bytes;
    std::optional<std::int64_t> stack_slots;  // PassOptions::stack_slots
    Target target = jit::host_target();
    int optimization_level = 3;
    bool cache = true;
    std::filesystem::path cache_folder;  // empty: jit::cache_folder() chooses
    std::string host_compiler;           // of functions in C++; empty: the first that is found

    CompileOptions() = default;
    // With the properties of a variant and a layout. The others, and those that depend on more, are the caller's.
    CompileOptions(const Variant& variant, const LaunchLayout& layout);
    bool operator==(const CompileOptions&) const = default;

    // The parts that each step of a compilation depends on.
    PassOptions passes() const;
    jit::Options code() const;
    LaunchProperties launches() const;
};

}  // namespace weft::program
