// @wp.kernel objects: a Python function, the data that its launches need, and its compiled variants.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "frontend/frontend.h"
#include "program/kernel/kernel.h"
#include "program/tape/jit_kernel.h"
#include "sema/environment.h"
#include "types/pattern.h"

namespace weft::bindings {

namespace nb = nanobind;

// The way in which a launch fills one parameter, decided once a kernel. The common scalars have a path of their own.
struct ParameterPlan {
    enum class Filler : std::uint8_t { array, f32, i32, value } filler = Filler::value;
    std::string name;
    Type type;
    Type element;  // of an array
    int ndim = 0;  // of an array
    std::int64_t offset = 0;
    std::vector<std::int64_t> textures;  // offsets of ids of textures, in a struct or a texture
};

class PyKernel {
public:
    PyKernel(nb::object function, std::string key, nb::object module, program::KernelOptions options);

    nb::object function;
    std::string key;         // its name in messages
    std::string module_key;  // its name in its module: "make__locals__scale" for a function of a function
    nb::object module;       // the wp.Module that it belongs to
    nb::object given_hash;   // the kernel.hash that the program has set, if any
    program::KernelOptions options;

    // Reads the source at the first call. Throws CompileError or UsageError, again at each call. A generic kernel has
    // no parameters of its own: its instances have them.
    const std::vector<ParameterPlan>& parameters() {
        if (!core_) read_parameters();
        return parameters_;
    }
    // Whether some parameter is generic: launches then run an instance of this kernel.
    bool is_generic() {
        if (genericity_ == Genericity::unknown) decide_genericity();
        return genericity_ == Genericity::generic;
    }
    // The instance for the types of a launch's arguments; made at its first use.
    nb::object instance_for(std::span<PyObject* const> values);
    // The same kernel for blocks of several lanes on the CPU; made at its first use.
    nb::object with_blocks(const sema::Blocks& blocks);
    // Whether it is for blocks of a plain launch: the extents of the launch are constants of its code.
    bool is_for_one_size() const { return !blocks_.threads.empty(); }
    // The instance for given types: one annotation per parameter, or by name. Made at its first use.
    nb::object overload(nb::handle types);
    // The same if it exists, else None.
    nb::object find_overload(nb::handle types);
    // The types that parameters have in a launch with these arguments: annotations.
    nb::list argument_types(std::span<PyObject* const> values);
    // The kernel that launches run, for the present definitions of functions. Not for a generic kernel.
    program::Kernel& core() {
        if (!core_ || redefinitions_ != frontend::function_redefinitions()) update_core();
        return *core_;
    }
    // The same for tapes. Precondition: core() was called for the launch.
    const program::JitKernel& differentiable() const { return *differentiable_; }
    std::int64_t block_bytes() {
        parameters();
        return core_->layout().size_bytes;
    }
    // Whether anything is known that decides the machine code: see program::Kernel::hash().
    bool knows_hash() const { return core_ && core_->knows_hash(); }
    // Other options for this kernel and its instances; code that was compiled with others is not used any more.
    void set_options(const program::KernelOptions& changed);
    nb::list instances() const;
    void read_early();  // see frontend::read_when_declared
    // The number of parameters, also of a generic kernel.
    std::size_t parameter_count() { return source().tree->parameters.size(); }
    // The signature in messages: "saxpy(a: float32, x: array[float32])".
    std::string signature();

private:
    enum class Genericity : std::uint8_t { unknown, plain, generic };

    const sema::FunctionSource& source();
    void decide_genericity();
    nb::object instance(const std::vector<Type>& types);
    // This kernel for other types of its parameters, or for other blocks.
    nb::object copy(const std::vector<Type>& types, const sema::Blocks& blocks);
    std::vector<Type> overload_types(nb::handle given);
    std::vector<Type> types_for(std::span<PyObject* const> values, nb::object& declared_instance);
    void read_parameters();
    void update_core();

    std::shared_ptr<const sema::FunctionSource> source_;
    Genericity genericity_ = Genericity::unknown;
    std::vector<Type> types_;  // of an instance; empty otherwise
    // Of a generic kernel, by the types of the parameters, oldest first.
    std::vector<std::pair<std::vector<Type>, nb::object>> instances_;
    std::vector<ParameterPlan> parameters_;
    std::unique_ptr<program::Kernel> core_;
    std::unique_ptr<program::JitKernel> differentiable_;  // of core_
    std::uint64_t redefinitions_ = 0;  // frontend::function_redefinitions() when the core was made or updated
    sema::Blocks blocks_;
    std::vector<std::pair<sema::Blocks, nb::object>> blocked_;  // with_blocks(), oldest first
};

// Null if the object is no kernel.
PyKernel* kernel_pointer(nb::handle object);

void bind_kernels(nb::module_& m);  // kernel.cpp
void bind_launch(nb::module_& m);   // launch.cpp
void bind_bundles(nb::module_& m);  // bundle.cpp

}  // namespace weft::bindings
