// wp.config for C++: one setter per option that the compiler or the runtime reads.
#include "bindings/kernels/settings.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <limits>

#include "bindings/python/log.h"
#include "bindings/values/values.h"
#include "jit/disk_cache.h"
#include "jit/jit.h"
#include "program/host/settings.h"
#include "program/kernel/disk_image_cache.h"
#include "program/kernel/ptx_library.h"
#include "runtime/cpu/accesses.h"
#include "runtime/cpu/code_listeners.h"
#include "runtime/cpu/thread_pool.h"
#include "runtime/cublas.h"
#include "runtime/memory_pool.h"
#include "runtime/verify.h"
#include "support/error.h"

namespace weft::bindings {
namespace {

// True and False, NumPy's too, and 1 and 0; the truth of a string such as "no" would be an accident.
bool as_bool(nb::handle value, const std::string& option) {
    Number number;
    Scalar from;
    if (!read_number(value, number, from) || number.is_float || (number.i != 0 && number.i != 1)) {
        throw UsageError("config." + option, "is " + std::string(nb::repr(value).c_str()) + ", expected True or False",
                         ErrorCategory::type);
    }
    return number.i == 1;
}

template <class Int>
Int as_int(nb::handle value, const std::string& option, Int low, Int high) {
    Int number = 0;
    if (!nb::try_cast(value, number) || number < low || number > high) {
        throw UsageError("config." + option,
                         "is " + std::string(nb::repr(value).c_str()) + ", expected an int from " +
                             std::to_string(low) + " to " + std::to_string(high),
                         ErrorCategory::value);
    }
    return number;
}

constexpr int kDebug = static_cast<int>(LogLevel::debug), kInfo = static_cast<int>(LogLevel::info),
              kWarning = static_cast<int>(LogLevel::warning);

// Any int: numbers between the four levels, or beyond them, are levels too.
int as_log_level(nb::handle value) {
    int level = 0;
    if (PyBool_Check(value.ptr()) || !nb::try_cast(value, level)) {
        throw UsageError("config.log_level",
                         "is " + std::string(nb::repr(value).c_str()) +
                             ", expected an int: wp.LOG_DEBUG, wp.LOG_INFO, wp.LOG_WARNING or wp.LOG_ERROR",
                         ErrorCategory::value);
    }
    return level;
}

std::string as_path(nb::handle value, const std::string& option, const std::string& expected) {
    nb::object path = nb::steal(PyOS_FSPath(value.ptr()));
    if (!path.is_valid()) PyErr_Clear();
    std::string text;
    if (!path.is_valid() || !nb::try_cast(path, text) || text.empty()) {
        throw UsageError("config." + option,
                         "is " + std::string(nb::repr(value).c_str()) + ", expected " + expected + " or None",
                         ErrorCategory::type);
    }
    return text;
}

runtime::PerfFormat as_perf_format(nb::handle value) {
    std::string format;
    if (value.is_none()) return runtime::PerfFormat::none;
    if (nb::try_cast(value, format) && format == "map") return runtime::PerfFormat::map;
    if (nb::try_cast(value, format) && format == "jitdump") return runtime::PerfFormat::jitdump;
    throw UsageError("config.perf",
                     "is " + std::string(nb::repr(value).c_str()) + ", expected \"map\", \"jitdump\" or None",
                     ErrorCategory::value);
}

// Checks the value of any option, and passes it to the part of the C++ side that reads it.
void set_option(const std::string& name, nb::handle value) {
    program::Settings& settings = program::settings();
    if (name == "mode") {
        std::string mode;
        if (!nb::try_cast(value, mode) || (mode != "debug" && mode != "release" && mode != "check")) {
            throw UsageError(
                "config.mode",
                "is " + std::string(nb::repr(value).c_str()) + ", expected \"release\", \"debug\" or \"check\"",
                ErrorCategory::value);
        }
        settings.debug = mode != "release";
        settings.notes_accesses = mode == "check";
        runtime::mark_new_memory(settings.notes_accesses);
    } else if (name == "fast_math") {
        settings.fast_math = as_bool(value, name);
    } else if (name == "lineinfo") {
        settings.line_info = as_bool(value, name);
    } else if (name == "cache_kernels") {
        settings.cache_kernels = as_bool(value, name);
    } else if (name == "perf") {
        runtime::set_perf_format(as_perf_format(value));
    } else if (name == "print_launches") {
        settings.print_launches = as_bool(value, name);
    } else if (name == "log_level") {
        settings.log_level = as_log_level(value);
    } else if (name == "verbose") {
        // Older names for the ends of the scale: each moves the level only as far as its meaning requires.
        const bool verbose = as_bool(value, name);
        if (verbose || settings.log_level <= kDebug) settings.log_level = verbose ? kDebug : kInfo;
    } else if (name == "quiet") {
        const bool quiet = as_bool(value, name);
        settings.log_level = quiet ? std::max(settings.log_level, kWarning) : std::min(settings.log_level, kInfo);
    } else if (name == "optimization_level") {
        std::optional<int> level;
        if (!value.is_none()) level = as_int(value, name, 0, 3);
        settings.optimization_level = level;
    } else if (name == "enable_cpu_blocks") {
        settings.enable_cpu_blocks = as_bool(value, name);
    } else if (name == "max_unroll") {
        settings.max_unroll = as_int(value, name, 0, 1 << 20);
    } else if (name == "gradient_loop_bytes") {
        settings.gradient_loop_bytes = as_int(value, name, 1, std::numeric_limits<int>::max());
    } else if (name == "gradient_log_bytes") {
        settings.gradient_log_bytes = as_int(value, name, std::int64_t{1}, std::int64_t{1} << 62);
    } else if (name == "kernel_cache_dir") {
        settings.cache_folder = value.is_none() ? std::string() : as_path(value, name, "the path of a folder");
    } else if (name == "cpu_threads") {
        if (!value.is_none()) runtime::set_cpu_threads(as_int(value, name, 1, 4096));
    } else if (name == "legacy_scalar_return_types") {
        settings.legacy_scalar_return_types = as_bool(value, name);
    } else if (name == "verify_cuda") {
        runtime::set_verify_cuda(!value.is_none() && as_bool(value, name));
    } else if (name == "use_cublas") {
        runtime::set_cublas(as_bool(value, name));
    } else if (name == "verify_fp") {
        settings.verify_fp = as_bool(value, name);
    } else if (name == "deterministic") {
        settings.deterministic = as_bool(value, name);
    } else if (name == "serial") {
        settings.serial = as_bool(value, name);
    } else if (name == "enable_mempools_at_init") {
        runtime::set_pools_at_init(as_bool(value, name));
    } else if (name == "launch_array_access_mode") {
        runtime::set_only_own_arrays(as_bool(value, name));
    } else if (name == "host_compiler") {
        settings.host_compiler = value.is_none() ? std::string() : as_path(value, name, "the name or path of a clang");
    } else {
        throw InternalError("the runtime reads no option '" + name + "'");
    }
}

nb::dict build_info() {
    const codegen::TargetInfo target = jit::describe(jit::host_target());
    nb::dict info;
    info["version"] = WEFT_VERSION;
    info["llvm"] = WEFT_LLVM_VERSION;
    info["triple"] = target.triple;
    info["cpu"] = target.processor;
    info["features"] = target.features;
    info["vector_bits"] = target.vector_bits;
    info["threads"] = runtime::cpu_threads();
    info["cache_folder"] = jit::cache_folder(program::settings().cache_folder).string();
    return info;
}

}  // namespace

void bind_settings(nb::module_& m) {
    program::cache_driver_images();
    program::compile_ptx_in_library();
    m.def("set_option", &set_option, nb::arg("name"), nb::arg("value").none());
    m.def("log_level", [] { return program::settings().log_level; }, "The value of wp.config.log_level.");
    m.def("build_info", &build_info, "Versions, processor, vector width, threads and cache folder, as a dict.");
    m.def(
        "clear_kernel_cache", [] { jit::DiskCache(jit::cache_folder(program::settings().cache_folder)).clear(); },
        "Removes every compiled kernel from the disk cache.");
}

}  // namespace weft::bindings
