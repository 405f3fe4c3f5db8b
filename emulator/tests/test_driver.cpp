// The effect of each function of the driver, and its failures.
#include <cstring>
#include <numeric>
#include <vector>

#include "driver.h"

namespace weft::emulator {

namespace {

TEST_F(EmulatedDriverTest, loads_allocates_copies_launches_and_copies_back) {
    std::vector<float> x(1000), y(1000, 1.0f);
    std::iota(x.begin(), x.end(), 0.0f);
    const CUdeviceptr dx = allocated(4000), dy = allocated(4000);
    EXPECT_OK(cuMemcpyHtoD_v2(dx, x.data(), 4000));
    EXPECT_OK(cuMemcpyHtoD_v2(dy, y.data(), 4000));
    CUfunction saxpy = function(ptx_file("saxpy.ptx"), "saxpy");
    EXPECT_EQ(launch(saxpy, 8, 128, 2.0f, dx, dy, 1000), CUDA_SUCCESS);
    EXPECT_OK(cuCtxSynchronize());
    EXPECT_OK(cuMemcpyDtoH_v2(y.data(), dy, 4000));
    for (size_t i = 0; i < 1000; ++i) EXPECT_EQ(y[i], 2 * x[i] + 1);
    EXPECT_OK(cuMemFree_v2(dx));
    EXPECT_OK(cuMemFree_v2(dy));
    EXPECT_EQ(driver().cuMemFree_v2(dy), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(EmulatedDriverTest, a_fault_stays_until_the_context_is_reset) {
    const std::string text = kernel_text("ld.param.b64 %d0, [a]; ld.global.b32 %r0, [%d0]; ret;");
    EXPECT_EQ(launch(function(text), 1, 32, uint64_t(0), uint64_t(0), uint64_t(0), uint64_t(0)), CUDA_SUCCESS);
    EXPECT_EQ(driver().cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_NE(std::string(driver().last_fault()).find("a null pointer"), std::string::npos) << driver().last_fault();
    CUdeviceptr address;
    EXPECT_EQ(driver().cuMemAlloc_v2(&address, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_OK(cuDevicePrimaryCtxReset_v2(0));
    EXPECT_OK(cuMemAlloc_v2(&address, 4));
}

TEST_F(EmulatedDriverTest, texts_that_cannot_be_compiled_have_a_log) {
    char log[256] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
    CUmodule module = nullptr;
    const std::string unknown = kernel_text("tcgen05.magic.b32 %r0, %r1; ret;");
    EXPECT_EQ(driver().cuModuleLoadDataEx(&module, unknown.c_str(), 2, options, values), CUDA_ERROR_INVALID_PTX);
    EXPECT_NE(std::string(log).find("line 8: unknown instruction 'tcgen05.magic.b32'"), std::string::npos) << log;
    std::string later = kernel_text("ret;");
    later.replace(later.find("8.7"), 3, "9.9");
    EXPECT_EQ(driver().cuModuleLoadData(&module, later.c_str()), CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
    later = kernel_text("ret;");
    later.replace(later.find("sm_90"), 5, "sm_120");
    EXPECT_EQ(driver().cuModuleLoadData(&module, later.c_str()), CUDA_ERROR_INVALID_PTX);
    EXPECT_EQ(driver().cuModuleLoadData(&module, "\x50\xed\x55\xba"), CUDA_ERROR_NO_BINARY_FOR_GPU);
}

// The first bytes of machine code as `ptxas` writes it: of CUDA 12, and of 13.
std::vector<char> cubin(int architecture, bool of_13, int machine = 190) {
    std::vector<char> bytes(256);
    std::memcpy(bytes.data(),
                "\x7f"
                "ELF\2\1\1",
                7);
    bytes[8] = of_13 ? 8 : 7;
    bytes[18] = static_cast<char>(machine);
    const unsigned flags = of_13 ? 0x06000004u | unsigned(architecture) << 8
                                 : 0x500u | unsigned(architecture) << 16 | unsigned(architecture);
    std::memcpy(bytes.data() + 48, &flags, sizeof flags);
    return bytes;
}

TEST_F(EmulatedDriverTest, machine_code_of_others_is_refused) {
    CUmodule module = nullptr;
    const auto refusal = [&](const std::vector<char>& image, CUresult expected) {
        char log[256] = "";
        CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
        void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
        EXPECT_EQ(driver().cuModuleLoadDataEx(&module, image.data(), 2, options, values), expected) << log;
        return std::string(log);
    };
    for (const bool of_13 : {false, true}) {
        EXPECT_EQ(refusal(cubin(90, of_13), CUDA_ERROR_NO_BINARY_FOR_GPU),
                  "machine code for sm_90, and the emulated device executes PTX only");
        EXPECT_EQ(refusal(cubin(120, of_13), CUDA_ERROR_NO_BINARY_FOR_GPU),
                  "machine code for sm_120, and this device is sm_90");
    }
    EXPECT_EQ(refusal(cubin(90, true, 62), CUDA_ERROR_INVALID_IMAGE), "an ELF file, and none for GPUs");
}

class EmulatedLinkTest : public EmulatedDriverTest {
protected:
    // The image of a text.
    std::vector<char> linked(const std::string& text) {
        CUlinkState link = nullptr;
        void* image = nullptr;
        size_t size = 0;
        EXPECT_OK(cuLinkCreate_v2(0, nullptr, nullptr, &link));
        EXPECT_OK(cuLinkAddData_v2(link, CU_JIT_INPUT_PTX, const_cast<char*>(text.c_str()), text.size() + 1, "kernel",
                                   0, nullptr, nullptr));
        EXPECT_OK(cuLinkComplete(link, &image, &size));
        const auto* const bytes = static_cast<const char*>(image);
        std::vector<char> copy(bytes, bytes + size);
        EXPECT_EQ(driver().alive("links"), 1u);
        EXPECT_OK(cuLinkDestroy(link));
        EXPECT_EQ(driver().alive("links"), 0u);
        return copy;
    }
};

TEST_F(EmulatedLinkTest, an_image_runs_as_its_text) {
    const std::string text = kernel_text("ld.param.b64 %d0, [a]; st.global.b32 [%d0], 7; ret;");
    const std::vector<char> image = linked(text);
    EXPECT_EQ(std::string(image.data() + 1, 3), "ELF");
    CUmodule module = nullptr;
    CUfunction kernel = nullptr;
    EXPECT_OK(cuModuleLoadData(&module, image.data()));
    EXPECT_OK(cuModuleGetFunction(&kernel, module, "kernel"));
    const CUdeviceptr out = allocated(4);
    EXPECT_EQ(launch(kernel, 1, 1, out, uint64_t(0), uint64_t(0), uint64_t(0)), CUDA_SUCCESS);
    EXPECT_EQ(value_at(out), 7);
}

TEST_F(EmulatedLinkTest, damaged_images_are_refused) {
    const std::vector<char> whole = linked(kernel_text("ret;"));
    CUmodule module = nullptr;
    EXPECT_OK(cuModuleLoadData(&module, whole.data()));
    // Behind the header of the file: its mark, the size, checksums, the text, its end.
    for (const size_t at : {size_t(64), size_t(72), size_t(79), size_t(80), size_t(88), size_t(96), whole.size() - 1}) {
        std::vector<char> image = whole;
        image[at] ^= 1;
        EXPECT_EQ(driver().cuModuleLoadData(&module, image.data()), CUDA_ERROR_INVALID_IMAGE) << at;
    }
    std::vector<char> other = whole;
    other[49] = 80;
    EXPECT_EQ(driver().cuModuleLoadData(&module, other.data()), CUDA_ERROR_NO_BINARY_FOR_GPU);
}

TEST_F(EmulatedLinkTest, what_cannot_be_linked_is_an_error) {
    CUlinkState link = nullptr;
    void* image = nullptr;
    size_t size = 0;
    std::string text = kernel_text("ret;");
    const auto add = [&](CUjitInputType type, size_t bytes) {
        return driver().cuLinkAddData_v2(link, type, text.data(), bytes, "kernel", 0, nullptr, nullptr);
    };
    EXPECT_EQ(add(CU_JIT_INPUT_PTX, text.size() + 1), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(driver().cuLinkCreate_v2(0, nullptr, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
    EXPECT_OK(cuLinkCreate_v2(0, nullptr, nullptr, &link));
    EXPECT_EQ(driver().cuLinkComplete(link, &image, &size), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(add(0, text.size() + 1), CUDA_ERROR_NOT_SUPPORTED);
    EXPECT_EQ(add(CU_JIT_INPUT_PTX, text.size()), CUDA_ERROR_INVALID_PTX) << "no NUL";
    EXPECT_EQ(add(CU_JIT_INPUT_PTX, text.size() + 1), CUDA_SUCCESS);
    EXPECT_EQ(add(CU_JIT_INPUT_PTX, text.size() + 1), CUDA_ERROR_NOT_SUPPORTED) << "a second text";
    EXPECT_OK(cuLinkDestroy(link));
    EXPECT_EQ(driver().cuLinkDestroy(link), CUDA_ERROR_INVALID_HANDLE);
    CUmodule module = nullptr;
    const std::vector<char> wrong = linked(kernel_text("tcgen05.magic.b32 %r0, %r1; ret;"));
    EXPECT_EQ(driver().cuModuleLoadData(&module, wrong.data()), CUDA_ERROR_INVALID_PTX);
}

TEST_F(EmulatedDriverTest, wrong_arguments_are_errors) {
    CUdeviceptr address = 0;
    int host = 0;
    EXPECT_EQ(driver().cuMemAlloc_v2(&address, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(driver().cuMemAlloc_v2(nullptr, 4), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(driver().cuMemAlloc_v2(&address, size_t(1) << 60), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_OK(cuMemAlloc_v2(&address, 16));
    EXPECT_EQ(driver().cuMemcpyHtoD_v2(address + 14, &host, 4), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(driver().cuMemcpyHtoD_v2(reinterpret_cast<CUdeviceptr>(&host), &host, 4), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(driver().cuMemcpyHtoD_v2(address, reinterpret_cast<void*>(address), 4), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(driver().cuMemcpyDtoH_v2(nullptr, address, 4), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(driver().cuDeviceGetCount(nullptr), CUDA_ERROR_INVALID_VALUE);
    CUdevice device;
    EXPECT_EQ(driver().cuDeviceGet(&device, 2), CUDA_ERROR_INVALID_DEVICE);
    EXPECT_EQ(driver().cuStreamSynchronize(reinterpret_cast<CUstream>(&host)), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(driver().cuModuleUnload(reinterpret_cast<CUmodule>(&host)), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(driver().cuCtxSetCurrent(reinterpret_cast<CUcontext>(&host)), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_OK(cuCtxSetCurrent(nullptr));
    EXPECT_EQ(driver().cuMemAlloc_v2(&address, 4), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_OK(cuCtxSetCurrent(context));
}

TEST_F(EmulatedDriverTest, launches_beyond_the_limits_are_errors) {
    CUfunction kernel = function(
        ".version 8.0\n.target sm_80\n.address_size 64\n.entry kernel() .maxntid 64, 1, 1 { .shared .b8 own[1024]; "
        "ret; }");
    EXPECT_EQ(launch(kernel, 1, 64), CUDA_SUCCESS);
    EXPECT_EQ(launch(kernel, 1, 65), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    EXPECT_EQ(launch(kernel, 0, 32), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(launch(kernel, 1, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(launch(kernel, 1, 2048), CUDA_ERROR_INVALID_VALUE);
    const auto with_shared = [&](unsigned bytes) {
        return driver().cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, bytes, nullptr, nullptr, nullptr);
    };
    EXPECT_EQ(with_shared(49152 - 1024), CUDA_SUCCESS);
    EXPECT_EQ(with_shared(49152 - 1023), CUDA_ERROR_INVALID_VALUE);
    EXPECT_OK(cuFuncSetAttribute(kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000));
    EXPECT_EQ(with_shared(100000), CUDA_SUCCESS);
    EXPECT_EQ(driver().cuFuncSetAttribute(kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 232448),
              CUDA_ERROR_INVALID_VALUE);
    int value = 0;
    EXPECT_OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel));
    EXPECT_EQ(value, 64);
    EXPECT_OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, kernel));
    EXPECT_EQ(value, 1024);
}

TEST_F(EmulatedDriverTest, parameters_in_one_buffer) {
    CUfunction kernel =
        function(kernel_text("ld.param.b64 %d0, [a]; ld.param.b64 %d1, [c]; st.global.b64 [%d0], %d1; ret;"));
    const CUdeviceptr out = allocated(8);
    uint64_t block[] = {out, 0, 77, 0};
    size_t size = sizeof block;
    void* extra[] = {reinterpret_cast<void*>(1), block, reinterpret_cast<void*>(2), &size, nullptr};
    const auto go = [&] { return driver().cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra); };
    EXPECT_EQ(go(), CUDA_SUCCESS);
    uint64_t found = 0;
    EXPECT_OK(cuMemcpyDtoH_v2(&found, out, 8));
    EXPECT_EQ(found, 77u);
    size = 24;
    EXPECT_EQ(go(), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(driver().cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr),
              CUDA_ERROR_INVALID_VALUE);
}

// A launch that packs them wrongly would do this.
TEST_F(EmulatedDriverTest, parameters_one_by_one_that_are_missing_or_in_another_order) {
    CUfunction kernel =
        function(kernel_text("ld.param.b64 %d0, [a]; ld.param.b64 %d1, [c]; st.global.b64 [%d0], %d1; ret;"));
    CUdeviceptr out = allocated(8);
    uint64_t number = 77, nothing = 0;
    const auto go = [&](std::vector<void*> parameters) {
        return driver().cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters.data(), nullptr);
    };
    EXPECT_EQ(go({&out, &nothing, nullptr, &nothing}), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(go({&out, &nothing, &number, &nothing}), CUDA_SUCCESS);
    uint64_t found = 0;
    EXPECT_OK(cuMemcpyDtoH_v2(&found, out, 8));
    EXPECT_EQ(found, 77u);
    EXPECT_EQ(go({&number, &nothing, &out, &nothing}), CUDA_SUCCESS);
    EXPECT_EQ(driver().cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_NE(std::string(driver().last_fault()).find("0x4d"), std::string::npos) << driver().last_fault();
}

TEST_F(EmulatedDriverTest, copies_in_rows_and_fills) {
    const CUdeviceptr a = allocated(64);
    EXPECT_OK(cuMemsetD32_v2(a, 0x01020304, 16));
    EXPECT_OK(cuMemsetD2D8_v2(a + 1, 16, 9, 2, 3));
    uint8_t rows[12] = {};
    CUDA_MEMCPY2D copied{};
    copied.srcMemoryType = CU_MEMORYTYPE_DEVICE, copied.srcDevice = a, copied.srcPitch = 16, copied.srcY = 1;
    copied.dstMemoryType = CU_MEMORYTYPE_HOST, copied.dstHost = rows, copied.dstPitch = 4;
    copied.WidthInBytes = 4, copied.Height = 3;
    EXPECT_OK(cuMemcpy2D_v2(&copied));
    EXPECT_EQ(std::vector<uint8_t>(rows, rows + 12), (std::vector<uint8_t>{4, 9, 9, 1, 4, 9, 9, 1, 4, 3, 2, 1}));
    EXPECT_EQ(driver().cuMemsetD32_v2(a + 2, 0, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(driver().cuMemsetD8_v2(a, 0, 65), CUDA_ERROR_INVALID_VALUE);
    uint16_t words[4] = {};
    EXPECT_OK(cuMemsetD16_v2(a, 0x1234, 4));
    EXPECT_OK(cuMemcpy(reinterpret_cast<CUdeviceptr>(words), a, 8));
    EXPECT_EQ(words[3], 0x1234);
}

TEST_F(EmulatedDriverTest, what_was_never_written_is_not_written_by_a_copy) {
    const CUdeviceptr a = allocated(64), b = allocated(64);
    EXPECT_OK(cuMemcpyDtoD_v2(b, a, 64));
    const std::string text = kernel_text("ld.param.b64 %d0, [a]; ld.global.b32 %r0, [%d0]; ret;");
    EXPECT_EQ(launch(function(text), 1, 1, b, b, b, b), CUDA_SUCCESS);
    EXPECT_EQ(driver().cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
    EXPECT_NE(std::string(driver().last_fault()).find("uninitialised read"), std::string::npos);
}

TEST_F(EmulatedDriverTest, pinned_memory_is_seen_by_kernels) {
    void* memory = nullptr;
    EXPECT_OK(cuMemHostAlloc(&memory, 64, 0));
    CUdeviceptr address = 0;
    EXPECT_OK(cuMemHostGetDevicePointer_v2(&address, memory, 0));
    CUfunction kernel = function(kernel_text("ld.param.b64 %d0, [a]; mov.b32 %r0, 5; st.global.b32 [%d0], %r0; ret;"));
    EXPECT_EQ(launch(kernel, 1, 1, address, address, address, address), CUDA_SUCCESS);
    EXPECT_OK(cuCtxSynchronize());
    EXPECT_EQ(*static_cast<int*>(memory), 5);
    int type = 0;
    EXPECT_OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address));
    EXPECT_EQ(type, CU_MEMORYTYPE_HOST);
    EXPECT_OK(cuMemFreeHost(memory));
    EXPECT_EQ(driver().cuMemFreeHost(memory), CUDA_ERROR_INVALID_VALUE);
    int registered = 0;
    EXPECT_OK(cuMemHostRegister_v2(&registered, 4, 0));
    EXPECT_EQ(driver().cuMemHostRegister_v2(&registered, 4, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    EXPECT_OK(cuMemHostUnregister(&registered));
    EXPECT_EQ(driver().cuMemHostUnregister(&registered), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

TEST_F(EmulatedDriverTest, streams_events_and_pools) {
    CUstream stream = nullptr;
    CUevent begin = nullptr, end = nullptr;
    EXPECT_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    EXPECT_OK(cuEventCreate(&begin, 0));
    EXPECT_OK(cuEventCreate(&end, 0));
    float milliseconds = -1;
    EXPECT_EQ(driver().cuEventElapsedTime_v2(&milliseconds, begin, end), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_OK(cuEventRecord(begin, stream));
    CUdeviceptr address = 0;
    EXPECT_OK(cuMemAllocAsync(&address, 1 << 20, stream));
    CUmemoryPool pool = nullptr;
    uint64_t used = 0;
    EXPECT_OK(cuDeviceGetDefaultMemPool(&pool, 0));
    EXPECT_OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
    EXPECT_EQ(used, uint64_t(1) << 20);
    EXPECT_OK(cuMemFreeAsync(address, stream));
    EXPECT_EQ(driver().cuMemFreeAsync(address, stream), CUDA_ERROR_INVALID_VALUE);
    EXPECT_OK(cuStreamSynchronize(stream));
    EXPECT_OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
    EXPECT_EQ(used, 0u);
    EXPECT_OK(cuEventRecord(end, stream));
    EXPECT_OK(cuStreamWaitEvent(nullptr, end, 0));
    EXPECT_OK(cuEventSynchronize(end));
    EXPECT_OK(cuEventElapsedTime_v2(&milliseconds, begin, end));
    EXPECT_GE(milliseconds, 0);
    EXPECT_OK(cuEventDestroy_v2(begin));
    EXPECT_EQ(driver().cuEventDestroy_v2(begin), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_OK(cuStreamDestroy_v2(stream));
    EXPECT_EQ(driver().cuStreamQuery(stream), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(EmulatedDriverTest, two_devices_have_memory_of_their_own) {
    CUcontext other = nullptr;
    EXPECT_OK(cuDevicePrimaryCtxRetain(&other, 1));
    const CUdeviceptr here = allocated(4);
    EXPECT_OK(cuMemsetD32_v2(here, 42, 1));
    EXPECT_OK(cuCtxPushCurrent_v2(other));
    const CUdeviceptr there = allocated(4);
    int device = -1, found = 0;
    EXPECT_OK(cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, there));
    EXPECT_EQ(device, 1);
    EXPECT_OK(cuMemcpyPeer(there, other, here, context, 4));
    EXPECT_OK(cuMemcpyDtoH_v2(&found, there, 4));
    EXPECT_EQ(found, 42);
    CUcontext popped = nullptr;
    EXPECT_OK(cuCtxPopCurrent_v2(&popped));
    EXPECT_EQ(popped, other);
    EXPECT_OK(cuDevicePrimaryCtxRelease_v2(1));
    EXPECT_EQ(driver().cuDevicePrimaryCtxRelease_v2(1), CUDA_ERROR_INVALID_CONTEXT);
}

class EmulatedPeers : public EmulatedDriverTest {
protected:
    void SetUp() override {
        EmulatedDriverTest::SetUp();
        EXPECT_OK(cuDevicePrimaryCtxRetain(&other, 1));
        copy = function(R"(.version 8.7
.target sm_90
.address_size 64
.visible .entry kernel(.param .u64 to, .param .u64 from) {
.reg .b64 %rd<2>;
.reg .b32 %r<1>;
ld.param.u64 %rd0, [to];
ld.param.u64 %rd1, [from];
ld.global.u32 %r0, [%rd1];
st.global.u32 [%rd0], %r0;
ret;
}
)");
        here = allocated(4);
        EXPECT_OK(cuMemsetD32_v2(here, 0, 1));
    }
    void TearDown() override {
        EXPECT_OK(cuDevicePrimaryCtxRelease_v2(1));
        EmulatedDriverTest::TearDown();
    }
    // Memory of the other device that holds 42.
    template <class Allocate>
    CUdeviceptr made_there(Allocate allocate) {
        CUdeviceptr address = 0;
        CUcontext popped = nullptr;
        EXPECT_OK(cuCtxPushCurrent_v2(other));
        allocate(&address);
        EXPECT_OK(cuMemsetD32_v2(address, 42, 1));
        EXPECT_OK(cuCtxSynchronize());
        EXPECT_OK(cuCtxPopCurrent_v2(&popped));
        return address;
    }
    CUdeviceptr plain_there() {
        return made_there([](CUdeviceptr* address) { EXPECT_OK(cuMemAlloc_v2(address, 4)); });
    }
    CUdeviceptr pooled_there() {
        return made_there([](CUdeviceptr* address) { EXPECT_OK(cuMemAllocAsync(address, 4, nullptr)); });
    }
    // The value that a kernel here reads there; -1 if it is stopped.
    int read(CUdeviceptr there) {
        EXPECT_EQ(launch(copy, 1, 1, here, there), CUDA_SUCCESS);
        return driver().cuCtxSynchronize() == CUDA_SUCCESS ? value_at(here) : -1;
    }
    CUresult open_pool(int flags) {
        CUmemoryPool pool = nullptr;
        EXPECT_OK(cuDeviceGetDefaultMemPool(&pool, 1));
        const CUmemAccessDesc access{CU_MEM_LOCATION_TYPE_DEVICE, 0, flags};
        return driver().cuMemPoolSetAccess(pool, &access, 1);
    }

    CUcontext other = nullptr;
    CUfunction copy = nullptr;
    CUdeviceptr here = 0;
};

TEST_F(EmulatedPeers, plain_memory_is_opened_by_the_context) {
    const CUdeviceptr plain = plain_there(), pooled = pooled_there();
    EXPECT_OK(cuCtxEnablePeerAccess(other, 0));
    EXPECT_EQ(driver().cuCtxEnablePeerAccess(other, 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    EXPECT_EQ(read(plain), 42);
    EXPECT_EQ(driver().cuMemcpyDtoDAsync_v2(here, pooled, 4, nullptr), CUDA_ERROR_INVALID_VALUE);
    EXPECT_NE(std::string(driver().last_fault()).find("no peer access"), std::string::npos) << driver().last_fault();
    EXPECT_OK(cuMemcpyDtoDAsync_v2(here, plain, 4, nullptr));
    EXPECT_OK(cuCtxSynchronize());  // or the copy would come when the memory is closed
    EXPECT_OK(cuCtxDisablePeerAccess(other));
    EXPECT_EQ(driver().cuMemsetD32_v2(plain, 1, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT_OK(cuMemcpyPeerAsync(here, context, plain, other, 4, nullptr));
    EXPECT_EQ(read(plain), -1);
    EXPECT_NE(std::string(driver().last_fault()).find("which needs cuCtxEnablePeerAccess"), std::string::npos)
        << driver().last_fault();
}

TEST_F(EmulatedPeers, memory_of_a_pool_is_opened_by_the_pool) {
    const CUdeviceptr pooled = pooled_there();
    EXPECT_EQ(open_pool(CU_MEM_ACCESS_FLAGS_PROT_READWRITE), CUDA_SUCCESS);
    EXPECT_EQ(read(pooled), 42);
    EXPECT_EQ(open_pool(CU_MEM_ACCESS_FLAGS_PROT_NONE), CUDA_SUCCESS);
    EXPECT_OK(cuCtxEnablePeerAccess(other, 0));  // is not for pools
    EXPECT_EQ(read(pooled), -1);
    EXPECT_NE(std::string(driver().last_fault()).find("which needs cuMemPoolSetAccess"), std::string::npos)
        << driver().last_fault();
}

// Memory that a graph allocates is of the pool of its device.
TEST_F(EmulatedPeers, memory_of_a_graph_is_opened_by_the_pool) {
    CUcontext popped = nullptr;
    CUstream stream = nullptr;
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    CUdeviceptr memory = 0;
    EXPECT_EQ(open_pool(CU_MEM_ACCESS_FLAGS_PROT_READWRITE), CUDA_SUCCESS);
    EXPECT_OK(cuCtxPushCurrent_v2(other));
    EXPECT_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    EXPECT_OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    EXPECT_OK(cuMemAllocAsync(&memory, 4, stream));
    EXPECT_OK(cuMemsetD32Async(memory, 42, 1, stream));
    EXPECT_OK(cuStreamEndCapture(stream, &graph));
    EXPECT_OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    EXPECT_OK(cuGraphLaunch(exec, stream));
    EXPECT_OK(cuStreamSynchronize(stream));
    EXPECT_OK(cuCtxPopCurrent_v2(&popped));
    EXPECT_EQ(read(memory), 42);
    EXPECT_EQ(open_pool(CU_MEM_ACCESS_FLAGS_PROT_NONE), CUDA_SUCCESS);
    EXPECT_EQ(read(memory), -1);
    EXPECT_NE(std::string(driver().last_fault()).find("which needs cuMemPoolSetAccess"), std::string::npos)
        << driver().last_fault();
}

// ---- contexts ----

TEST_F(EmulatedDriverTest, contexts_of_one_device_have_their_own_streams_and_memory) {
    CUcontext made = nullptr, current = nullptr;
    EXPECT_OK(cuCtxCreate_v4(&made, nullptr, 0, 1));
    EXPECT_OK(cuCtxGetCurrent(&current));
    EXPECT_EQ(current, made);
    EXPECT_NE(made, context);
    CUdevice device = -1;
    EXPECT_OK(cuCtxGetDevice(&device));
    EXPECT_EQ(device, 1);
    CUstream stream = nullptr;
    CUevent event = nullptr;
    EXPECT_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    EXPECT_OK(cuEventCreate(&event, 0));
    const CUdeviceptr memory = allocated(4);
    CUcontext owner = nullptr;
    EXPECT_OK(cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, memory));
    EXPECT_EQ(owner, made);
    EXPECT_OK(cuMemsetD32Async(memory, 7, 1, stream));
    EXPECT_OK(cuEventRecord(event, stream));
    EXPECT_OK(cuCtxPopCurrent_v2(&current));
    EXPECT_EQ(current, made);
    EXPECT_EQ(driver().cuEventRecord(event, nullptr), CUDA_ERROR_INVALID_HANDLE);  // a stream of another context
    EXPECT_OK(cuStreamWaitEvent(nullptr, event, 0));
    EXPECT_OK(cuStreamSynchronize(nullptr));
    EXPECT_OK(cuEventQuery(event));
    EXPECT_OK(cuCtxPushCurrent_v2(made));
    EXPECT_EQ(value_at(memory), 7);
    EXPECT_OK(cuCtxPopCurrent_v2(&current));
    EXPECT_EQ(driver().cuCtxDestroy_v2(context), CUDA_ERROR_INVALID_CONTEXT);  // a primary one
    EXPECT_OK(cuCtxDestroy_v2(made));
    EXPECT_EQ(driver().cuCtxPushCurrent_v2(made), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(driver().cuStreamSynchronize(stream), CUDA_ERROR_INVALID_HANDLE);
    int value = 0;
    EXPECT_NE(driver().cuMemcpyDtoH_v2(&value, memory, 4), CUDA_SUCCESS);
    EXPECT_EQ(driver().cuCtxCreate_v4(&made, nullptr, 0, 9), CUDA_ERROR_INVALID_DEVICE);
    EXPECT_EQ(driver().cuCtxCreate_v4(nullptr, nullptr, 0, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(EmulatedDriverTest, a_pool_keeps_what_its_threshold_says) {
    CUmemoryPool pool = nullptr;
    EXPECT_OK(cuDeviceGetDefaultMemPool(&pool, 0));
    const auto reserved = [&] {
        uint64_t bytes = 0;
        EXPECT_OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &bytes));
        return bytes;
    };
    uint64_t threshold = 1000, used = 1;
    EXPECT_OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
    CUdeviceptr address = 0;
    EXPECT_OK(cuMemAllocAsync(&address, 4000, nullptr));
    EXPECT_EQ(reserved(), 4000u);
    EXPECT_OK(cuMemFreeAsync(address, nullptr));
    EXPECT_OK(cuStreamSynchronize(nullptr));
    EXPECT_EQ(reserved(), 1000u);
    size_t free_bytes = 0, total = 0;
    EXPECT_OK(cuMemGetInfo_v2(&free_bytes, &total));
    EXPECT_EQ(total - free_bytes, 1000u);
    EXPECT_OK(cuMemAllocAsync(&address, 600, nullptr));  // from what is kept
    EXPECT_EQ(reserved(), 1000u);
    EXPECT_OK(cuMemPoolTrimTo(pool, 0));
    EXPECT_EQ(reserved(), 600u);
    EXPECT_OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
    EXPECT_EQ(used, 600u);
    EXPECT_EQ(driver().cuMemFreeAsync(allocated(8), nullptr), CUDA_ERROR_INVALID_VALUE);  // is no pool's
    threshold = 0;
    EXPECT_OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
}

TEST_F(EmulatedDriverTest, globals_errors_and_addresses_of_functions) {
    CUmodule module = nullptr;
    EXPECT_OK(cuModuleLoadData(&module, ptx_file("kernels.ptx").c_str()));
    CUdeviceptr address = 0;
    size_t bytes = 0;
    EXPECT_OK(cuModuleGetGlobal_v2(&address, &bytes, module, "weights"));
    EXPECT_EQ(bytes, 16u);
    int weights[4];
    EXPECT_OK(cuMemcpyDtoH_v2(weights, address, 16));
    EXPECT_EQ(weights[3], 7);
    EXPECT_EQ(driver().cuModuleGetGlobal_v2(&address, &bytes, module, "no_such_name"), CUDA_ERROR_NOT_FOUND);
    CUfunction kernel = nullptr;
    EXPECT_EQ(driver().cuModuleGetFunction(&kernel, module, "fibonacci"), CUDA_ERROR_NOT_FOUND);
    EXPECT_OK(cuModuleUnload(module));
    EXPECT_EQ(driver().cuMemcpyDtoH_v2(weights, address, 16), CUDA_ERROR_INVALID_VALUE);
    const char* text = nullptr;
    EXPECT_OK(cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &text));
    EXPECT_STREQ(text, "CUDA_ERROR_ILLEGAL_ADDRESS");
    EXPECT_EQ(driver().cuGetErrorName(CUresult(12345), &text), CUDA_ERROR_INVALID_VALUE);
    void* found = nullptr;
    int status = -1;
    EXPECT_OK(cuGetProcAddress_v2("cuMemAlloc", &found, 13000, 0, &status));
    EXPECT_EQ(found, reinterpret_cast<void*>(driver().cuMemAlloc_v2));
    EXPECT_EQ(driver().cuGetProcAddress_v2("cuNoSuchFunction", &found, 13000, 0, nullptr), CUDA_ERROR_NOT_FOUND);
}

TEST_F(EmulatedDriverTest, the_host_cannot_touch_device_memory) {
    const CUdeviceptr address = allocated(64);
    EXPECT_DEATH(*reinterpret_cast<volatile int*>(address) = 1, "");
}

}  // namespace

}  // namespace weft::emulator
