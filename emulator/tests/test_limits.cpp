// Refusals of the driver: modules that use what their PTX version, target or device does not have, and launches that
// need more than a device has. ptxas is asked about the same opcodes in tests/tools/test_ptx_requirements.py.
#include <algorithm>

#include "driver.h"
#include "ptx/registers.h"
#include "ptx/requirements.h"

namespace weft::emulator {

namespace {

// The text with another version or target.
std::string with(std::string text, const std::string& version, const std::string& target = "sm_90") {
    text.replace(text.find("8.7"), 3, version);
    text.replace(text.find("sm_90"), 5, target);
    return text;
}

class EmulatedLimitsTest : public EmulatedDriverTest {
protected:
    // "" if the module is loaded, else the log.
    std::string refusal(const std::string& text, CUresult expected = CUDA_ERROR_INVALID_PTX) {
        char log[512] = "";
        CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
        void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
        CUmodule module = nullptr;
        const CUresult result = driver().cuModuleLoadDataEx(&module, text.c_str(), 2, options, values);
        if (result == CUDA_SUCCESS) {
            EXPECT_OK(cuModuleUnload(module));
            return "";
        }
        EXPECT_EQ(result, expected) << log;
        return log;
    }
    int attribute(CUdevice_attribute which) {
        int value = -1;
        EXPECT_OK(cuDeviceGetAttribute(&value, which, 0));
        return value;
    }
    int attribute(CUfunction kernel, CUfunction_attribute which) {
        int value = -1;
        EXPECT_OK(cuFuncGetAttribute(&value, which, kernel));
        return value;
    }
};

TEST_F(EmulatedLimitsTest, instructions_need_their_version_of_ptx) {
    const std::string text = kernel_text("redux.sync.add.s32 %r0, %r1, -1; ret;");
    EXPECT_EQ(refusal(text), "");
    EXPECT_EQ(refusal(with(text, "7.0", "sm_80")), "");
    EXPECT_EQ(refusal(with(text, "6.3", "sm_75")),
              "line 8: 'redux.sync.add.s32' needs .target sm_80 or later, and this is sm_75");
    EXPECT_EQ(refusal(with(kernel_text("elect.sync %r0|%p0, -1; ret;"), "7.8")),
              "line 8: 'elect.sync' needs PTX .version 8.0 or later, and this is 7.8");
    EXPECT_EQ(ptx::requirement_of_special("%clusterid.x").architecture, 90);
    EXPECT_EQ(ptx::requirement_of_special("%tid.x").architecture, 0);
}

TEST_F(EmulatedLimitsTest, targets_need_their_version_of_ptx) {
    EXPECT_EQ(refusal(with(kernel_text("ret;"), "7.7")),
              "line 1: PTX .version 7.7 has no .target sm_90; it is there from 7.8 on");
    EXPECT_EQ(refusal(with(kernel_text("ret;"), "6.3", "sm_75")), "");
    EXPECT_EQ(refusal(with(kernel_text("ret;"), "8.7", "sm_120")),
              "the target sm_120 is newer than this device, sm_90");
    EXPECT_EQ(refusal(with(kernel_text("ret;"), "8.7", "sm_90a")), "");
    EXPECT_EQ(refusal(with(kernel_text("ret;"), "9.1"), CUDA_ERROR_UNSUPPORTED_PTX_VERSION),
              "PTX version 9.1 is newer than this driver's, 9.0");
}

TEST(PtxRequirements, drivers_know_the_ptx_of_their_cuda) {
    EXPECT_EQ(ptx::version_of_driver(10020), 0);
    EXPECT_EQ(ptx::version_of_driver(11080), 78);
    EXPECT_EQ(ptx::version_of_driver(12060), 85);
    EXPECT_EQ(ptx::version_of_driver(12080), 87);
    EXPECT_EQ(ptx::version_of_driver(13000), 90);
}

TEST_F(EmulatedLimitsTest, parameters_have_4_or_32_kilobytes) {
    const auto text = [](size_t bytes) {
        return ".version 8.7\n.target sm_90\n.address_size 64\n.visible .entry kernel(.param .b64 a, .param .b8 b[" +
               std::to_string(bytes - 8) + "]) { ret; }\n";
    };
    EXPECT_EQ(refusal(text(32764)), "");
    EXPECT_EQ(refusal(text(32765)), "line 4: the parameters of 'kernel' have 32765 bytes; the most is 32764");
    EXPECT_EQ(refusal(with(text(4352), "8.0")), "");
    EXPECT_EQ(
        refusal(with(text(4353), "8.0")),
        "line 4: the parameters of 'kernel' have 4353 bytes; the most is 4352, and 32764 from PTX .version 8.1 on");
}

TEST_F(EmulatedLimitsTest, constants_have_64_kilobytes) {
    EXPECT_EQ(refusal(kernel_text("ret;", ".const .b8 table[65536];")), "");
    EXPECT_EQ(refusal(kernel_text("ret;", ".const .b8 table[65537];")),
              "the module has 65537 bytes of constants; 65536 is the most");
}

TEST_F(EmulatedLimitsTest, local_memory_has_512_kilobytes_a_thread) {
    const auto text = [](size_t bytes) {
        return kernel_text(".local .align 16 .b8 x[" + std::to_string(bytes) +
                           "]; mov.u64 %d0, x; st.local.b8 [x], %r0; ret;");
    };
    const uint64_t none = 0;
    EXPECT_EQ(launch(function(text(524288)), 1, 1, none, none, none, none), CUDA_SUCCESS);
    EXPECT_EQ(launch(function(text(524304)), 1, 1, none, none, none, none), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    EXPECT_EQ(std::string(driver().last_fault()),
              "the kernel 'kernel' needs 524304 bytes of local memory a thread; 524288 is the most");
    EXPECT_OK(cuCtxSynchronize());
}

TEST_F(EmulatedLimitsTest, dynamic_shared_memory_has_the_limit_of_the_architecture) {
    CUfunction kernel = function(kernel_text("ret;", ".extern .shared .b8 rest[];"));
    EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN), 232448);
    void* parameters[] = {nullptr, nullptr, nullptr, nullptr};
    uint64_t none = 0;
    std::ranges::fill(parameters, &none);
    const auto launched = [&](unsigned bytes) {
        return driver().cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, bytes, nullptr, parameters, nullptr);
    };
    EXPECT_EQ(launched(49152), CUDA_SUCCESS);
    EXPECT_EQ(launched(49153), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(driver().cuFuncSetAttribute(kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 232449),
              CUDA_ERROR_INVALID_VALUE);
    EXPECT_OK(cuFuncSetAttribute(kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 232448));
    EXPECT_EQ(launched(232448), CUDA_SUCCESS);
    EXPECT_OK(cuCtxSynchronize());
}

// ---- registers ----

// A kernel that holds `count` loaded numbers of 32 bits at once, and adds them.
std::string holding(int count, const std::string& directives = "") {
    std::string body =
        "ld.param.b64 %d0, [a]; ld.param.b64 %d1, [b];\n.reg .b32 %v<" + std::to_string(count + 1) + ">;\n";
    for (int i = 0; i < count; ++i)
        body += "ld.global.b32 %v" + std::to_string(i) + ", [%d0+" + std::to_string(4 * i) + "];\n";
    body += "mov.b32 %r0, 0;\n";
    for (int i = 0; i < count; ++i) body += "add.s32 %r0, %r0, %v" + std::to_string(i) + ";\n";
    std::string text = kernel_text(body + "st.global.b32 [%d1], %r0; ret;");
    text.insert(text.find("\n{\n"), directives);
    return text;
}

int live_in(const std::string& body) {
    const ptx::Module module = ptx::parse(kernel_text(body));
    return ptx::live_registers(module.functions.front());
}

TEST(PtxRegisters, are_counted_by_what_lives_at_once) {
    // one value after the other
    EXPECT_EQ(
        live_in("ld.global.b32 %r0, [a]; st.global.b32 [b], %r0; ld.global.b32 %r1, [a]; st.global.b32 [b], %r1;"), 1);
    EXPECT_EQ(live_in("ld.global.b32 %r0, [a]; ld.global.b32 %r1, [a]; add.s32 %r2, %r0, %r1; st.global.b32 [b], %r2;"),
              2);
    // two of 32 bits for one of 64; predicates have their own
    EXPECT_EQ(live_in("ld.global.b64 %d0, [a]; setp.eq.b64 %p0, %d0, 0; @%p0 st.global.b64 [b], %d0;"), 2);
    // parameters, constants and special registers are made again
    EXPECT_EQ(live_in("ld.param.b64 %d0, [a]; mov.u32 %r0, %tid.x; mov.b32 %r1, 7; cvta.to.global.u64 %d1, %d0;"
                      "st.global.b32 [%d1], %r0; st.global.b32 [%d1], %r1;"),
              0);
    EXPECT_EQ(live_in(""), 0);
}

TEST(PtxRegisters, live_around_loops_and_through_branches) {
    // %r0 lives through the loop, in which %r1 and %r2 live one after the other
    EXPECT_EQ(live_in("ld.global.b32 %r0, [a]; ld.global.b32 %r3, [a];\n"
                      "LOOP: ld.global.b32 %r1, [b]; st.global.b32 [b], %r1; ld.global.b32 %r2, [b];"
                      "st.global.b32 [b], %r2; setp.eq.b32 %p0, %r3, 0; @%p0 bra LOOP; st.global.b32 [c], %r0;"),
              2 + 1);
    // a guarded result keeps the former value
    EXPECT_EQ(live_in("ld.global.b32 %r0, [a]; setp.eq.b32 %p0, %r0, 0; ld.global.b32 %r1, [a];"
                      "@%p0 mov.b32 %r1, %r0; st.global.b32 [b], %r1;"),
              2);
    // each arm has one; the value before both lives in neither
    EXPECT_EQ(live_in("ld.global.b32 %r0, [a]; setp.eq.b32 %p0, %r0, 0; @%p0 bra ELSE;"
                      "ld.global.b32 %r1, [b]; st.global.b32 [c], %r1; bra END;\n"
                      "ELSE: ld.global.b32 %r2, [b]; st.global.b32 [c], %r2;\nEND: ret;"),
              1);
}

TEST_F(EmulatedLimitsTest, blocks_with_too_many_registers_are_refused) {
    const uint64_t none = 0;
    const CUdeviceptr x = allocated(4 * 256), sum = allocated(4);
    EXPECT_OK(cuMemsetD32_v2(x, 1, 256));
    CUfunction kernel = function(holding(100));
    EXPECT_EQ(attribute(kernel, CU_FUNC_ATTRIBUTE_NUM_REGS), 105);
    EXPECT_EQ(attribute(kernel, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK), 65536 / 112 / 32 * 32);
    EXPECT_EQ(launch(kernel, 1, 576, x, sum, none, none), CUDA_SUCCESS);
    EXPECT_EQ(launch(kernel, 1, 577, x, sum, none, none), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    EXPECT_EQ(std::string(driver().last_fault()),
              "the kernel 'kernel' needs about 105 registers a thread, and a block has 65536, too few for 577 threads");
    // it is no fault: the context goes on
    EXPECT_OK(cuCtxSynchronize());
    int blocks = -1;
    EXPECT_OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, 256, 0));
    EXPECT_EQ(blocks, 2);
    EXPECT_OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, 1024, 0));
    EXPECT_EQ(blocks, 0);
}

TEST_F(EmulatedLimitsTest, directives_bound_the_registers) {
    const uint64_t none = 0;
    const CUdeviceptr x = allocated(4 * 512), sum = allocated(4);
    EXPECT_OK(cuMemsetD32_v2(x, 1, 512));
    EXPECT_EQ(attribute(function(holding(300)), CU_FUNC_ATTRIBUTE_NUM_REGS), 255);
    EXPECT_EQ(launch(function(holding(300)), 1, 256, x, sum, none, none), CUDA_SUCCESS);
    EXPECT_EQ(launch(function(holding(300)), 1, 288, x, sum, none, none), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    for (const char* directive : {"\n.maxntid 1024, 1, 1", "\n.reqntid 1024", "\n.maxnreg 64"}) {
        CUfunction kernel = function(holding(300, directive));
        EXPECT_EQ(attribute(kernel, CU_FUNC_ATTRIBUTE_NUM_REGS), 64) << directive;
        EXPECT_EQ(launch(kernel, 1, 1024, x, sum, none, none), CUDA_SUCCESS) << directive;
    }
    EXPECT_EQ(attribute(function(holding(2, "\n.maxnreg 64")), CU_FUNC_ATTRIBUTE_NUM_REGS), 16);
    EXPECT_OK(cuCtxSynchronize());
}

TEST_F(EmulatedLimitsTest, registers_of_called_functions_count) {
    std::string text = holding(90);
    text.replace(text.find(".visible .entry kernel"), 22, ".func inner");
    text +=
        "\n.visible .entry kernel(.param .b64 a, .param .b64 b, .param .b64 c, .param .b64 d) {\n"
        ".reg .b64 %d<2>; ld.param.b64 %d0, [a];\n"
        "{ .param .b64 p0; .param .b64 p1; .param .b64 p2; .param .b64 p3; st.param.b64 [p0], %d0;"
        " st.param.b64 [p1], %d0; st.param.b64 [p2], %d0; st.param.b64 [p3], %d0;"
        " call.uni inner, (p0, p1, p2, p3); }\nret; }\n";
    EXPECT_GE(attribute(function(text), CU_FUNC_ATTRIBUTE_NUM_REGS), 95);
}

TEST_F(EmulatedLimitsTest, functions_are_found_by_the_version_of_the_program) {
    const auto status_of = [](const char* name, int version) {
        void* found = nullptr;
        int status = -1;
        EXPECT_OK(cuGetProcAddress_v2(name, &found, version, 0, &status));
        EXPECT_EQ(found != nullptr, status == CU_GET_PROC_ADDRESS_SUCCESS);
        return status;
    };
    EXPECT_EQ(status_of("cuLaunchKernelEx", 11060), CU_GET_PROC_ADDRESS_SUCCESS);
    EXPECT_EQ(status_of("cuLaunchKernelEx", 11050), CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    EXPECT_EQ(status_of("cuNoSuchFunction", 13000), CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    EXPECT_EQ(status_of("", 13000), CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    void* found = nullptr;
    EXPECT_EQ(driver().cuGetProcAddress_v2("cuMemAlloc", &found, 13000, 3, nullptr), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace

}  // namespace weft::emulator
