// Pools, access between GPUs, the driver's version: python/warp/_devices/cuda.py has the functions on them.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "bindings/arrays/array_object.h"
#include "bindings/python/device.h"
#include "bindings/python/lock.h"
#include "jit/jit.h"
#include "runtime/out_of_memory.h"
#include "runtime/pool.h"
#include "support/error.h"

namespace weft::bindings {
namespace {

using runtime::Device;
using runtime::MemoryOf;

runtime::Pool& pool_of(nb::handle device, const char* api) {
    Device& of = device_from_python(device, api);
    if (runtime::Pool* const pool = of.pool()) return *pool;
    throw UsageError(api, "memory pools are of CUDA devices, and the CPU is none", ErrorCategory::value);
}

// Without memory Python gives back what only cycles of its objects keep. Any thread may ask.
void collect_garbage() {
    if (!Py_IsInitialized()) return;
    const PythonLock lock;
    try {
        nb::module_::import_("gc").attr("collect")();  // where it is switched off, too
    } catch (nb::python_error& error) {
        error.discard_as_unraisable("the collection of garbage for memory of a device");
    }
}

MemoryOf kind_of(bool of_pool) { return of_pool ? MemoryOf::pool : MemoryOf::plain; }

}  // namespace

void bind_memory(nb::module_& m) {
    runtime::set_memory_collector(&collect_garbage);
    nb::module_ memory = m.def_submodule("memory");
    memory.def("driver_version", []() -> std::optional<std::pair<int, int>> {
        const int version = runtime::cuda_driver_version();
        if (version == 0) return std::nullopt;
        return std::pair(version / 1000, version % 1000 / 10);
    });
    memory.def("supported_archs",
               [] { return runtime::cuda_devices().empty() ? std::vector<int>() : jit::cuda_architectures(); });
    memory.def("set_pool_enabled",
               [](nb::handle device, bool enable) { pool_of(device, "set_mempool_enabled()").set_enabled(enable); });
    memory.def("release_threshold", [](nb::handle device) {
        return pool_of(device, "get_mempool_release_threshold()").release_threshold();
    });
    memory.def("set_release_threshold", [](nb::handle device, std::uint64_t bytes) {
        pool_of(device, "set_mempool_release_threshold()").set_release_threshold(bytes);
    });
    memory.def("used", [](nb::handle device) { return pool_of(device, "get_mempool_used_mem_current()").used(); });
    memory.def("most_used",
               [](nb::handle device) { return pool_of(device, "get_mempool_used_mem_high()").most_used(); });
    memory.def("can_open", [](bool of_pool, nb::handle owner, nb::handle peer) {
        return runtime::can_open(kind_of(of_pool), device_from_python(owner), device_from_python(peer));
    });
    memory.def("is_open", [](bool of_pool, nb::handle owner, nb::handle peer) {
        return runtime::is_open(kind_of(of_pool), device_from_python(owner), device_from_python(peer));
    });
    memory.def("set_open", [](bool of_pool, nb::handle owner, nb::handle peer, bool is_open) {
        runtime::set_open(kind_of(of_pool), device_from_python(owner), device_from_python(peer), is_open,
                          of_pool ? "set_mempool_access_enabled()" : "set_peer_access_enabled()");
    });
    memory.def("may_touch", [](nb::handle device, nb::handle object) {
        const runtime::Array& array = array_argument(object.ptr(), "can_access()", "resource").array;
        return runtime::may_touch(device_from_python(device, "can_access()"), array);
    });
}

}  // namespace weft::bindings
