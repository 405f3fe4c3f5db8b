#pragma once
// The library as a program meets it: loaded by name, used through the driver's functions.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>

#include "driver/abi.h"
#include "driver/failures.h"
#include "harness.h"

namespace weft::emulator {

struct Driver {
#define WEFT_DRIVER(name, parameters) CUresult(*name) parameters = nullptr;
#include "driver/driver.def"
#undef WEFT_DRIVER
    const char* (*last_fault)() = nullptr;
    decltype(&weftEmulatedFail) fail = nullptr;
    decltype(&weftEmulatedAlive) alive = nullptr;

    Driver() {
        void* library = dlopen(WEFT_EMULATED_CUDA, RTLD_NOW | RTLD_LOCAL);
        EXPECT_TRUE(library) << dlerror();
#define WEFT_DRIVER(function, parameters) \
    function = reinterpret_cast<CUresult(*) parameters>(dlsym(library, #function));
#include "driver/driver.def"
#undef WEFT_DRIVER
        last_fault = reinterpret_cast<const char* (*)()>(dlsym(library, "weftEmulatedLastFault"));
        fail = reinterpret_cast<decltype(fail)>(dlsym(library, "weftEmulatedFail"));
        alive = reinterpret_cast<decltype(alive)>(dlsym(library, "weftEmulatedAlive"));
    }
};

inline const Driver& driver() {
    static const Driver loaded;
    return loaded;
}

#define EXPECT_OK(...) EXPECT_EQ(driver().__VA_ARGS__, CUDA_SUCCESS)

// A primary context, current while the test runs, and fresh.
class EmulatedDriverTest : public testing::Test {
protected:
    void SetUp() override {
        EXPECT_OK(cuInit(0));
        EXPECT_OK(cuDevicePrimaryCtxRetain(&context, 0));
        EXPECT_OK(cuCtxSetCurrent(context));
    }
    void TearDown() override {
        EXPECT_OK(cuCtxSetCurrent(nullptr));
        EXPECT_OK(cuDevicePrimaryCtxRelease_v2(0));
    }
    CUfunction function(const std::string& text, const char* name = "kernel") {
        CUmodule module = nullptr;
        CUfunction made = nullptr;
        EXPECT_OK(cuModuleLoadData(&module, text.c_str()));
        EXPECT_OK(cuModuleGetFunction(&made, module, name));
        return made;
    }
    template <class... T>
    CUresult launch(CUfunction kernel, unsigned blocks, unsigned threads, T... values) {
        return launch_in(nullptr, kernel, blocks, threads, values...);
    }
    template <class... T>
    CUresult launch_in(CUstream stream, CUfunction kernel, unsigned blocks, unsigned threads, T... values) {
        void* parameters[] = {&values..., nullptr};
        return driver().cuLaunchKernel(kernel, blocks, 1, 1, threads, 1, 1, 0, stream, parameters, nullptr);
    }
    CUdeviceptr allocated(size_t bytes) {
        CUdeviceptr address = 0;
        EXPECT_OK(cuMemAlloc_v2(&address, bytes));
        return address;
    }
    int value_at(CUdeviceptr address) {
        int value = -1;
        EXPECT_OK(cuMemcpyDtoH_v2(&value, address, 4));
        return value;
    }
    CUcontext context = nullptr;
};

}  // namespace weft::emulator
