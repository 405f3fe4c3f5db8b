#include "bindings/kernel.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <bit>
#include <cstdio>

#include "bindings/array_object.h"
#include "bindings/log.h"
#include "bindings/types.h"
#include "frontend/frontend.h"
#include "jit/cache.h"
#include "jit/jit.h"
#include "program/reuse.h"
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

nb::bytes digest_bytes(const Digest& digest) {
    return nb::bytes(digest.bytes.data(), digest.bytes.size());
}

// What happened, and why lanes are slower than they could be; where the work is for nothing, a warning, once.
void log_compile(const program::CompiledKernel& compiled) {
    using Cache = program::CompiledKernel::Cache;
    const KernelEntry& entry = compiled.description;
    if (is_logged(LogLevel::debug)) {
        char took[32];
        std::snprintf(took, sizeof took, "%.1f ms", compiled.compile_ms);
        log(LogLevel::debug, "kernel '" + entry.name + "' " +
                                 (compiled.cache == Cache::found ? "loaded from the cache" : "compiled") + " in " +
                                 took + ", " + std::to_string(entry.lanes) + (entry.lanes == 1 ? " lane" : " lanes"));
    }
    for (const std::string& remark : compiled.remarks) log(LogLevel::debug, "kernel '" + entry.name + "': " + remark);
    static bool has_warned = false;
    if (compiled.cache == Cache::refused && !has_warned) {
        has_warned = true;
        log(LogLevel::warning, "the folder of the kernel cache, " +
                                   jit::cache_folder(program::settings().cache_folder).string() +
                                   ", cannot be written: every process compiles its kernels anew. help: set "
                                   "wp.config.kernel_cache_dir or the environment variable WARP_CACHE_PATH");
    }
}

// A copy of the module with all passes run: what the listings show.
std::unique_ptr<ir::Module> lowered(PyKernel& kernel, Variant variant) {
    auto module = kernel.analyze(variant.debug);
    transform::PipelineOptions options;
    options.shares = !variant.debug && kernel.options.lanes.value_or(0) <= 1;
    transform::run_pipeline(*module, options);
    return module;
}

std::string listing(PyKernel& kernel, const std::string& stage, bool line_info) {
    Variant variant = kernel.configured();
    if (stage == "sema") return ir::print(*kernel.analyze(variant.debug));
    if (stage == "ir") return ir::print(*lowered(kernel, variant));
    jit::Options options;
    options.codegen.debug = variant.debug;
    options.codegen.fast_math = variant.fast_math;
    options.codegen.line_info = variant.line_info || line_info;
    options.optimization_level = kernel.optimization_level(variant);
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

// The options that shape code, by the names that python/warp/modules.py gives them; what is missing is as wp.config
// says.
KernelOptions read_options(nb::dict given, const std::string& api = "kernel()") {
    KernelOptions options;
    for (auto [name, value] : given) {
        const std::string option = nb::str(name).c_str();
        const auto number = [&](int low, int high) {
            int result = 0;
            if (!nb::try_cast(value, result) || result < low || result > high) {
                throw UsageError(api,
                                 option + " is " + std::string(nb::repr(value).c_str()) + ", expected an int from " +
                                     std::to_string(low) + " to " + std::to_string(high),
                                 ErrorCategory::value);
            }
            return result;
        };
        const auto flag = [&] {
            if (!PyBool_Check(value.ptr())) {
                throw UsageError(api,
                                 option + " is " + std::string(nb::repr(value).c_str()) + ", expected True or False",
                                 ErrorCategory::type);
            }
            return value.is(Py_True);
        };
        if (option == "debug")
            options.debug = flag();
        else if (option == "fast_math")
            options.fast_math = flag();
        else if (option == "line_info")
            options.line_info = flag();
        else if (option == "enable_backward")
            options.enable_backward = flag();
        else if (option == "optimization_level")
            options.optimization_level = number(0, 3);
        else if (option == "max_unroll")
            options.max_unroll = number(0, 1 << 20);
        else if (option == "lanes") {
            options.lanes = number(1, 64);
            if (!std::has_single_bit(static_cast<unsigned>(*options.lanes))) {
                throw UsageError(api, "lanes is " + std::to_string(*options.lanes) + ", expected a power of two",
                                 ErrorCategory::value);
            }
        } else
            throw InternalError("kernels have no option '" + option + "'");
    }
    return options;
}

}  // namespace

PyKernel::PyKernel(nb::object function, std::string key, nb::object module, KernelOptions options)
    : function(std::move(function)), key(std::move(key)), module(std::move(module)), options(options) {}

void PyKernel::read_early() { source_ = frontend::read_when_declared(function); }

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
    arrays_ = program::array_places(layout, types);
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
    variant.line_info = options.line_info.value_or(settings.line_info || variant.debug);
    variant.finite = settings.verify_fp;
    variant.serial = settings.serial || variant.debug;
    return variant;
}

int PyKernel::optimization_level(Variant variant) const {
    if (options.optimization_level) return *options.optimization_level;
    return program::settings().optimization_level.value_or(variant.debug ? 0 : 3);
}

sema::Options PyKernel::sema_options(bool debug) const {
    sema::Options result;
    result.debug = debug;
    result.max_unroll = options.max_unroll.value_or(program::settings().max_unroll);
    return result;
}

program::CompileOptions PyKernel::compile_options(Variant variant) const {
    program::CompileOptions result;
    result.debug = variant.debug;
    result.fast_math = variant.fast_math;
    result.line_info = variant.line_info;
    result.dense = !variant.strided;
    result.noalias = !variant.overlapping;
    result.distinct = !variant.repeating;
    result.record = variant.records;
    result.finite = variant.finite;
    result.exclusive = variant.exclusive;
    result.launch_rank = variant.launch_rank;
    result.null_arrays = variant.nulls;
    result.serial = variant.serial;
    result.short_rows = variant.short_rows;
    result.cache = program::settings().cache_kernels;
    result.trail_bytes = program::settings().gradient_loop_bytes;
    result.cache_folder = program::settings().cache_folder;
    result.host_compiler = program::settings().host_compiler;
    result.optimization_level = optimization_level(variant);
    result.lanes = variant.single ? 1 : options.lanes.value_or(0);
    return result;
}

std::unique_ptr<ir::Module> PyKernel::analyze(bool debug) {
    parameters();
    return sema::analyze(source(), sema_options(debug), types_);
}

// Everything of the analysed kernel, and the options that shape code: but not its name, nor where it stands.
Digest PyKernel::hash_of(const ir::Module& module) const {
    const program::CompileOptions shaping = compile_options(configured());
    std::string text = ir::print(module, /*names=*/false);
    for (const int option :
         {static_cast<int>(shaping.debug), static_cast<int>(shaping.fast_math), static_cast<int>(shaping.line_info),
          shaping.optimization_level, shaping.lanes, static_cast<int>(options.enable_backward)})
        text += "\n" + std::to_string(option);
    return jit::hash_bytes(text);
}

Digest PyKernel::hash() {
    follow_redefinitions();
    if (compiled_hash_) return *compiled_hash_;
    const Digest digest = hash_of(*analyze(configured().debug));
    keeps_hash_ = true;
    return digest;
}

void PyKernel::forget_variants() {
    compiled_hash_.reset();
    for (auto& [index, variant] : variants_) retired_.push_back(std::move(variant));
    variants_.clear();
    tid_rank_ = -1;
    for (auto& [key, adjoint] : adjoints_)
        if (adjoint.compiled) retired_.push_back(std::move(adjoint.compiled));
    adjoints_.clear();
    for (auto& [key, compiled] : with_tangents_) retired_.push_back(std::move(compiled));
    with_tangents_.clear();
}

void PyKernel::set_options(const KernelOptions& changed) {
    options = changed;
    forget_variants();
    for (const auto& [types, made] : instances_) kernel_pointer(made)->set_options(changed);
}

void PyKernel::follow_redefinitions() {
    if (redefinitions_ == frontend::function_redefinitions()) return;
    redefinitions_ = frontend::function_redefinitions();
    forget_variants();
}

const program::CompiledKernel& PyKernel::newly_compiled(Variant variant) {
    const std::size_t index = variant.index();
    if (tid_rank_ >= 0) {  // launches of another rank may be served by the same code
        const int rank = transform::fitted_rank(tid_rank_, variant.launch_rank);
        Variant other = variant;
        for (const auto& [at, compiled] : std::vector(variants_)) {
            other.launch_rank = Variant::launch_rank_in(at);
            if (at != other.index() || transform::fitted_rank(tid_rank_, other.launch_rank) != rank) continue;
            variants_.emplace_back(index, compiled);
            return *compiled;
        }
    }
    if (variant.short_rows) {  // code for one lane serves rows of any length
        Variant other = variant;
        other.short_rows = false;
        for (const auto& [at, compiled] : std::vector(variants_)) {
            if (at != other.index() || compiled->description.lanes != 1) continue;
            variants_.emplace_back(index, compiled);
            return *compiled;
        }
    }
    auto result = compile(variant, compile_options(variant));
    for (const auto& [at, quicker] : variants_)
        if (at == index) return *quicker;  // compiled by another thread, which may be running its code
    return *variants_.emplace_back(index, std::move(result)).second;
}

// A closure of the same factory may have been compiled with the same captured values.
std::shared_ptr<const program::CompiledKernel> PyKernel::compile(Variant variant,
                                                                 const program::CompileOptions& options) {
    parameters();
    const sema::Options analysis = sema_options(variant.debug);
    // First as for a launch with as many dimensions as names, which most are.
    program::CompileOptions usual = options;
    usual.launch_rank = 0;
    std::string key = program::reuse_key(*source_, types_, analysis, usual);
    std::shared_ptr<const program::CompiledKernel> result = program::find_compiled(source_, key);
    const auto is_usual = [&](int names) { return transform::fitted_rank(names, options.launch_rank) == names; };
    if (!result || !is_usual(result->description.tid_rank)) {
        const std::string other = program::reuse_key(*source_, types_, analysis, options);
        result = program::find_compiled(source_, other);
    }
    was_shared_ = result != nullptr;
    if (result) {
        if (keeps_hash_ && !compiled_hash_) compiled_hash_ = hash_of(*analyze(variant.debug));
        return result;
    }
    program::Recording recording(source_);
    auto module = sema::analyze(recording.kernel(), analysis, types_);
    if (keeps_hash_ && !compiled_hash_) compiled_hash_ = hash_of(*module);
    tid_rank_ = module->functions.front()->tid_rank;
    if (!is_usual(tid_rank_)) key = program::reuse_key(*source_, types_, analysis, options);
    {
        nb::gil_scoped_release release;
        result = program::compile(std::move(module), options);
    }
    recording.remember(key, result);
    log_compile(*result);
    return result;
}

void PyKernel::check_backward() const {
    if (options.enable_backward) return;
    throw UsageError("kernel '" + key + "'",
                     "was declared with enable_backward=False, and a gradient is asked for. help: leave "
                     "enable_backward out, or do not record it: wp.launch(..., record_tape=False)");
}

PyKernel::Adjoint& PyKernel::adjoint_slot(Variant variant, const std::vector<transform::Gradient>& gradients) {
    follow_redefinitions();
    check_backward();
    return adjoints_[{variant.index(), program::settings().gradient_loop_bytes, gradients}];
}

const program::CompiledKernel& PyKernel::adjoint(Variant variant, const std::vector<transform::Gradient>& gradients) {
    Adjoint& slot = adjoint_slot(variant, gradients);
    if (slot.compiled) return *slot.compiled;
    program::CompileOptions options = compile_options(variant);
    options.gradients = gradients;
    auto result = compile(variant, options);
    Adjoint& after = adjoint_slot(variant, gradients);  // compiling lets other threads run
    if (!after.compiled) after.compiled = std::move(result);
    return *after.compiled;
}

const program::CompiledKernel& PyKernel::with_tangents(Variant variant,
                                                       const std::vector<transform::Gradient>& gradients,
                                                       const std::vector<bool>& tangents) {
    follow_redefinitions();
    if (!gradients.empty()) check_backward();
    const auto key = std::make_tuple(variant.index(), program::settings().gradient_loop_bytes, gradients, tangents);
    if (const auto found = with_tangents_.find(key); found != with_tangents_.end()) return *found->second;
    program::CompileOptions options = compile_options(variant);
    options.gradients = gradients;
    options.tangents = tangents;
    auto result = compile(variant, options);
    return *with_tangents_.emplace(key, std::move(result)).first->second;
}

const program::AdjointReads& PyKernel::adjoint_reads(Variant variant,
                                                     const std::vector<transform::Gradient>& gradients) {
    Adjoint& slot = adjoint_slot(variant, gradients);
    if (!slot.reads) {
        program::CompileOptions options = compile_options(variant);
        options.gradients = gradients;
        slot.reads = program::adjoint_reads(analyze(variant.debug), options);
    }
    return *slot.reads;
}

nb::list PyKernel::instances() const {
    nb::list result;
    for (const auto& [types, made] : instances_) result.append(made);
    return result;
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
    m.def(
        "check_kernel_options", [](nb::dict options, const std::string& api) { read_options(options, api); },
        nb::arg("options"), nb::arg("api"),
        "Raises UsageError, in the name of `api`, where an option has no such value.");
    nb::class_<PyKernel>(m, "Kernel", nb::dynamic_attr(), nb::is_weak_referenceable(),
                         "A function of the GPU-style kernel language, made by @wp.kernel and run by wp.launch().")
        .def(
            "__init__",
            [](nb::pointer_and_handle<PyKernel> self, nb::object func, nb::object key, nb::object module,
               nb::object options, nb::object code_transformers, nb::object source) {
                // python/warp/kernels.py says what the arguments mean, and enters the kernel into its module.
                static PyObject* kernels = nullptr;
                const nb::object plan = function_of("warp.kernels", kernels, "plan_kernel")(
                    func, key, module, options, code_transformers, source);
                new (self.p) PyKernel(plan[0], nb::cast<std::string>(plan[1]), plan[3],
                                      read_options(nb::cast<nb::dict>(plan[4])));
                self.p->read_early();
                self.p->module_key = nb::cast<std::string>(plan[2]);
                function_of("warp.kernels", kernels, "enter_kernel")(self.h, plan);
            },
            nb::arg("func"), nb::arg("key") = nb::none(), nb::arg("module") = nb::none(),
            nb::arg("options") = nb::none(), nb::arg("code_transformers") = nb::none(),
            nb::arg("source") = nb::none(),
            "A kernel of a Python function, without the decorator.\n\n"
            "Args:\n"
            "    func: the function.\n"
            "    key: the kernel's name in its module; made from the function's where it is None.\n"
            "    module: a wp.Module, or its name; that of the function where it is None.\n"
            "    options: options of the kernel itself, a dict.\n"
            "    code_transformers, source: not supported; None.")
        .def(
            "set_options", [](PyKernel& self, nb::dict options) { self.set_options(read_options(options)); },
            nb::arg("options"),
            "Replaces the options of the kernel and its instances; wp.set_module_options() calls it.")
        .def_prop_ro("instances", &PyKernel::instances, "The instances of a generic kernel made so far, oldest first.")
        .def_prop_ro(
            "overloads",
            [](const PyKernel& self) {
                nb::dict result;
                for (nb::handle made : self.instances())
                    result[nb::str(kernel_pointer(made)->signature().c_str())] = made;
                return result;
            },
            "The instances of a generic kernel made so far, by their signatures.")
        .def(
            "add_overload",
            [](nb::handle self, nb::handle types) {
                PyKernel& kernel = *kernel_pointer(self);
                return kernel.is_generic() ? kernel.overload(types) : nb::borrow(self);
            },
            nb::arg("arg_types"), "The instance of a generic kernel for these types, made where it is new.")
        .def("get_overload", &PyKernel::find_overload, nb::arg("arg_types"),
             "The instance of a generic kernel for these types, or None where none has been made.")
        .def(
            "infer_argument_types",
            [](PyKernel& self, nb::sequence arguments) {
                const nb::list given(arguments);
                std::vector<PyObject*> values;
                for (nb::handle value : given) values.push_back(value.ptr());
                return self.argument_types(values);
            },
            nb::arg("args"), "The types that the parameters have in a launch with these arguments: a list.")
        .def_prop_ro(
            "hash",
            [](PyKernel& self) -> nb::object {
                if (!self.knows_hash()) return nb::none();
                return digest_bytes(self.hash());
            },
            "Tells what the kernel compiles to, as bytes; None while it is not known.")
        .def(
            "_content_hash", [](PyKernel& self) { return digest_bytes(self.hash()); },
            "The same, analysing the kernel where it has not been compiled.")
        .def_ro("func", &PyKernel::function, "The Python function.")
        .def_ro("key", &PyKernel::module_key, "The kernel's name in its module.")
        .def_ro("module", &PyKernel::module, "The wp.Module that it belongs to.")
        .def_prop_ro("signature", &PyKernel::signature, "Name and parameters with their types.")
        .def_prop_ro(
            "is_generic", [](PyKernel& self) { return self.is_generic(); },
            "Whether some parameter is annotated with typing.Any or the like: launches run instances of the kernel.")
        .def("overload", &PyKernel::overload, nb::arg("types"),
             "The instance of a generic kernel for these types; wp.overload() calls it.")
        .def_prop_ro(
            "enable_backward", [](const PyKernel& self) { return self.options.enable_backward; },
            "Whether gradients of the kernel may be asked for.")
        .def(
            "compile",
            [](PyKernel& self) {
                const auto& compiled = self.compiled(self.configured());
                nb::dict report;
                report["milliseconds"] = compiled.compile_ms;
                report["from_cache"] = compiled.cache == program::CompiledKernel::Cache::found;
                report["shared"] = self.was_shared();
                report["lanes"] = compiled.description.lanes;
                nb::list remarks;
                for (const std::string& remark : compiled.remarks) remarks.append(remark.c_str());
                report["remarks"] = remarks;
                return report;
            },
            "Compiles the kernel now, where a launch would at its first run. Returns a dict: milliseconds, "
            "from_cache, shared (with another closure of the same function), lanes, remarks (why it was not "
            "vectorised, where it was not).")
        .def(
            "listing", &listing, nb::arg("stage") = "ir", nb::arg("line_info") = false,
            "The kernel after a stage of the compiler, as text: sema, ir, llvm, optimized_llvm or assembly, with debug "
            "information where asked for. wp.inspect() shows it beside the source.")
        .def(
            "_result_of",
            [](PyKernel& self, const std::string& name) -> nb::object {
                auto module = self.analyze(false);
                const ir::Function* function = module->find(name);
                if (!function || function->result.is_none()) return nb::none();
                if (!function->result.is_tuple()) return dtype_to_python(function->result);
                nb::list types;
                for (Type type : function->result.elements()) types.append(dtype_to_python(type));
                return nb::tuple(types);
            },
            nb::arg("name"), "The dtype that a @wp.func returns here, a tuple of several, or None: for wp.map.")
        .def("__repr__",
             [](const PyKernel& self) {
                 return "<warp.Kernel " + std::string(nb::str(nb::getattr(self.module, "name", self.module)).c_str()) +
                        "." + self.key + ">";
             })
        .def("__call__", [](const PyKernel& self, nb::args, nb::kwargs) {
            static PyObject* kernels = nullptr;
            function_of("warp.kernels", kernels, "refuse_call")(self.key);
        });
    bind_launch(m);
}

}  // namespace weft::bindings
