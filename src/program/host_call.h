// Builtins called from the host: `wp.dot(a, b)` in Python. There is no second implementation of the mathematics: the
// matched overload is expanded into a kernel of one thread, which goes the way of every kernel (passes, disk cache,
// compiler) and stores what the builtin gives through arrays of one element. Its checks are those of debug mode: an
// index out of range or an integer division by zero is an error on the host.
//
// The code has an instruction for each component, and is compiled while the caller waits: calls of values so large that
// it would take many seconds are an error. In kernels, where they are, it is the user's own decision.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "builtins/registry.h"
#include "program/compiled.h"

namespace weft::program {

// What a call from the host may have at most: components in its arguments and results together, and operations on
// single numbers.
inline constexpr std::int64_t kMostHostComponents = 4096, kMostHostOperations = 16384;

class HostFunction {
public:
    // Where a value goes in the argument block.
    struct ArgumentSlot {
        Type type;
        std::int64_t offset = 0;
    };

    // `is_given`, for each of match.parameter_types: left-out parameters have their default. Throws UsageError where
    // the builtin has no meaning outside of kernels, and where the call is larger than said above.
    HostFunction(const builtins::Match& match, const std::vector<bool>& is_given, bool cache);

    // wp.printf(), which is part of the language: `arguments` are texts (the format first) and types of scalars. Throws
    // CompileError, without a place, where format and scalars do not go together.
    using Printed = std::variant<std::string, Type>;
    HostFunction(std::vector<Printed> arguments, bool cache);

    // For each of match.parameter_types; Type::none() where it is static or left out.
    // (Of wp.printf(): for each argument; none for a text.)
    const std::vector<ArgumentSlot>& arguments() const { return arguments_; }
    // What the call gives: nothing, one value, or the elements of a tuple; the offsets are those of their views.
    const std::vector<ArgumentSlot>& results() const { return results_; }
    bool gives_tuple() const { return gives_tuple_; }
    // The arguments that the call changes: numbers into arguments(), and the views of their new values.
    struct Changed {
        std::size_t argument;
        ArgumentSlot place;
    };
    const std::vector<Changed>& changed() const { return changed_; }

    std::size_t block_bytes() const { return block_.size(); }
    // The block before a call: the caller fills the arguments and points the views to memory (set_target).
    void prepare(std::byte* block) const;
    static void set_target(std::byte* block, const ArgumentSlot& place, void* memory);
    // Throws UsageError where a check failed.
    void run(const std::byte* block) const;

private:
    void lay_out(const std::vector<Type>& parameters);
    void compile_for_host(std::unique_ptr<ir::Module> module, bool cache);

    std::string name_;
    std::shared_ptr<const CompiledKernel> kernel_;
    std::vector<ArgumentSlot> arguments_, results_;
    std::vector<Changed> changed_;
    std::vector<std::byte> block_;
    bool gives_tuple_ = false;
};

}  // namespace weft::program
