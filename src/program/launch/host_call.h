// Builtins called from the host: `wp.dot(a, b)` in Python. There is no second implementation of the mathematics. The
// matched overload is expanded into a kernel of one thread, which stores the results in arrays of one element. It goes
// the way of every kernel: passes, disk cache, compiler. Its checks are those of debug mode: an index out of range or
// an integer division by zero is an error on the host.
//
// The code has an instruction for each component, and the caller waits for the compiler. So calls with values that
// would take many seconds to compile are an error. In kernels such values are allowed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "builtins/registry.h"
#include "program/kernel/compiled.h"

namespace weft::program {

// The limits of a call from the host: components of its arguments and results together, and operations on single
// numbers.
inline constexpr std::int64_t kMostHostComponents = 4096, kMostHostOperations = 16384;

class HostFunction {
public:
    // The offset of a value in the argument block.
    struct ArgumentSlot {
        Type type;
        std::int64_t offset = 0;
    };

    // `is_given` has a value for each of match.parameter_types: omitted parameters have their default. Throws
    // UsageError if the builtin has no meaning outside of kernels, and if the call exceeds the limits above.
    HostFunction(const builtins::Match& match, const std::vector<bool>& is_given, bool cache);

    // wp.printf(), which is part of the language: `arguments` are texts (the format first) and types of scalars. Throws
    // CompileError, without a place, if format and scalars do not match.
    using Printed = std::variant<std::string, Type>;
    HostFunction(std::vector<Printed> arguments, bool cache);

    // For each of match.parameter_types; Type::none() if it is static or omitted. Of wp.printf(): for each argument;
    // none for a text.
    const std::vector<ArgumentSlot>& arguments() const { return arguments_; }
    // The results of the call: nothing, one value, or the elements of a tuple; the offsets are those of their views.
    const std::vector<ArgumentSlot>& results() const { return results_; }
    bool gives_tuple() const { return gives_tuple_; }
    // The arguments that the call changes: indices into arguments(), and the views of their new values.
    struct Changed {
        std::size_t argument;
        ArgumentSlot slot;
    };
    const std::vector<Changed>& changed() const { return changed_; }

    std::size_t block_bytes() const { return block_.size(); }
    // The block before a call: the caller fills the arguments and points the views to memory (set_target).
    void prepare(std::byte* block) const;
    static void set_target(std::byte* block, const ArgumentSlot& slot, void* memory);
    // Throws UsageError if a check failed.
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
