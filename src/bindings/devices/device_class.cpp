// The class wp.Device and the functions that find devices.

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstdint>
#include <new>
#include <string>

#include "bindings/devices/device.h"
#include "bindings/devices/stream.h"
#include "program/host/host.h"
#include "runtime/cpu/device.h"
#include "runtime/cuda_devices.h"
#include "runtime/foreign_memory.h"
#include "runtime/ipc.h"
#include "runtime/memory_pool.h"
#include "runtime/out_of_memory.h"
#include "runtime/pinned.h"
#include "runtime/recording.h"
#include "support/error.h"

namespace weft::bindings {
namespace {

using runtime::Device;

// Memory outside of arrays. Pinned memory is for transfers to CUDA devices: without one it is ordinary memory.
struct Allocator {
    static constexpr std::align_val_t kAlignment{64};

    Device* device;
    bool is_pinned;  // memory of the host, which a CUDA device reaches

    std::uintptr_t allocate(std::size_t size) const {
        const auto bytes = static_cast<std::int64_t>(std::max<std::size_t>(size, 1));
        void* data = nullptr;
        if (device->gpu())
            data = runtime::take_memory(*device, bytes, /*zeroed=*/false, runtime::current_stream(*device),
                                        "allocator.allocate()");
        else if (is_pinned)
            data = runtime::allocate_pinned(bytes);
        if (data == nullptr) data = ::operator new(size, kAlignment);
        return reinterpret_cast<std::uintptr_t>(data);
    }
    void deallocate(std::uintptr_t address, std::size_t size) const {
        void* const data = reinterpret_cast<void*>(address);
        if (device->gpu())
            device->free(data, static_cast<std::int64_t>(size), runtime::current_stream(*device));
        else if (is_pinned && runtime::is_pinned(address))
            runtime::free_pinned(data);
        else
            ::operator delete(data, size, kAlignment);
    }
    nb::object memory_kind() const {
        const char* kind = is_pinned ? "PINNED" : "HOST";
        if (device->gpu()) kind = device->pool()->is_enabled() ? "CUDA_MEMPOOL" : "CUDA_DEVICE";
        return nb::module_::import_("warp._devices.enums").attr("MemoryKind").attr(kind);
    }
};

// Attributes with values of their own on CUDA devices. The CPU has the same attributes, with the values for "none".
void bind_cuda_properties(nb::class_<Device>& device) {
    using runtime::GpuProperties;
    struct Flag {
        const char* name;
        const char* meaning;
        bool GpuProperties::* value;
    };
    for (auto [name, meaning, value] : {
             Flag{"is_uva", "Whether a CUDA device shares addresses with the host.", &GpuProperties::is_uva},
             Flag{"is_mempool_supported", "Whether a CUDA device can allocate from a memory pool.",
                  &GpuProperties::has_pools},
             Flag{"is_primary",
                  "Whether the context of a CUDA device is the GPU's primary one, which libraries share; else it was "
                  "named by wp.map_cuda_device().",
                  &GpuProperties::is_primary},
             Flag{"is_emulated", "Whether this is the emulated CUDA device, which runs on the CPU.",
                  &GpuProperties::is_emulated},
         })
        device.def_prop_ro(
            name, [value](const Device& self) { return self.gpu() != nullptr && self.gpu()->*value; }, meaning);
    device.def_prop_ro(
        "is_mempool_enabled", [](Device& self) { return self.pool() != nullptr && self.pool()->is_enabled(); },
        "Whether a CUDA device allocates from a memory pool.");
    device.def_prop_ro(
        "has_context", [](const Device& self) { return self.gpu() != nullptr; },
        "Whether a CUDA device has a context.");
    device.def_prop_ro("is_ipc_supported", &runtime::is_ipc_supported,
                       "Whether processes can share arrays of a CUDA device.");
    device.def_prop_ro(
        "is_cubin_supported", [](const Device&) { return false; },
        "Whether machine code of a CUDA device can be compiled here.");
    struct Count {
        const char* name;
        const char* meaning;
        int GpuProperties::* value;
    };
    for (auto [name, meaning, value] : {
             Count{"arch", "The architecture of a CUDA device, 86 for 8.6; 0 for the CPU.", &GpuProperties::arch},
             Count{"sm_count", "Multiprocessors of a CUDA device; 0 for the CPU.", &GpuProperties::sm_count},
             Count{"max_shared_memory_per_block", "Bytes that a block's threads share on CUDA; 0 for the CPU.",
                   &GpuProperties::max_shared_memory_per_block},
         })
        device.def_prop_ro(name, [value](const Device& self) { return self.gpu() ? self.gpu()->*value : 0; }, meaning);
    struct Name {
        const char* name;
        const char* meaning;
        std::string GpuProperties::* value;
    };
    for (auto [name, meaning, value] : {
             Name{"uuid", "The identity of a CUDA device; None for the CPU.", &GpuProperties::uuid},
             Name{"pci_bus_id", "The address of a CUDA device on the PCI bus; None for the CPU.",
                  &GpuProperties::pci_bus_id},
         })
        device.def_prop_ro(
            name,
            [value](const Device& self) -> nb::object {
                return self.gpu() ? nb::object(nb::str((self.gpu()->*value).c_str())) : nb::none();
            },
            meaning);
    device.def_prop_ro(
        "context",
        [](Device& self) -> std::optional<std::uint64_t> {
            if (!self.gpu()) return std::nullopt;
            return runtime::cuda_context(self);
        },
        "The handle of the context of a CUDA device, an int; None for the CPU.");
    device.def(
        "make_current",
        [](Device& self) {
            if (self.gpu()) runtime::make_cuda_context_current(self);
        },
        "Makes the context of a CUDA device the current one of the calling thread, for other libraries that call the\n"
        "driver. Weft's own calls need none. Does nothing for the CPU.\n\n"
        "Raises: UsageError (a RuntimeError) if the driver refuses.");
}

// "cuda" names the current GPU, too.
bool equals(const Device& self, nb::handle other) {
    if (PyUnicode_Check(other.ptr())) {
        const auto name = nb::cast<std::string>(other);
        return self.alias == name || (name == "cuda" && self.gpu() && &self == &runtime::device(name));
    }
    const Device* device = nullptr;
    return nb::try_cast(other, device) && device == &self;
}

}  // namespace

void bind_devices(nb::module_& m) {
    nb::class_<Allocator>(m, "Allocator", "The source of the memory of a device's arrays.")
        .def("allocate", &Allocator::allocate, nb::arg("size_in_bytes"),
             "The address of that many bytes, at a multiple of 64; they are freed by deallocate().")
        .def("deallocate", &Allocator::deallocate, nb::arg("ptr"), nb::arg("size_in_bytes"),
             "Frees memory of allocate().")
        .def_prop_ro("memory_kind", &Allocator::memory_kind,
                     "A wp.MemoryKind: HOST or PINNED; of a CUDA device CUDA_DEVICE or CUDA_MEMPOOL.");

    nb::class_<Device> device(m, "Device",
                              "A processor that owns arrays and runs kernels. Compares equal to its name.");
    device.def_ro("alias", &Device::alias, "The name programs use: \"cpu\", \"cuda:0\".")
        .def_ro("name", &Device::name, "The name of the processor.")
        .def_ro("ordinal", &Device::ordinal, "Number of a CUDA device; -1 for the CPU.")
        .def_ro("is_cpu", &Device::is_cpu, "Whether this is the processor that Python runs on.")
        .def_prop_ro(
            "is_cuda", [](const Device& self) { return self.gpu() != nullptr; }, "Whether this is a GPU.")
        .def("__str__", [](const Device& self) { return self.alias; })
        .def("__repr__", [](const Device& self) { return "'" + self.alias + "'"; })
        .def_prop_ro(
            "stream", [](const Device& self) { return PyStream{runtime::current_stream_ptr(self)}; },
            "The current stream of this thread: a wp.Stream.")
        .def(
            "set_stream",
            [](Device& self, nb::handle stream, bool) {
                runtime::set_current_stream(
                    stream_argument(stream, device_to_python(self), "Device.set_stream()").stream);
            },
            nb::arg("stream"), nb::arg("sync") = true, "Makes a stream of the device the current one of this thread.")
        .def_prop_ro(
            "is_capturing", [](const Device& self) { return runtime::current_recording(self) != nullptr; },
            "Whether a graph is being captured from the current stream of this thread.")
        .def_prop_ro(
            "has_stream", [](const Device&) { return true; }, "Whether the device has streams.")
        .def_prop_ro("total_memory", &Device::total_memory, "Bytes of memory that the device has.")
        .def_prop_ro("free_memory", &Device::free_memory, "Bytes of memory that are free at the moment.")
        .def(
            "can_access",
            [](Device& self, nb::handle other) {
                Device& owner = device_from_python(other, "Device.can_access()");
                return &owner == &self || runtime::is_open(runtime::MemoryOf::plain, owner, self);
            },
            nb::arg("other"), "Whether kernels of this device can read and write the memory of another.")
        .def(
            "get_allocator", [](Device& self, bool pinned) { return Allocator{&self, pinned && self.is_cpu}; },
            nb::arg("pinned") = false, "The allocator of the memory of arrays on this device.")
        .def("__eq__", &equals, nb::arg("other").none())
        .def(
            "__ne__", [](const Device& self, nb::handle other) { return !equals(self, other); },
            nb::arg("other").none())
        // Equal to its name, so it hashes as its name.
        .def("__hash__", [](const Device& self) { return nb::hash(nb::str(self.alias.c_str())); });
    bind_cuda_properties(device);

    m.def(
        "get_device", [](nb::handle name) { return device_to_python(device_from_python(name, "get_device()")); },
        nb::arg("ident") = nb::none(),
        "The device of a name (or a Device itself); without an argument, the default device.\n\n"
        "Raises: UsageError if there is no such device.");
    m.def(
        "set_device", [](nb::handle name) { runtime::set_default_device(device_from_python(name, "set_device()")); },
        nb::arg("ident"), "Makes a device the default, in all threads.");
    m.def(
        "get_devices",
        [] {
            nb::list result;
            for (Device* device : runtime::devices()) result.append(device_to_python(*device));
            return result;
        },
        "All devices: the CPU first.");
    m.def(
        "get_cuda_devices",
        [] {
            nb::list result;
            for (Device* device : runtime::cuda_devices()) result.append(device_to_python(*device));
            return result;
        },
        "All CUDA devices, by ordinal.");
    m.def(
        "get_cuda_device",
        [](nb::handle ordinal) -> nb::object {
            const std::string name = ordinal.is_none() ? "cuda" : "cuda:" + nb::cast<std::string>(nb::str(ordinal));
            const std::vector<Device*> all = runtime::cuda_devices();
            for (Device* device : all) {
                if (ordinal.is_none() || device->alias == name) return device_to_python(*device);
            }
            throw UsageError(
                "get_cuda_device()",
                "there is no device '" + name +
                    "': " + (all.empty() ? runtime::cuda_problem() : "the last one is '" + all.back()->alias + "'"),
                ordinal.is_none() ? ErrorCategory::runtime : ErrorCategory::index);
        },
        nb::arg("ordinal") = nb::none(), "The CUDA device of a number; without an argument, the current one.");
    m.def("get_cuda_device_count", [] { return runtime::cuda_devices().size(); }, "How many CUDA devices there are.");
    m.def(
        "is_host_memory",
        [](nb::handle device) { return device_from_python(device, "is_host_memory()").is_host_memory; },
        nb::arg("device"), "Whether Python may look at the memory of arrays in place.");
    // For tests: a CPU device with the memory of another library (runtime/cpu/memory_hooks.h), at this address.
    m.def(
        "add_cpu_device",
        [](std::string name, std::uintptr_t memory) {
            runtime::add_device(
                runtime::make_cpu_device(std::move(name), reinterpret_cast<const runtime::CpuMemory*>(memory)));
        },
        nb::arg("name"), nb::arg("memory"));
    m.def(
        "map_cuda_context",
        [](const std::string& alias, std::uint64_t context) {
            return device_to_python(runtime::map_cuda_context(alias, context));
        },
        nb::arg("alias"), nb::arg("context"));
    m.def("unmap_cuda_context", &runtime::unmap_cuda_context, nb::arg("alias"));
    m.def("is_cpu_available", [] { return true; }, "Whether kernels can run on the CPU.");
    m.def("is_cuda_available", [] { return !runtime::cuda_devices().empty(); }, "Whether there is a CUDA device.");
    m.def(
        "is_device_available",
        [](nb::handle name) {
            for (Device* device : runtime::devices()) {
                if (equals(*device, name)) return true;
            }
            return false;
        },
        nb::arg("device"), "Whether there is a device of this name.");
    m.def(
        "get_preferred_device",
        [] {
            const std::vector<Device*> gpus = runtime::cuda_devices();
            return device_to_python(gpus.empty() ? runtime::host_device() : *gpus.front());
        },
        "The first CUDA device if there is one, else the CPU.");
    m.def(
        "synchronize", [] { program::with_prints([] { runtime::synchronize_devices(); }); },
        "Waits until all devices have done their work. Launches on the CPU end before they return.");
    m.def(
        "synchronize_device",
        [](nb::handle device) {
            program::with_prints([&] { device_from_python(device, "synchronize_device()").synchronize(); });
        },
        nb::arg("device") = nb::none(),
        "Waits until a device has done its work. Launches on the CPU end before they return.");
}

}  // namespace weft::bindings
