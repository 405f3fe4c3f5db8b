#include "bindings/kernels/kernel.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <bit>
#include <tuple>

#include "bindings/arrays/array_object.h"
#include "bindings/devices/device.h"
#include "bindings/values/types.h"
#include "frontend/frontend.h"
#include "ir/typing.h"
#include "jit/jit.h"
#include "runtime/cuda_devices.h"
#include "support/error.h"
#include "types/objects.h"

namespace weft::bindings {
namespace {

void add_textures(Type type, std::int64_t offset, std::vector<std::int64_t>& offsets) {
    if (!type.is_struct()) return;
    if (texture_dims(type) != 0) return offsets.push_back(offset);
    for (const Type::Field& field : type.fields()) add_textures(field.type, offset + field.offset, offsets);
}

ParameterPlan plan_parameter(std::string name, Type type, std::int64_t offset) {
    ParameterPlan plan;
    plan.name = std::move(name);
    plan.type = type;
    plan.offset = offset;
    add_textures(type, 0, plan.textures);
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

nb::bytes digest_bytes(const Digest& digest) { return nb::bytes(digest.bytes.data(), digest.bytes.size()); }

// The code of the kernel for wp.config and its options, or of its adjoint for all possible gradients. Either with
// tangents of all values that can have them; for a device, or for this processor.
std::string listing(PyKernel& kernel, const std::string& stage, bool line_info, bool adjoint, bool tangents,
                    nb::handle device) {
    constexpr std::pair<std::string_view, jit::Listing> kStages[] = {{"llvm", jit::Listing::llvm},
                                                                     {"optimized_llvm", jit::Listing::optimized_llvm},
                                                                     {"assembly", jit::Listing::assembly}};
    const auto which = std::ranges::find(kStages, stage, &std::pair<std::string_view, jit::Listing>::first);
    if (stage != "sema" && stage != "ir" && which == std::end(kStages)) {
        throw UsageError("Kernel.listing()",
                         "there is no stage '" + stage + "'; expected sema, ir, llvm, optimized_llvm or assembly",
                         ErrorCategory::value);
    }
    program::Kernel& core = kernel.core();
    program::Variant variant =
        device.is_none() ? core.configured() : core.configured(device_from_python(device, "Kernel.listing()"));
    variant.line_info |= line_info;
    if (stage == "sema") return ir::print(core.code(variant.debug).analysed());
    program::Derivation derivation;
    for (const Type type : core.types()) {
        const bool has_gradient = type.is_array() && ir::is_smooth(type.element());
        if (adjoint)
            derivation.gradients.push_back(has_gradient ? transform::Gradient::used : transform::Gradient::none);
        if (tangents) derivation.tangents.push_back(has_gradient || ir::is_smooth(type));
    }
    const program::CompileOptions options = core.compile_options(variant, {}, derivation);
    const auto transformed = core.code(variant.debug).transformed(options.passes());
    if (stage == "ir") return ir::print(*transformed->module);
    return jit::listing(*transformed->module, options.code(), which->second);
}

// The options that shape code, by the names of python/warp/_kernels/modules.py; missing ones are those of wp.config.
program::KernelOptions read_options(nb::dict given, const std::string& api = "kernel()") {
    program::KernelOptions options;
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
        else if (option == "fuse_fp")
            options.fuse_fp = flag();
        else if (option == "line_info")
            options.line_info = flag();
        else if (option == "launch_bounds")
            std::tie(options.most_threads, options.least_blocks) = nb::cast<std::pair<int, int>>(value);
        else if (option == "max_registers")
            options.max_registers = number(1, 255);
        else if (option == "cluster")
            options.cluster = number(1, 16);
        else if (option == "programmatic")
            options.programmatic = flag();
        else if (option == "external_parameters")
            options.external_parameters = flag();
        else if (option == "deterministic")
            options.deterministic = flag();
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

PyKernel::PyKernel(nb::object function, std::string key, nb::object module, program::KernelOptions options)
    : function(std::move(function)), key(std::move(key)), module(std::move(module)), options(options) {}

void PyKernel::read_early() { source_ = frontend::read_when_declared(function); }

const sema::FunctionSource& PyKernel::source() {
    if (!source_) source_ = frontend::read_function(function);
    return *source_;
}

void PyKernel::read_parameters() {
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
    auto core = std::make_unique<program::Kernel>(key, source_, std::move(types), options, blocks_);
    std::vector<ParameterPlan> plans;
    for (std::size_t i = 0; i < core->types().size(); ++i)
        plans.push_back(plan_parameter(read.tree->parameters[i].name, core->types()[i], core->layout().offsets[i]));
    parameters_ = std::move(plans);
    differentiable_ = std::make_unique<program::JitKernel>(*core);
    core_ = std::move(core);
    redefinitions_ = frontend::function_redefinitions();
}

void PyKernel::update_core() {
    parameters();
    if (redefinitions_ == frontend::function_redefinitions()) return;
    redefinitions_ = frontend::function_redefinitions();
    core_->forget();
}

void PyKernel::set_options(const program::KernelOptions& changed) {
    options = changed;
    if (core_) core_->set_options(changed);
    for (const auto& [types, made] : instances_) kernel_pointer(made)->set_options(changed);
    for (const auto& [blocks, made] : blocked_) kernel_pointer(made)->set_options(changed);
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
        nb::arg("options"), nb::arg("api"), "Raises UsageError, in the name of `api`, if an option has no such value.");
    nb::class_<PyKernel>(m, "Kernel", nb::dynamic_attr(), nb::is_weak_referenceable(),
                         "A function of the GPU-style kernel language, made by @wp.kernel and run by wp.launch().")
        .def(
            "__init__",
            [](nb::pointer_and_handle<PyKernel> self, nb::object func, nb::object key, nb::object module,
               nb::object options, nb::object code_transformers, nb::object source) {
                // python/warp/_kernels/kernels.py documents the arguments, and enters the kernel into its module.
                static PyObject* kernels = nullptr;
                const nb::object plan = function_of("warp._kernels.kernels", kernels, "plan_kernel")(
                    func, key, module, options, code_transformers, source);
                new (self.p) PyKernel(plan[0], nb::cast<std::string>(plan[1]), plan[3],
                                      read_options(nb::cast<nb::dict>(plan[4])));
                self.p->read_early();
                self.p->module_key = nb::cast<std::string>(plan[2]);
                function_of("warp._kernels.kernels", kernels, "enter_kernel")(self.h, plan);
            },
            nb::arg("func"), nb::arg("key") = nb::none(), nb::arg("module") = nb::none(),
            nb::arg("options") = nb::none(), nb::arg("code_transformers") = nb::none(), nb::arg("source") = nb::none(),
            "A kernel of a Python function, without the decorator.\n\n"
            "Args:\n"
            "    func: the function.\n"
            "    key: the kernel's name in its module; by default made from the function's.\n"
            "    module: a wp.Module, or its name; by default that of the function.\n"
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
            nb::arg("arg_types"), "The instance of a generic kernel for these types, made if it is new.")
        .def("get_overload", &PyKernel::find_overload, nb::arg("arg_types"),
             "The instance of a generic kernel for these types, or None if none has been made.")
        .def(
            "infer_argument_types",
            [](PyKernel& self, nb::sequence arguments) {
                const nb::list given(arguments);
                std::vector<PyObject*> values;
                for (nb::handle value : given) values.push_back(value.ptr());
                return self.argument_types(values);
            },
            nb::arg("args"), "The types that the parameters have in a launch with these arguments: a list.")
        .def_prop_rw(
            "hash",
            [](PyKernel& self) -> nb::object {
                if (self.given_hash.is_valid()) return self.given_hash;
                if (!self.knows_hash()) return nb::none();
                return digest_bytes(self.core().hash());
            },
            [](PyKernel& self, nb::object hash) { self.given_hash = std::move(hash); }, nb::arg("hash").none(),
            "A digest of all that decides the machine code, as bytes; None while it is not known. A program may set "
            "it; "
            "this has no effect."
            "")
        .def(
            "_content_hash", [](PyKernel& self) { return digest_bytes(self.core().hash()); },
            "The same; analyses the kernel if it has not been compiled.")
        .def_ro("func", &PyKernel::function, "The Python function.")
        .def_rw("key", &PyKernel::module_key, "The kernel's name in its module. Another one can be set.")
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
            [](PyKernel& self, nb::handle on) {
                runtime::Device& device = device_from_python(on, "Kernel.compile()");
                const auto& compiled = self.core().compiled(self.core().configured(device));
                nb::dict report;
                report["milliseconds"] = compiled.compile_ms;
                report["from_cache"] = compiled.cache == program::CompiledKernel::Cache::found;
                report["shared"] = self.core().was_shared();
                report["lanes"] = compiled.description.lanes();
                nb::list remarks;
                for (const std::string& remark : compiled.remarks) remarks.append(remark.c_str());
                report["remarks"] = remarks;
                const auto executable = compiled.executable;  // `compiled` may move while others run
                const runtime::LoadedKernel& loaded = *compiled.loaded;
                {
                    const nb::gil_scoped_release without;  // drivers compile PTX here
                    loaded.prepare(device);
                }
                return report;
            },
            nb::arg("device") = nb::none(),
            "Compiles the kernel for a device and loads it there, as its first launch would; by default for the "
            "default device. Returns a dict: milliseconds, from_cache, shared (with another "
            "closure of the same function), lanes, remarks (the reasons if it was not vectorised).")
        .def(
            "suggested_block",
            [](PyKernel& self, nb::handle on) {
                runtime::Device& device = device_from_python(on, "get_suggested_block_size()");
                return self.core().compiled(self.core().configured(device)).loaded->max_occupancy_block(device);
            },
            nb::arg("device"),
            "The block size that suits the kernel on a CUDA device, and the least number of blocks that fill it: for "
            "wp.get_suggested_block_size().")
        .def(
            "compiled_on",
            [](PyKernel& self) {
                nb::list devices;
                if (self.is_generic()) {
                    for (nb::handle instance : self.instances())
                        for (nb::handle device : nb::list(instance.attr("compiled_on")()))
                            if (!nb::cast<bool>(devices.attr("__contains__")(device))) devices.append(device);
                    return devices;
                }
                if (!self.knows_hash()) return devices;
                for (const int gpu : self.core().compiled_for())
                    devices.append(device_to_python(gpu > 0 ? runtime::cuda_device(gpu - 1) : runtime::host_device()));
                return devices;
            },
            "The devices for which the kernel, or an instance of it, has been compiled: a list. All CPUs are one.")
        .def(
            "thread_needs",
            [](PyKernel& self, nb::handle on) {
                runtime::Device& device = device_from_python(on, "get_cuda_kernel_properties()");
                return self.core().compiled(self.core().configured(device)).loaded->thread_needs(device);
            },
            nb::arg("device"), "Registers, and bytes of local memory, of a thread on a CUDA device.")
        .def(
            "most_clustered",
            [](PyKernel& self, nb::handle on, int threads, int shared_bytes) {
                runtime::Device& device = device_from_python(on, "get_cuda_max_cluster_dim()");
                return self.core()
                    .compiled(self.core().configured(device))
                    .loaded->most_clustered(device, threads, shared_bytes);
            },
            nb::arg("device"), nb::arg("threads"), nb::arg("shared_bytes"),
            "The most blocks of a cluster of the kernel on a device; 1 if it has no clusters.")
        .def(
            "listing", &listing, nb::arg("stage") = "ir", nb::arg("line_info") = false, nb::arg("adjoint") = false,
            nb::arg("tangents") = false, nb::arg("device") = nb::none(),
            "The kernel after a stage of the compiler, as text: sema, ir, llvm, optimized_llvm or assembly (PTX for a "
            "CUDA device), with debug information where asked for. `adjoint` shows the kernel that carries gradients "
            "back, for gradients of all "
            "arrays of floats; `tangents` forward mode, of the kernel or of that adjoint. wp.inspect() shows it beside "
            "the source.")
        .def(
            "_result_of",
            [](PyKernel& self, const std::string& name) -> nb::object {
                const ir::Function* function = self.core().code(false).analysed().find(name);
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
        .def("__getitem__",
             [](const PyKernel& self, nb::handle dim) {
                 static PyObject* kernels = nullptr;
                 function_of("warp._kernels.kernels", kernels, "refuse_brackets")(self.key, dim);
             })
        .def("__call__", [](const PyKernel& self, nb::args, nb::kwargs) {
            static PyObject* kernels = nullptr;
            function_of("warp._kernels.kernels", kernels, "refuse_call")(self.key);
        });
}

}  // namespace weft::bindings
