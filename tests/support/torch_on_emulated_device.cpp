// Makes PyTorch's build for the CPU believe in two CUDA devices, so that its autograd takes tensors in memory of the
// emulated ones. To be loaded before PyTorch. The operators come from torch_on_emulated_device.py.
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <atomic>

constexpr c10::DeviceIndex kDevices = 2;

namespace {

thread_local c10::DeviceIndex device_now = 0;
std::atomic<std::int64_t> streams[kDevices];  // the driver's handles; 0 is the legacy default stream

struct Guard final : c10::impl::DeviceGuardImplInterface {
    static c10::DeviceIndex index(c10::Device device) { return device.has_index() ? device.index() : device_now; }

    c10::DeviceType type() const override { return c10::DeviceType::CUDA; }
    c10::Device exchangeDevice(c10::Device device) const override {
        const c10::Device before = getDevice();
        setDevice(device);
        return before;
    }
    c10::Device getDevice() const override { return {type(), device_now}; }
    void setDevice(c10::Device device) const override { device_now = index(device); }
    void uncheckedSetDevice(c10::Device device) const noexcept override { device_now = index(device); }
    c10::Stream getStream(c10::Device device) const override {
        return c10::Stream(c10::Stream::UNSAFE, c10::Device(type(), index(device)), streams[index(device)]);
    }
    c10::Stream getDefaultStream(c10::Device device) const override {
        return c10::Stream(c10::Stream::UNSAFE, device, 0);
    }
    c10::Stream exchangeStream(c10::Stream stream) const override {
        const c10::Stream before = getStream(stream.device());
        streams[stream.device_index()] = stream.id();
        return before;
    }
    c10::DeviceIndex deviceCount() const noexcept override { return kDevices; }
};

}  // namespace

C10_REGISTER_GUARD_IMPL(CUDA, Guard)

namespace at {

// The registry looks for this name.
struct CUDAHooks final : CUDAHooksInterface {
    explicit CUDAHooks(CUDAHooksArgs) {}
    void init() const override {}
    bool hasCUDA() const override { return true; }
    bool isBuilt() const override { return true; }
    bool isAvailable() const override { return true; }
    bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
    c10::DeviceIndex deviceCount() const override { return kDevices; }
    c10::DeviceIndex getCurrentDevice() const override { return device_now; }
    int getNumGPUs() const override { return kDevices; }
};
REGISTER_CUDA_HOOKS(CUDAHooks)

}  // namespace at

extern "C" void set_current_stream(int device, std::int64_t stream) { streams[device] = stream; }
extern "C" std::int64_t current_stream(int device) { return streams[device]; }
