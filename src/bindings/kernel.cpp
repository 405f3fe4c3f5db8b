#include "bindings/kernel.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "frontend/frontend.h"
#include "jit/jit.h"
#include "program/settings.h"
#include "sema/sema.h"
#include "support/error.h"
#include "transform/pipeline.h"

namespace weft::bindings {
namespace {

ParameterPlan plan_parameter(std::string name, Type type, std::int64_t offset) {
    ParameterPlan plan;
    plan.name = std::move(name);
    plan.type = type;
    plan.offset = offset;
    if (type.is_array()) {
        plan.filler = ParameterPlan::Filler::array;
        plan.element = type.element();
        plan.ndim = type.ndim();
    } else if (type == f32_type()) {
        plan.filler = ParameterPlan::Filler::f32;
    } else if (type == i32_type()) {
        plan.filler = ParameterPlan::Filler::i32;
    }
    return plan;
}

// A copy of the module with all passes run: what the listings show.
std::unique_ptr<ir::Module> lowered(PyKernel& kernel, Variant variant) {
    auto module = kernel.analyze(variant.debug);
    transform::run_pipeline(*module);
    return module;
}

std::string listing(PyKernel& kernel, const std::string& stage) {
    Variant variant = kernel.configured();
    if (stage == "sema") return ir::print(*kernel.analyze(variant.debug));
    if (stage == "ir") return ir::print(*lowered(kernel, variant));
    jit::Options options;
    options.codegen.debug = variant.debug;
    options.codegen.fast_math = variant.fast_math;
    options.codegen.line_info = variant.line_info;
    options.optimization_level = kernel.options.optimization_level.value_or(program::settings().optimization_level);
    options.codegen.lanes = kernel.options.lanes.value_or(0);
    jit::Listing which;
    if (stage == "llvm") {
        which = jit::Listing::llvm;
    } else if (stage == "optimized_llvm") {
        which = jit::Listing::optimized_llvm;
    } else if (stage == "assembly") {
        which = jit::Listing::assembly;
    } else {
        throw UsageError("Kernel.listing()",
                         "there is no stage '" + stage + "'; expected sema, ir, llvm, optimized_llvm or assembly",
                         ErrorCategory::value);
    }
    return jit::listing(*lowered(kernel, variant), options, which);
}

}  // namespace

PyKernel::PyKernel(nb::object function, std::string key, std::string module, KernelOptions options)
    : function(std::move(function)), key(std::move(key)), module(std::move(module)), options(options) {}

const sema::FunctionSource& PyKernel::source() {
    if (!source_) source_ = frontend::read_function(function);
    return *source_;
}

const std::vector<ParameterPlan>& PyKernel::parameters() {
    if (block_bytes_ >= 0) return parameters_;
    if (is_generic()) {
        throw UsageError("kernel '" + key + "'",
                         "is generic: " + signature() + ". help: launch it with arguments, or choose the types with " +
                             "wp.overload(" + key + ", [...])",
                         ErrorCategory::type);
    }
    const sema::FunctionSource& read = source();
    std::vector<Type> types = types_;
    if (types.empty())
        for (const TypePattern& pattern : read.annotations) types.push_back(pattern.type);
    ArgumentLayout layout = argument_layout(types);
    std::vector<ParameterPlan> plans;
    for (std::size_t i = 0; i < types.size(); ++i) {
        plans.push_back(plan_parameter(read.tree->parameters[i].name, types[i], layout.offsets[i]));
    }
    parameters_ = std::move(plans);
    block_bytes_ = layout.size_bytes;
    return parameters_;
}

std::int64_t PyKernel::block_bytes() {
    parameters();
    return block_bytes_;
}

Variant PyKernel::configured() const {
    const program::Settings& settings = program::settings();
    Variant variant;
    variant.debug = options.debug.value_or(settings.debug);
    variant.fast_math = options.fast_math.value_or(settings.fast_math);
    variant.line_info = options.line_info.value_or(settings.line_info);
    return variant;
}

std::unique_ptr<ir::Module> PyKernel::analyze(bool debug) {
    sema::Options sema_options;
    sema_options.debug = debug;
    sema_options.max_unroll = options.max_unroll.value_or(program::settings().max_unroll);
    return sema::analyze(source(), sema_options, types_);
}

const program::CompiledKernel& PyKernel::compiled(Variant variant) {
    auto& slot = variants_[variant.index()];
    if (slot) return *slot;
    parameters();
    auto module = analyze(variant.debug);
    program::CompileOptions compile_options;
    compile_options.debug = variant.debug;
    compile_options.fast_math = variant.fast_math;
    compile_options.line_info = variant.line_info;
    compile_options.dense = !variant.strided;
    compile_options.noalias = !variant.overlapping;
    compile_options.cache = program::settings().cache_kernels;
    compile_options.optimization_level = options.optimization_level.value_or(program::settings().optimization_level);
    compile_options.lanes = options.lanes.value_or(0);
    std::shared_ptr<const program::CompiledKernel> result;
    {
        nb::gil_scoped_release release;
        result = program::compile(std::move(module), compile_options);
    }
    slot = std::move(result);  // another thread may have been quicker; both are the same code
    return *slot;
}

std::string PyKernel::signature() {
    const bool generic = is_generic();
    const sema::FunctionSource& read = source();
    std::string text = key + "(";
    for (std::size_t i = 0; i < read.annotations.size(); ++i) {
        if (text.back() != '(') text += ", ";
        text += read.tree->parameters[i].name + ": ";
        text += generic ? python_name(read.annotations[i]) : parameters()[i].type.python_name();
    }
    return text + ")";
}

PyKernel* kernel_pointer(nb::handle object) {
    static PyTypeObject* type = reinterpret_cast<PyTypeObject*>(nb::type<PyKernel>().ptr());
    if (Py_TYPE(object.ptr()) != type && !nb::isinstance<PyKernel>(object)) return nullptr;
    return nb::inst_ready(object) ? nb::inst_ptr<PyKernel>(object) : nullptr;  // not after Kernel.__new__() alone
}

void bind_kernels(nb::module_& m) {
    nb::class_<PyKernel>(m, "Kernel", nb::dynamic_attr(), nb::is_weak_referenceable(),
                         "A function of the GPU-style kernel language, made by @wp.kernel and run by wp.launch().")
        .def(
            "__init__",
            [](PyKernel* self, nb::object function, std::string key, std::string module, bool enable_backward,
               std::optional<bool> debug, std::optional<bool> fast_math, std::optional<bool> line_info,
               std::optional<int> optimization_level, std::optional<int> max_unroll, std::optional<int> lanes) {
                new (self) PyKernel(
                    std::move(function), std::move(key), std::move(module),
                    KernelOptions{debug, fast_math, line_info, optimization_level, max_unroll, lanes, enable_backward});
            },
            nb::arg("function"), nb::arg("key"), nb::arg("module"), nb::arg("enable_backward") = true,
            nb::arg("debug") = nb::none(), nb::arg("fast_math") = nb::none(), nb::arg("line_info") = nb::none(),
            nb::arg("optimization_level") = nb::none(), nb::arg("max_unroll") = nb::none(),
            nb::arg("lanes") = nb::none())
        .def_ro("func", &PyKernel::function, "The Python function.")
        .def_ro("key", &PyKernel::key, "The kernel's name.")
        .def_ro("module", &PyKernel::module, "Name of the Python module that defined it.")
        .def_prop_ro("signature", &PyKernel::signature, "Name and parameters with their types.")
        .def_prop_ro(
            "is_generic", [](PyKernel& self) { return self.is_generic(); },
            "Whether some parameter is annotated with typing.Any or the like: launches run instances of the kernel.")
        .def("overload", &PyKernel::overload, nb::arg("types"),
             "The instance of a generic kernel for these types; wp.overload() calls it.")
        .def_prop_ro("enable_backward", [](const PyKernel& self) { return self.options.enable_backward; })
        .def(
            "compile",
            [](PyKernel& self) {
                const auto& compiled = self.compiled(self.configured());
                nb::dict report;
                report["milliseconds"] = compiled.compile_ms;
                report["from_cache"] = compiled.from_cache;
                report["lanes"] = compiled.description.lanes;
                nb::list remarks;
                for (const std::string& remark : compiled.description.remarks) remarks.append(remark.c_str());
                report["remarks"] = remarks;
                return report;
            },
            "Compiles the kernel now, where a launch would at its first run. Returns a dict: milliseconds, "
            "from_cache, lanes, remarks (why it was not vectorised, where it was not).")
        .def("listing", &listing, nb::arg("stage") = "ir",
             "The kernel after a stage of the compiler, as text: sema, ir, llvm, optimized_llvm or assembly.")
        .def("__repr__", [](const PyKernel& self) { return "<warp.Kernel " + self.module + "." + self.key + ">"; })
        .def("__call__", [](const PyKernel& self, nb::args, nb::kwargs) {
            throw UsageError(
                self.key + "()",
                "a kernel is not called but launched. help: wp.launch(" + self.key + ", dim=n, inputs=[...])",
                ErrorCategory::type);
        });
    bind_launch(m);
}

}  // namespace weft::bindings
