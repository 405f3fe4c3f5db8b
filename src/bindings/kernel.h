// @wp.kernel objects: a Python function, what its launches need to know, and its compiled variants.
#pragma once

#include <nanobind/nanobind.h>

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "binary/binary.h"
#include "program/launch.h"
#include "program/module.h"
#include "sema/environment.h"
#include "sema/sema.h"
#include "types/pattern.h"

namespace weft::bindings {

namespace nb = nanobind;

// How one parameter is filled at a launch, decided once per kernel. The common scalars have a path of their own.
struct ParameterPlan {
    enum class Filler : std::uint8_t { array, f32, i32, value } filler = Filler::value;
    std::string name;
    Type type;
    Type element;  // of an array
    int ndim = 0;  // of an array
    std::int64_t offset = 0;
};

// Which machine code a launch needs. Each combination is compiled when first asked for.
struct Variant {
    bool debug = false, fast_math = false, line_info = false, strided = false, overlapping = false;
    bool records = false;     // keeps what its atomics give, for its adjoint
    bool finite = false;      // notes who writes what is not finite
    bool exclusive = false;   // adjoints only: scattered gradients are of one worker
    bool nulls = false;       // some array is None or empty
    bool repeating = false;   // some array shows an element at several indices
    bool short_rows = false;  // codegen::Options::short_rows
    bool single = false;      // for a launch of one thread: not in lanes
    bool serial = false;      // one thread after the other
    int launch_rank = 0;      // transform::fit_to_launch()
    std::size_t index() const {
        return debug | fast_math << 1 | line_info << 2 | strided << 3 | overlapping << 4 | records << 5 | finite << 6 |
               exclusive << 7 | nulls << 8 | launch_rank << 9 | short_rows << 13 | single << 14 | repeating << 15 |
               serial << 16;
    }
    static int launch_rank_in(std::size_t index) { return static_cast<int>(index >> 9 & 15); }
};

// Options of @wp.kernel and of its module; empty means "as wp.config says".
struct KernelOptions {
    std::optional<bool> debug, fast_math, line_info;
    std::optional<int> optimization_level, max_unroll;
    std::optional<int> lanes;  // threads per vector; 1 is the scalar code
    bool enable_backward = true;
};

class PyKernel {
public:
    PyKernel(nb::object function, std::string key, nb::object module, KernelOptions options);

    nb::object function;
    std::string key;         // its name in messages
    std::string module_key;  // its name in its module: "make__locals__scale" for a function of a function
    nb::object module;       // the wp.Module that it belongs to
    KernelOptions options;

    // Reads the source at the first call. Throws CompileError or UsageError, again at each call. A generic kernel has
    // no parameters of its own: its instances have.
    const std::vector<ParameterPlan>& parameters();
    // Whether some parameter is generic: launches then run an instance of this kernel.
    bool is_generic() {
        if (genericity_ == Genericity::unknown) decide_genericity();
        return genericity_ == Genericity::generic;
    }
    // The instance for the types that a launch's arguments have; made where it is new.
    nb::object instance_for(std::span<PyObject* const> values);
    // The instance for given types: one annotation per parameter, or by name. Made where it is new.
    nb::object overload(nb::handle types);
    // The same where there is one already, else None.
    nb::object find_overload(nb::handle types);
    // The types that parameters have in a launch with these arguments: annotations.
    nb::list argument_types(std::span<PyObject* const> values);
    // What decides about the machine code, and the options: equal for kernels that do the same. Where it was compiled,
    // that of the code; else of what it would be now. Throws CompileError where the kernel has a mistake.
    Digest hash();
    bool knows_hash() const { return keeps_hash_ || !variants_.empty(); }
    std::int64_t block_bytes();
    // Whether an argument block has None for an array; parameters() has been asked for.
    bool has_null(const std::byte* block) const { return program::has_null(arrays_, block); }
    // The variant that wp.config and the kernel's options ask for.
    Variant configured() const;
    int optimization_level(Variant variant) const;
    // Compiled at the first call of each variant.
    const program::CompiledKernel& compiled(Variant variant) {
        follow_redefinitions();
        const std::size_t index = variant.index();
        for (const auto& [at, found] : variants_)
            if (at == index) return *found;
        return newly_compiled(variant);
    }
    // The adjoint for these gradients (one for each parameter), compiled at the first call.
    const program::CompiledKernel& adjoint(Variant variant, const std::vector<transform::Gradient>& gradients);
    // Forward mode, of the kernel or, where gradients are given, of that adjoint.
    const program::CompiledKernel& with_tangents(Variant variant, const std::vector<transform::Gradient>& gradients,
                                                 const std::vector<bool>& tangents);
    // What that adjoint looks at.
    const program::AdjointReads& adjoint_reads(Variant variant, const std::vector<transform::Gradient>& gradients);
    // Whether the latest compile found the code of another closure of the same factory.
    bool was_shared() const { return was_shared_; }
    // Other options for this kernel and its instances; what was compiled with others is not used any more.
    void set_options(const KernelOptions& changed);
    nb::list instances() const;
    void read_early();  // see frontend::read_when_declared
    // Signature as messages show it: "saxpy(a: float32, x: array[float32])".
    std::string signature();
    // The kernel as sema sees it: its IR, no pass run.
    std::unique_ptr<ir::Module> analyze(bool debug);

private:
    enum class Genericity : std::uint8_t { unknown, plain, generic };

    const sema::FunctionSource& source();
    void decide_genericity();
    nb::object instance(const std::vector<Type>& types);
    std::vector<Type> overload_types(nb::handle given);
    std::vector<Type> types_for(std::span<PyObject* const> values, nb::object& declared_instance);
    Digest hash_of(const ir::Module& module) const;

    std::shared_ptr<const sema::FunctionSource> source_;
    Genericity genericity_ = Genericity::unknown;
    std::vector<Type> types_;  // of an instance; empty otherwise
    // Of a generic kernel, by the types of the parameters, oldest first.
    std::vector<std::pair<std::vector<Type>, nb::object>> instances_;
    std::vector<ParameterPlan> parameters_;
    std::vector<program::ArrayPlace> arrays_;
    std::int64_t block_bytes_ = -1;
    sema::Options sema_options(bool debug) const;
    program::CompileOptions compile_options(Variant variant) const;
    std::shared_ptr<const program::CompiledKernel> compile(Variant variant, const program::CompileOptions& options);
    const program::CompiledKernel& newly_compiled(Variant variant);
    void forget_variants();
    void follow_redefinitions();

    struct Adjoint {
        std::optional<program::AdjointReads> reads;  // empty where nobody has asked
        std::shared_ptr<const program::CompiledKernel> compiled;
    };
    void check_backward() const;  // throws UsageError where the kernel was declared without
    Adjoint& adjoint_slot(Variant variant, const std::vector<transform::Gradient>& gradients);
    // By variant, the bytes that loops may keep, gradients and tangents.
    std::map<std::tuple<std::size_t, std::int64_t, std::vector<transform::Gradient>>, Adjoint> adjoints_;
    std::map<std::tuple<std::size_t, std::int64_t, std::vector<transform::Gradient>, std::vector<bool>>,
             std::shared_ptr<const program::CompiledKernel>>
        with_tangents_;

    // By Variant::index(); few, so that looking through them is quick. One kernel may stand at several of them.
    std::vector<std::pair<std::size_t, std::shared_ptr<const program::CompiledKernel>>> variants_;
    int tid_rank_ = -1;  // names of tid() when it was compiled last; -1 where that is not known
    // Compiled before a function was redefined or options changed: launches and recorded launches may still use them.
    std::vector<std::shared_ptr<const program::CompiledKernel>> retired_;
    bool was_shared_ = false;
    bool keeps_hash_ = false;  // whether anybody has asked for the hash before the kernel was compiled
    std::optional<Digest> compiled_hash_;
    std::uint64_t redefinitions_ = 0;  // frontend::function_redefinitions() when the variants were compiled
};

// Null where the object is no kernel.
PyKernel* kernel_pointer(nb::handle object);

// What machine code printed goes to sys.stdout. launch.cpp.
void flush_prints();

void bind_kernels(nb::module_& m);  // kernel.cpp
void bind_launch(nb::module_& m);   // launch.cpp, called by bind_kernels
void bind_bundles(nb::module_& m);  // bundle.cpp

}  // namespace weft::bindings
