// Memory and events that processes share. A handle names a process and a file of it, which others find under /proc.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string>

#include "driver/capture.h"
#include "driver/state.h"
#include "driver/task.h"

namespace weft::emulator {

namespace {

struct Handle {
    char kind[16];
    int64_t process;
    int32_t file, device;
    uint64_t size;
    uint64_t memory;  // the file's number: another file may have its descriptor later
    char rest[16];
};
static_assert(sizeof(Handle) == sizeof(CUipcMemHandle));
static_assert(sizeof(Handle) == sizeof(CUipcEventHandle));
constexpr char kKind[16] = "weft emulated", kKindOfEvents[16] = "weft event";

// With the state locked: how often each is open, by handle.
struct Opened {
    CUdeviceptr address;
    int count;
};
std::map<std::string, Opened>& opened() {
    static auto* const all = new std::map<std::string, Opened>;
    return *all;
}

uint64_t number_of(int file) {
    struct stat found = {};
    require(fstat(file, &found) == 0, CUDA_ERROR_INVALID_HANDLE);
    return found.st_ino;
}

// Opens the file that a handle names. Fails if the process has none.
int open_file_of(const Handle& handle) {
    const std::string path = "/proc/" + std::to_string(handle.process) + "/fd/" + std::to_string(handle.file);
    const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
    require(file >= 0, CUDA_ERROR_INVALID_HANDLE);
    return file;
}

}  // namespace

extern "C" {

CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr address) {
    return locked([&](State& state) {
        current_context();
        require(handle);
        const Allocation* const found = AddressSpace::instance().find(address);
        require(found && !found->freed && found->address == address && found->kind == Allocation::Kind::Device);
        require(!found->is_pooled && !state.of_graphs.contains(address));
        Handle made = {};
        std::memcpy(made.kind, kKind, sizeof kKind);
        made.process = getpid();
        made.file = AddressSpace::instance().share(address);
        require(made.file >= 0, CUDA_ERROR_OUT_OF_MEMORY);
        made.device = found->device;
        made.size = found->size;
        made.memory = number_of(made.file);
        std::memcpy(handle, &made, sizeof made);
    });
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* address, CUipcMemHandle handle, unsigned int flags) {
    return locked([&](State&) {
        const Context& context = current_context();
        require(address && flags <= 1);
        require_no_unsafe_capture();
        Handle given;
        std::memcpy(&given, &handle, sizeof given);
        require(std::memcmp(given.kind, kKind, sizeof kKind) == 0, CUDA_ERROR_INVALID_HANDLE);
        require(given.process != getpid(), CUDA_ERROR_INVALID_CONTEXT);
        require(given.device == context.device, CUDA_ERROR_INVALID_HANDLE);
        const std::string key(handle.reserved, sizeof handle.reserved);
        if (const auto found = opened().find(key); found != opened().end()) {
            ++found->second.count;
            *address = found->second.address;
            return;
        }
        const int file = open_file_of(given);
        const Allocation* made = nullptr;
        if (number_of(file) == given.memory)
            made = AddressSpace::instance().add_shared(context.device, given.size, file);
        if (!made) close(file);
        require(made, CUDA_ERROR_INVALID_HANDLE);
        *address = made->address;
        opened()[key] = {made->address, 1};
    });
}

// Waits for all that the context has to do.
CUresult cuIpcCloseMemHandle(CUdeviceptr address) {
    return entry([&] {
        const Context* context;
        {
            const std::lock_guard lock(State::instance().mutex);
            context = &current_context();
            require_no_unsafe_capture();
            const auto found = std::find_if(opened().begin(), opened().end(),
                                            [&](const auto& one) { return one.second.address == address; });
            require(found != opened().end());
            if (--found->second.count > 0) return;
            opened().erase(found);
        }
        Tasks::instance().finish_all(context);
        AddressSpace::instance().release(address, Allocation::Kind::Device);
    });
}

// The file of an event is empty: it only shows that the event exists.
CUresult cuIpcGetEventHandle(CUipcEventHandle* handle, CUevent event) {
    return locked([&](State& state) {
        require(handle);
        Event& found = *state.event(event);
        require(found.is_interprocess(), CUDA_ERROR_INVALID_HANDLE);
        if (!found.shared) found.shared = File(memfd_create("event", MFD_CLOEXEC));
        require(bool(found.shared), CUDA_ERROR_OUT_OF_MEMORY);
        Handle made = {};
        std::memcpy(made.kind, kKindOfEvents, sizeof kKindOfEvents);
        made.process = getpid();
        made.file = found.shared.descriptor();
        made.device = found.context->device;
        made.memory = number_of(made.file);
        std::memcpy(handle, &made, sizeof made);
    });
}

// The new event has no record of its own process. It needs none: the other process does the work before a record at
// once (cuEventRecord).
CUresult cuIpcOpenEventHandle(CUevent* event, CUipcEventHandle handle) {
    return locked([&](State&) {
        Context& context = current_context();
        require(event);
        Handle given;
        std::memcpy(&given, &handle, sizeof given);
        require(std::memcmp(given.kind, kKindOfEvents, sizeof kKindOfEvents) == 0, CUDA_ERROR_INVALID_HANDLE);
        require(given.process != getpid(), CUDA_ERROR_INVALID_CONTEXT);
        require(given.device == context.device, CUDA_ERROR_INVALID_HANDLE);
        auto made = std::make_unique<Event>();
        made->context = &context;
        made->flags = CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
        made->shared = File(open_file_of(given));
        require(number_of(made->shared.descriptor()) == given.memory, CUDA_ERROR_INVALID_HANDLE);
        *event = made.get();
        context.events[*event] = std::move(made);
    });
}

}  // extern "C"

}  // namespace weft::emulator
