// A library in nvJitLink's place, with its functions of CUDA 12: it waits for some time in Complete() and then has the
// emulated driver ($WEFT_TEST_DRIVER) make its image of the text. It writes a line for each begin and each end to
// $WEFT_TEST_LOG. With $WEFT_TEST_FAILS each text is refused.
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

namespace {

struct State {
    std::string text, image;
};

void note(const char* line) {
    const int file = open(std::getenv("WEFT_TEST_LOG"), O_WRONLY | O_APPEND | O_CREAT, 0644);
    if (write(file, line, std::strlen(line)) < 0) std::abort();
    close(file);
}

template <typename... Arguments>
void call(const char* name, Arguments... arguments) {
    static void* const driver = dlopen(std::getenv("WEFT_TEST_DRIVER"), RTLD_NOW | RTLD_NOLOAD);
    if (reinterpret_cast<int (*)(Arguments...)>(dlsym(driver, name))(arguments...) != 0) std::abort();
}

}  // namespace

extern "C" {

int __nvJitLinkCreate_12_0(State** state, std::uint32_t, const char**) { return *state = new State, 0; }
int __nvJitLinkDestroy_12_0(State** state) { return delete *state, 0; }
int __nvJitLinkAddData_12_0(State* state, int, const void* data, std::size_t size, const char*) {
    state->text.assign(static_cast<const char*>(data), size);
    return 0;
}
int __nvJitLinkComplete_12_0(State* state) {
    note("begin\n");
    std::this_thread::sleep_for(std::chrono::milliseconds(700));
    note("end\n");
    if (std::getenv("WEFT_TEST_FAILS")) return 6;
    void *link = nullptr, *image = nullptr;
    std::size_t size = 0;
    call("cuLinkCreate_v2", 0u, static_cast<int*>(nullptr), static_cast<void**>(nullptr), &link);
    call("cuLinkAddData_v2", link, 1, static_cast<void*>(state->text.data()), state->text.size(), "kernels", 0u,
         static_cast<int*>(nullptr), static_cast<void**>(nullptr));
    call("cuLinkComplete", link, &image, &size);
    state->image.assign(static_cast<const char*>(image), size);
    call("cuLinkDestroy", link);
    return 0;
}
int __nvJitLinkGetLinkedCubinSize_12_0(State* state, std::size_t* size) { return *size = state->image.size(), 0; }
int __nvJitLinkGetLinkedCubin_12_0(State* state, void* cubin) {
    return std::memcpy(cubin, state->image.data(), state->image.size()), 0;
}
int __nvJitLinkGetErrorLogSize_12_0(State*, std::size_t* size) { return *size = 0, 0; }
int __nvJitLinkGetErrorLog_12_0(State*, char*) { return 0; }
}
