#include "runtime/device.h"

#include <atomic>
#include <exception>
#include <mutex>

#include "runtime/backend.h"
#include "support/error.h"

namespace weft::runtime {
namespace {

std::atomic<Device*> default_of_program = nullptr;
constinit thread_local Device* default_of_thread = nullptr;  // null for nearly all threads
constinit std::atomic<int> threads_with_default{0};

// Devices that programs have added.
struct Added {
    std::mutex mutex;
    std::vector<Device*> devices;

    std::vector<Device*> all() {
        const std::lock_guard lock(mutex);
        return devices;
    }
};

Added& added() {
    static Added* const all = new Added;
    return *all;
}

std::span<const Backend> backends_of_accelerators() { return backends().subspan(1); }

}  // namespace

Device& host_device() {
    static Device* const device = backends().front().devices().front();
    return *device;
}

Device& device(std::string_view name) {
    for (const Backend& backend : backends())
        if (Device* const found = backend.find(name)) return *found;
    for (Device* other : added().all())
        if (other->alias == name) return *other;
    throw UsageError("get_device()",
                     "there is no device '" + std::string(name) +
                         "': expected a name like 'cpu' or 'cuda:0'. "
                         "help: device=\"cpu\"",
                     ErrorCategory::value);
}

std::vector<Device*> devices() {
    std::vector<Device*> all;
    const auto add = [&](const std::vector<Device*>& more) { all.insert(all.end(), more.begin(), more.end()); };
    for (const Backend& backend : backends()) add(backend.devices());
    add(added().all());
    return all;
}

std::vector<Device*> cpu_devices() {
    std::vector<Device*> all = added().all();
    all.insert(all.begin(), &host_device());
    return all;
}

void synchronize_devices() {
    // All of them, also behind one with a fault; the first exception goes on.
    std::exception_ptr first;
    const auto wait_for = [&](Device* device) {
        try {
            device->synchronize();
        } catch (...) {
            if (!first) first = std::current_exception();
        }
    };
    for (Device* device : cpu_devices()) wait_for(device);
    for (const Backend& backend : backends_of_accelerators())
        for (Device* device : backend.used_devices()) wait_for(device);
    if (first) std::rethrow_exception(first);
}

void add_device(Device& device) {
    for (const Device* known : devices())
        WEFT_CHECK(known->alias != device.alias, "there are two devices '" + device.alias + "'");
    const std::lock_guard lock(added().mutex);
    added().devices.push_back(&device);
}

// The first accelerator, or the host if there is none, until the program chooses another.
Device& default_device() {
    if (threads_with_default.load(std::memory_order_relaxed) != 0 && default_of_thread) return *default_of_thread;
    if (Device* const set = default_of_program.load(std::memory_order_acquire)) return *set;
    Device* found = &host_device();
    for (const Backend& backend : backends_of_accelerators())
        if (const std::vector<Device*> its = backend.devices(); !its.empty()) {
            found = its.front();
            break;
        }
    Device* unset = nullptr;
    return default_of_program.compare_exchange_strong(unset, found) ? *found : *unset;
}

void set_default_device(Device& device) {
    if (default_of_thread)
        default_of_thread = &device;
    else
        default_of_program.store(&device, std::memory_order_release);
}

UseDevice::UseDevice(Device& device) : before_(default_of_thread) {
    default_of_thread = &device;
    ++threads_with_default;
}

UseDevice::~UseDevice() {
    default_of_thread = before_;
    --threads_with_default;
}

}  // namespace weft::runtime
