// Memory pools, access between GPUs, the driver's version, for the functions of python/warp/_devices/cuda.py.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings/devices/device.h"
#include "bindings/python/lock.h"
#include "bindings/python/python_function.h"
#include "bindings/values/array_value.h"
#include "jit/jit.h"
#include "runtime/allocator.h"
#include "runtime/cuda_devices.h"
#include "runtime/memory_pool.h"
#include "runtime/memory_watch.h"
#include "runtime/out_of_memory.h"
#include "support/error.h"

namespace weft::bindings {
namespace {

using runtime::Device;
using runtime::MemoryOf;

runtime::MemoryPool& pool_of(nb::handle device, const char* api) {
    Device& of = device_from_python(device, api);
    if (runtime::MemoryPool* const pool = of.pool()) return *pool;
    throw UsageError(api, "memory pools are of CUDA devices, and the CPU is none", ErrorCategory::value);
}

// When memory runs out, Python frees objects that only cycles keep. Any thread may call this.
void collect_garbage() {
    if (!Py_IsInitialized()) return;
    const PythonLock lock;
    try {
        nb::module_::import_("gc").attr("collect")();  // even if automatic collection is off
    } catch (nb::python_error& error) {
        error.discard_as_unraisable("the collection of garbage for memory of a device");
    }
}

// An object of the program with allocate(size_in_bytes) and deallocate(ptr, size_in_bytes).
class PythonAllocator final : public runtime::ProgramAllocator {
public:
    explicit PythonAllocator(nb::object object) : object_(std::move(object)) {
        const nb::object kind = nb::getattr(object_, "memory_kind", nb::none());
        if (!kind.is_none()) kind_ = nb::cast<int>(nb::module_::import_("builtins").attr("int")(kind));
    }
    ~PythonAllocator() override {
        if (!Py_IsInitialized()) {
            object_.release();
            return;
        }
        const PythonLock lock;
        object_.reset();
    }
    void* allocate(std::int64_t size_bytes) override {
        constexpr std::uintptr_t kAlignment = 64;  // of all arrays
        const PythonLock lock;
        const nb::object given = object_.attr("allocate")(size_bytes);
        std::uintptr_t address = 0;
        if (!nb::try_cast(given, address) || address == 0)
            throw UsageError("allocator.allocate()",
                             "gave " + std::string(nb::repr(given).c_str()) + " for " + std::to_string(size_bytes) +
                                 " bytes, expected the address of memory, an int",
                             ErrorCategory::memory);
        if (address % kAlignment != 0) {
            object_.attr("deallocate")(address, size_bytes);
            throw UsageError("allocator.allocate()", "gave the address " + std::to_string(address) +
                                                         ", expected a multiple of 64: kernels read whole vectors");
        }
        return reinterpret_cast<void*>(address);
    }
    void deallocate(void* data, std::int64_t size_bytes) noexcept override {
        if (!Py_IsInitialized()) return;  // the process ends
        const PythonLock lock;
        try {
            object_.attr("deallocate")(reinterpret_cast<std::uintptr_t>(data), size_bytes);
        } catch (nb::python_error& error) {
            error.discard_as_unraisable(object_);
        }
    }
    std::optional<int> memory_kind() const override { return kind_; }
    nb::object object() const { return object_; }

private:
    nb::object object_;
    std::optional<int> kind_;
};

// The line of the program that asks for memory, skipping functions of the package.
std::string allocation_site() {
    if (!Py_IsInitialized() || !PyGILState_Check() || PyErr_Occurred()) return {};
    try {
        static PyObject* tracker = nullptr;
        return nb::cast<std::string>(function_of("warp._support.memory_tracker", tracker, "place")());
    } catch (nb::python_error& error) {
        error.discard_as_unraisable("the place of an allocation");
        return {};
    }
}

void bind_watch(nb::module_& memory) {
    using runtime::MemoryWatch;
    runtime::set_allocation_site(&allocation_site);
    nb::class_<MemoryWatch>(memory, "MemoryWatch", "Counts the memory of each device that arrays take during its life.")
        .def(nb::init<>())
        .def("stop", &MemoryWatch::stop, "Adds nothing from now on.")
        .def("clear", &MemoryWatch::clear, "Drops all counts.")
        .def(
            "state",
            [](const MemoryWatch& self) {
                const MemoryWatch::State state = self.state();
                nb::dict uses;
                for (const auto& [device, use] : state.uses)
                    uses[device.c_str()] =
                        nb::make_tuple(use.allocations, use.size_bytes, use.most_bytes, use.live_bytes);
                nb::list live;
                for (const MemoryWatch::Piece& piece : state.live)
                    live.append(nb::make_tuple(piece.device, piece.size_bytes, piece.what, piece.site));
                return nb::make_tuple(uses, live);
            },
            "By device (allocations, bytes, most bytes, live bytes); and live pieces (device, bytes, what, place).");
}

void bind_allocators(nb::module_& memory) {
    memory.def(
        "set_allocator",
        [](nb::handle device, nb::object allocator) {
            Device& of = device_from_python(device, "set_device_allocator()");
            runtime::set_allocator(of, allocator.is_none() ? nullptr : std::make_shared<PythonAllocator>(allocator));
        },
        nb::arg("device"), nb::arg("allocator").none());
    memory.def("allocator", [](nb::handle device) -> nb::object {
        const auto found = runtime::allocator_of(device_from_python(device, "get_device_allocator()"));
        const auto* const own = dynamic_cast<const PythonAllocator*>(found.get());
        return own ? own->object() : nb::none();
    });
    memory.def("allocate_managed", &runtime::allocate_managed);
    memory.def("free_managed", &runtime::free_managed);
    memory.def("set_profiling", [](nb::handle device, bool is_on) {
        runtime::set_profiling(device_from_python(device, is_on ? "cuda_profiler_start()" : "cuda_profiler_stop()"),
                               is_on);
    });
}

MemoryOf kind_of(bool of_pool) { return of_pool ? MemoryOf::pool : MemoryOf::plain; }

}  // namespace

void bind_memory(nb::module_& m) {
    runtime::set_memory_collector(&collect_garbage);
    nb::module_ memory = m.def_submodule("memory");
    bind_watch(memory);
    bind_allocators(memory);
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
