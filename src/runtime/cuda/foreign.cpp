#include "runtime/cuda/device.h"
#include "runtime/foreign_memory.h"

namespace weft::runtime {

using namespace cuda;

Device* cuda_device_of(const void* memory) {
    if (gpus().empty()) return nullptr;
    const CudaDevice::Inside inside(*gpus().front());  // the driver asks for a context, whichever it is
    int ordinal = 0;
    const CUresult result =
        driver().cuPointerGetAttribute(&ordinal, kPointerDeviceOrdinal, reinterpret_cast<CUdeviceptr>(memory));
    return result == kSuccess ? gpus()[static_cast<std::size_t>(ordinal)] : nullptr;
}

std::shared_ptr<Stream> foreign_stream(Device& device, std::uint64_t stream) {
    return static_cast<CudaDevice&>(device).adopt_stream(reinterpret_cast<CUstream>(stream));
}

std::uint64_t stream_for_others(Stream& stream) {
    return reinterpret_cast<std::uint64_t>(static_cast<CudaStream&>(stream).share_handle());
}

void wait_for_cuda_stream(Device& device, std::uint64_t stream) {
    auto& gpu = static_cast<CudaDevice&>(device);
    const CudaDevice::Inside inside(gpu);
    gpu.check(driver().cuStreamSynchronize(reinterpret_cast<CUstream>(stream)), "cuStreamSynchronize");
}

}  // namespace weft::runtime
