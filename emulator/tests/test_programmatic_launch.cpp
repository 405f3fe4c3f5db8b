// Programmatic dependent launches: a launch that does not wait for the one in front comes too early.
#include "driver.h"

namespace weft::emulator {

namespace {

// Writes 7 to a; lets dependent launches begin if asked.
std::string writer(bool lets_others_begin) {
    return kernel_text(std::string(lets_others_begin ? "griddepcontrol.launch_dependents;" : "") +
                       "ld.param.b64 %d0, [a]; mov.b32 %r0, 7; st.global.b32 [%d0], %r0; ret;");
}

// Copies a to b; waits first if asked.
std::string reader(bool waits) {
    return kernel_text(std::string(waits ? "griddepcontrol.wait;" : "") +
                       "ld.param.b64 %d0, [a]; ld.param.b64 %d1, [b];"
                       "ld.global.b32 %r0, [%d0]; st.global.b32 [%d1], %r0; ret;");
}

class EmulatedProgrammaticLaunch : public EmulatedDriverTest {
protected:
    void SetUp() override {
        EmulatedDriverTest::SetUp();
        EXPECT_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        a = allocated(4), b = allocated(4);
        EXPECT_OK(cuMemsetD32_v2(a, 0, 1));
        EXPECT_OK(cuMemsetD32_v2(b, 1, 1));
        EXPECT_OK(cuCtxSynchronize());
    }
    CUresult launch_early(CUfunction kernel, int allowed = 1) {
        CUlaunchAttribute attribute{};
        attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
        attribute.value.programmaticStreamSerializationAllowed = allowed;
        const CUlaunchConfig config{1, 1, 1, 1, 1, 1, 0, stream, &attribute, 1};
        uint64_t none = 0;
        void* parameters[] = {&a, &b, &none, &none};
        return driver().cuLaunchKernelEx(&config, kernel, parameters, nullptr);
    }
    void launch_both(bool lets_others_begin, bool waits, int allowed = 1) {
        EXPECT_EQ(launch_in(stream, function(writer(lets_others_begin)), 1, 1, a, b, uint64_t(0), uint64_t(0)),
                  CUDA_SUCCESS);
        EXPECT_EQ(launch_early(function(reader(waits)), allowed), CUDA_SUCCESS);
    }
    // The number that the second kernel has read, and with it the order.
    int read_by_second() {
        EXPECT_OK(cuStreamSynchronize(stream));
        EXPECT_EQ(value_at(a), 7);
        return value_at(b);
    }
    CUstream stream = nullptr;
    CUdeviceptr a = 0, b = 0;
};

TEST_F(EmulatedProgrammaticLaunch, one_that_waits_sees_the_memory_of_the_one_in_front) {
    launch_both(true, true);
    EXPECT_EQ(read_by_second(), 7);
}

TEST_F(EmulatedProgrammaticLaunch, one_that_does_not_wait_comes_too_early) {
    launch_both(true, false);
    EXPECT_EQ(read_by_second(), 0);
}

TEST_F(EmulatedProgrammaticLaunch, without_the_trigger_or_the_permission_it_comes_after) {
    launch_both(false, false);
    EXPECT_EQ(read_by_second(), 7);
    EXPECT_OK(cuMemsetD32_v2(a, 0, 1));
    EXPECT_OK(cuCtxSynchronize());
    launch_both(true, false, 0);
    EXPECT_EQ(read_by_second(), 7);
}

TEST_F(EmulatedProgrammaticLaunch, later_work_comes_after_both) {
    launch_both(true, false);
    EXPECT_OK(cuMemsetD32Async(a, 9, 1, stream));
    EXPECT_OK(cuStreamSynchronize(stream));
    EXPECT_EQ(value_at(a), 9);
    EXPECT_EQ(value_at(b), 0);
}

TEST_F(EmulatedProgrammaticLaunch, graphs_have_the_same_order) {
    for (const bool waits : {true, false}) {
        EXPECT_OK(cuMemsetD32_v2(a, 0, 1));
        EXPECT_OK(cuCtxSynchronize());
        CUfunction first = function(writer(true)), second = function(reader(waits));
        CUgraph graph = nullptr;
        CUgraphExec executable = nullptr;
        EXPECT_OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
        EXPECT_EQ(launch_in(stream, first, 1, 1, a, b, uint64_t(0), uint64_t(0)), CUDA_SUCCESS);
        EXPECT_EQ(launch_early(second), CUDA_SUCCESS);
        EXPECT_OK(cuStreamEndCapture(stream, &graph));
        EXPECT_OK(cuGraphInstantiateWithFlags(&executable, graph, 0));
        EXPECT_OK(cuGraphLaunch(executable, stream));
        EXPECT_EQ(read_by_second(), waits ? 7 : 0);
        EXPECT_OK(cuGraphExecDestroy(executable));
        EXPECT_OK(cuGraphDestroy(graph));
    }
}

}  // namespace

}  // namespace weft::emulator
