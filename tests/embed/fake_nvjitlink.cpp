// A library in nvJitLink's place, with its functions of CUDA 12: it checks what it is given, and makes no machine code
// but a text. FAILS names the function that fails.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

namespace {

struct State {
    std::string image;
    bool has_text = false, is_complete = false;
};

constexpr int kSuccess = 0, kInvalid = 3, kInternal = 6;
constexpr char kLog[] = "the log of nvJitLink\n";

#define NAME_OF(name) #name
#define TEXT_OF(name) NAME_OF(name)
bool fails(const char* function) {
#ifdef FAILS
    return std::strcmp(function, TEXT_OF(FAILS)) == 0;
#else
    return function == nullptr;
#endif
}

}  // namespace

extern "C" {

int __nvJitLinkCreate_12_0(State** state, std::uint32_t count, const char** options) {
    *state = nullptr;
    if (fails("Create")) return kInternal;
    if (count < 1 || std::strncmp(options[0], "-arch=sm_", 9) != 0) return kInvalid;
    *state = new State;
    (*state)->image = std::string("machine code by nvJitLink for ") + options[0];
    return kSuccess;
}

int __nvJitLinkDestroy_12_0(State** state) {
    delete *state;
    *state = nullptr;
    return kSuccess;
}

int __nvJitLinkAddData_12_0(State* state, int type, const void* data, std::size_t size, const char* name) {
    if (fails("AddData")) return kInternal;
    const auto* const text = static_cast<const char*>(data);
    constexpr int kPtx = 2;
    if (type != kPtx || !name || size == 0 || text[size - 1] != 0 || !std::strstr(text, ".target sm_")) return kInvalid;
    state->has_text = true;
    return kSuccess;
}

int __nvJitLinkComplete_12_0(State* state) {
    if (fails("Complete")) return kInternal;
    if (!state->has_text) return kInvalid;
    state->is_complete = true;
    return kSuccess;
}

int __nvJitLinkGetLinkedCubinSize_12_0(State* state, std::size_t* size) {
    if (fails("GetLinkedCubinSize")) return kInternal;
    if (!state->is_complete) return kInvalid;
    *size = state->image.size();
    return kSuccess;
}

int __nvJitLinkGetLinkedCubin_12_0(State* state, void* cubin) {
    if (fails("GetLinkedCubin")) return kInternal;
    if (!state->is_complete) return kInvalid;
    std::memcpy(cubin, state->image.data(), state->image.size());
    return kSuccess;
}

int __nvJitLinkGetErrorLogSize_12_0(State*, std::size_t* size) {
    *size = sizeof kLog;
    return kSuccess;
}

int __nvJitLinkGetErrorLog_12_0(State*, char* log) {
    std::memcpy(log, kLog, sizeof kLog);
    return kSuccess;
}

}  // extern "C"
