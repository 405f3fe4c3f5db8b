// Events that processes share.
#include <algorithm>

#include "runtime/cuda/capture.h"
#include "runtime/cuda/device.h"
#include "runtime/cuda/stream.h"
#include "runtime/ipc.h"
#include "support/error.h"

namespace weft::runtime {

using namespace cuda;

static_assert(sizeof(IpcHandle) == sizeof(CUipcEventHandle));

namespace {

CudaDevice& sharing_events(Device& device, const char* api) {
    if (device.gpu() == nullptr || !driver().cuIpcGetEventHandle || !driver().cuIpcOpenEventHandle)
        throw UsageError(api, "events of '" + device.alias + "' cannot be shared with other processes");
    return static_cast<CudaDevice&>(device);
}

}  // namespace

std::shared_ptr<Event> make_interprocess_event(Device& device, const char* api) {
    return std::make_shared<CudaEvent>(sharing_events(device, api), kNoTiming | kInterprocess);
}

IpcHandle event_ipc_handle(Event& event) {
    auto& shared = static_cast<CudaEvent&>(event);
    const CudaContext::Inside inside(shared.device());
    const RelaxedCapture relaxed;
    IpcHandle handle;
    shared.device().check(
        driver().cuIpcGetEventHandle(reinterpret_cast<CUipcEventHandle*>(handle.data()), shared.share_handle()),
        "cuIpcGetEventHandle");
    return handle;
}

std::shared_ptr<Event> open_event_ipc_handle(const IpcHandle& handle, Device& of, const char* api) {
    CudaDevice& device = sharing_events(of, api);
    const CudaContext::Inside inside(device);
    const RelaxedCapture relaxed;
    CUipcEventHandle given;
    std::copy(handle.begin(), handle.end(), reinterpret_cast<std::byte*>(given.reserved));
    CUevent opened = nullptr;
    const CUresult result = driver().cuIpcOpenEventHandle(&opened, given);
    if (result == kInvalidContext)
        throw UsageError(api,
                         "the event belongs to this process: a handle is for other processes. help: use the event "
                         "itself");
    if (result == kInvalidHandle || result == kInvalidValue || result == kMapFailed)
        throw UsageError(api, "'" + device.alias +
                                  "' knows no event of this handle: another process has made it with "
                                  "wp.Event(interprocess=True).ipc_handle(), for the same GPU, and keeps its event");
    device.check(result, "cuIpcOpenEventHandle");
    return std::make_shared<CudaEvent>(device, opened, /*owns=*/true);
}

}  // namespace weft::runtime
