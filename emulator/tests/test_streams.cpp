// Streams are lazy, in an order chosen against the program; graphs are captured from them.
#include <cstdio>
#include <fstream>
#include <functional>
#include <sstream>
#include <thread>

#include "driver.h"

namespace weft::emulator {

namespace {

class EmulatedStreams : public EmulatedDriverTest {
protected:
    void SetUp() override {
        EmulatedDriverTest::SetUp();
        add =
            function(kernel_text("ld.param.b64 %d0, [a]; ld.param.b64 %d1, [b]; cvt.u32.u64 %r1, %d1; "
                                 "ld.global.b32 %r0, [%d0]; add.s32 %r0, %r0, %r1; st.global.b32 [%d0], %r0; ret;"));
        x = allocated(4);
        EXPECT_OK(cuMemsetD32_v2(x, 0, 1));
        EXPECT_OK(cuCtxSynchronize());
    }
    CUstream stream(unsigned flags = CU_STREAM_NON_BLOCKING) {
        CUstream made = nullptr;
        EXPECT_OK(cuStreamCreate(&made, flags));
        return made;
    }
    CUevent event() {
        CUevent made = nullptr;
        EXPECT_OK(cuEventCreate(&made, 0));
        return made;
    }
    // x += n
    CUresult add_in(CUstream in, uint64_t n, CUdeviceptr to = 0) {
        return launch_in(in, add, 1, 1, to ? to : x, n, uint64_t(0), uint64_t(0));
    }
    // The contents of memory now, without a wait.
    int peek() {
        const CUstream other = stream();
        int value = -1;
        EXPECT_OK(cuMemcpyDtoHAsync_v2(&value, x, 4, other));
        EXPECT_OK(cuStreamDestroy_v2(other));
        return value;
    }
    CUgraph captured(CUstream from) {
        CUgraph graph = nullptr;
        EXPECT_OK(cuStreamEndCapture(from, &graph));
        return graph;
    }
    CUgraphExec ready(CUgraph graph) {
        CUgraphExec made = nullptr;
        EXPECT_OK(cuGraphInstantiateWithFlags(&made, graph, 0));
        return made;
    }
    int capturing(CUstream in) {
        CUstreamCaptureStatus status = -1;
        EXPECT_OK(cuStreamIsCapturing(in, &status));
        return status;
    }
    void begin(CUstream in, int mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) {
        EXPECT_OK(cuStreamBeginCapture_v2(in, mode));
    }

    CUfunction add = nullptr;
    CUdeviceptr x = 0;
};

TEST_F(EmulatedStreams, work_is_done_when_somebody_waits) {
    const CUstream a = stream();
    EXPECT_EQ(add_in(a, 5), CUDA_SUCCESS);
    EXPECT_EQ(peek(), 0);
    EXPECT_EQ(driver().cuStreamQuery(a), CUDA_SUCCESS);  // which has done it
    EXPECT_EQ(peek(), 5);
    EXPECT_EQ(add_in(a, 1), CUDA_SUCCESS);
    EXPECT_EQ(add_in(a, 1), CUDA_SUCCESS);
    EXPECT_EQ(driver().cuStreamQuery(a), CUDA_ERROR_NOT_READY);
    EXPECT_OK(cuStreamSynchronize(a));
    EXPECT_EQ(peek(), 7);
    EXPECT_EQ(add_in(a, 1), CUDA_SUCCESS);
    EXPECT_OK(cuStreamDestroy_v2(a));  // its work will be done
    EXPECT_OK(cuCtxSynchronize());
    EXPECT_EQ(peek(), 8);
}

TEST_F(EmulatedStreams, who_asks_leaves_a_long_kernel_in_the_middle) {
    // each thread waits for the flag, and counts
    const CUfunction waiting =
        function(kernel_text("ld.param.b64 %d0, [a]; ld.param.b64 %d1, [b]; AGAIN: ld.volatile.global.b32 %r0, [%d0];\n"
                             "setp.eq.u32 %p0, %r0, 0; @%p0 bra AGAIN; atom.global.add.u32 %r1, [%d1], 1; ret;"));
    const CUdeviceptr flag = allocated(4), count = allocated(4);
    EXPECT_OK(cuMemsetD32_v2(flag, 0, 1));
    EXPECT_OK(cuMemsetD32_v2(count, 0, 1));
    EXPECT_OK(cuCtxSynchronize());
    const CUstream a = stream(), b = stream();
    const CUevent end = event();
    EXPECT_EQ(launch_in(a, waiting, 5, 64, flag, count, uint64_t(0), uint64_t(0)), CUDA_SUCCESS);
    EXPECT_OK(cuEventRecord(end, a));
    for (int i = 0; i < 2; ++i) {
        EXPECT_EQ(driver().cuStreamQuery(a), CUDA_ERROR_NOT_READY);
        EXPECT_EQ(driver().cuEventQuery(end), CUDA_ERROR_NOT_READY);
    }
    // other streams go on meanwhile
    EXPECT_EQ(add_in(b, 3), CUDA_SUCCESS);
    EXPECT_OK(cuStreamSynchronize(b));
    EXPECT_EQ(peek(), 3);
    EXPECT_EQ(driver().cuStreamQuery(a), CUDA_ERROR_NOT_READY);
    EXPECT_OK(cuMemsetD32Async(flag, 1, 1, b));
    EXPECT_OK(cuStreamSynchronize(b));
    EXPECT_OK(cuStreamSynchronize(a));
    EXPECT_EQ(driver().cuEventQuery(end), CUDA_SUCCESS);
    EXPECT_EQ(value_at(count), 320);
}

TEST_F(EmulatedStreams, events_and_the_legacy_stream_order_them) {
    const CUstream a = stream(), b = stream(), blocking = stream(0);
    const CUevent done = event();
    EXPECT_EQ(add_in(a, 1), CUDA_SUCCESS);
    EXPECT_OK(cuEventRecord(done, a));
    EXPECT_EQ(add_in(a, 10), CUDA_SUCCESS);
    EXPECT_OK(cuStreamWaitEvent(b, done, 0));
    EXPECT_EQ(driver().cuEventQuery(done), CUDA_ERROR_NOT_READY);
    EXPECT_EQ(driver().cuStreamSynchronize(b), CUDA_SUCCESS);
    EXPECT_OK(cuEventQuery(done));
    EXPECT_EQ(peek(), 1);
    // The legacy stream waits for blocking ones, and they for it; not for others.
    EXPECT_EQ(add_in(blocking, 100), CUDA_SUCCESS);
    EXPECT_EQ(value_at(x), 101);
    EXPECT_OK(cuMemsetD32_v2(x, 7, 1));
    EXPECT_EQ(peek(), 101);
    EXPECT_EQ(add_in(blocking, 1), CUDA_SUCCESS);
    EXPECT_OK(cuStreamSynchronize(blocking));
    EXPECT_EQ(peek(), 8);
    EXPECT_OK(cuStreamSynchronize(a));
    EXPECT_EQ(peek(), 18);
}

TEST_F(EmulatedStreams, pinned_memory_is_read_and_written_late) {
    const CUstream a = stream();
    int* pinned = nullptr;
    int pageable = 3;
    EXPECT_OK(cuMemAllocHost_v2(reinterpret_cast<void**>(&pinned), 4));
    *pinned = 1;
    EXPECT_OK(cuMemcpyHtoDAsync_v2(x, pinned, 4, a));
    *pinned = 2;  // too early
    EXPECT_OK(cuStreamSynchronize(a));
    EXPECT_EQ(peek(), 2);
    EXPECT_OK(cuMemcpyHtoDAsync_v2(x, &pageable, 4, a));
    pageable = 4;  // the driver has a copy
    EXPECT_OK(cuMemcpyDtoHAsync_v2(pinned, x, 4, a));
    EXPECT_EQ(*pinned, 2);
    EXPECT_OK(cuMemcpyDtoHAsync_v2(&pageable, x, 4, a));
    EXPECT_EQ(pageable, 3);
    EXPECT_EQ(*pinned, 3);
    EXPECT_OK(cuMemFreeHost(pinned));
}

TEST_F(EmulatedStreams, memory_that_is_freed_in_another_stream_too_early_is_found) {
    const CUstream a = stream(), b = stream();
    CUdeviceptr memory = 0;
    EXPECT_OK(cuMemAllocAsync(&memory, 4, a));
    EXPECT_OK(cuMemsetD32Async(memory, 0, 1, a));
    EXPECT_EQ(add_in(b, 1, memory), CUDA_SUCCESS);
    EXPECT_OK(cuMemFreeAsync(memory, a));
    EXPECT_OK(cuStreamSynchronize(a));
    EXPECT_EQ(driver().cuStreamSynchronize(b), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_NE(std::string(driver().last_fault()).find("use after free"), std::string::npos) << driver().last_fault();
    EXPECT_EQ(driver().cuStreamSynchronize(a), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_OK(cuDevicePrimaryCtxReset_v2(0));
}

// ---- capture ----

TEST_F(EmulatedStreams, a_capture_is_a_graph_that_runs_again) {
    const CUstream a = stream(), b = stream();
    const CUevent fork = event(), join = event();
    begin(a);
    EXPECT_EQ(capturing(a), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    EXPECT_EQ(add_in(a, 1), CUDA_SUCCESS);
    EXPECT_OK(cuEventRecord(fork, a));
    EXPECT_EQ(driver().cuEventQuery(fork), CUDA_ERROR_CAPTURED_EVENT);
    EXPECT_OK(cuStreamWaitEvent(b, fork, 0));
    EXPECT_EQ(add_in(b, 10), CUDA_SUCCESS);
    EXPECT_OK(cuEventRecord(join, b));
    EXPECT_OK(cuStreamWaitEvent(a, join, 0));
    EXPECT_OK(cuMemcpyDtoDAsync_v2(x, x, 4, a));
    const CUgraph graph = captured(a);
    EXPECT_EQ(capturing(b), CU_STREAM_CAPTURE_STATUS_NONE);
    size_t count = 0;
    EXPECT_OK(cuGraphGetNodes(graph, nullptr, &count));
    EXPECT_EQ(count, 3u);
    const CUgraphExec exec = ready(graph);
    EXPECT_OK(cuGraphDestroy(graph));
    EXPECT_OK(cuCtxSynchronize());
    EXPECT_EQ(peek(), 0);
    for (int i = 1; i <= 3; ++i) {
        EXPECT_OK(cuGraphLaunch(exec, b));
        EXPECT_EQ(peek(), 11 * (i - 1));
        EXPECT_OK(cuStreamSynchronize(b));
        EXPECT_EQ(peek(), 11 * i);
    }
    EXPECT_OK(cuGraphExecDestroy(exec));
    EXPECT_EQ(driver().cuGraphLaunch(exec, b), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(EmulatedStreams, launches_of_one_graph_are_in_order) {
    const CUstream a = stream(), b = stream();
    begin(a);
    EXPECT_EQ(add_in(a, 1), CUDA_SUCCESS);
    const CUgraphExec exec = ready(captured(a));
    EXPECT_OK(cuGraphLaunch(exec, a));
    EXPECT_OK(cuGraphLaunch(exec, b));
    EXPECT_EQ(peek(), 0);
    EXPECT_OK(cuStreamSynchronize(b));
    EXPECT_EQ(peek(), 2);
    EXPECT_OK(cuGraphExecDestroy(exec));
}

TEST_F(EmulatedStreams, host_memory_of_a_capture_is_read_by_the_graph) {
    const CUstream a = stream();
    int number = 1;
    begin(a);
    EXPECT_OK(cuMemcpyHtoDAsync_v2(x, &number, 4, a));
    const CUgraphExec exec = ready(captured(a));
    number = 5;
    EXPECT_OK(cuGraphLaunch(exec, a));
    EXPECT_OK(cuStreamSynchronize(a));
    EXPECT_EQ(peek(), 5);
}

TEST_F(EmulatedStreams, mistakes_in_captures_have_the_drivers_codes) {
    const CUstream a = stream(), b = stream(), blocking = stream(0);
    const CUevent moment = event();
    CUgraph graph = nullptr;
    EXPECT_EQ(driver().cuStreamBeginCapture_v2(nullptr, 1), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    EXPECT_EQ(driver().cuStreamEndCapture(a, &graph), CUDA_ERROR_ILLEGAL_STATE);
    const auto ends_with = [&](CUresult expected) {
        EXPECT_EQ(driver().cuStreamEndCapture(a, &graph), expected);
        EXPECT_EQ(graph, nullptr);
        EXPECT_EQ(capturing(a), CU_STREAM_CAPTURE_STATUS_NONE);
    };
    begin(a);
    EXPECT_EQ(driver().cuStreamBeginCapture_v2(a, 1), CUDA_ERROR_ILLEGAL_STATE);
    EXPECT_EQ(driver().cuStreamSynchronize(a), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    EXPECT_EQ(capturing(a), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    EXPECT_EQ(add_in(a, 1), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    ends_with(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    // work that was not joined
    begin(a);
    EXPECT_OK(cuEventRecord(moment, a));
    EXPECT_OK(cuStreamWaitEvent(b, moment, 0));
    EXPECT_EQ(add_in(b, 1), CUDA_SUCCESS);
    EXPECT_EQ(driver().cuStreamEndCapture(b, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    ends_with(CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    EXPECT_EQ(capturing(b), CU_STREAM_CAPTURE_STATUS_NONE);
    // an event from outside, an event of a capture that is over, two captures
    EXPECT_OK(cuEventRecord(moment, b));
    begin(a);
    EXPECT_EQ(driver().cuStreamWaitEvent(a, moment, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    ends_with(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    begin(a);
    EXPECT_OK(cuEventRecord(moment, a));
    begin(b);
    EXPECT_EQ(driver().cuStreamWaitEvent(b, moment, 0), CUDA_ERROR_STREAM_CAPTURE_MERGE);
    ends_with(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    EXPECT_EQ(driver().cuStreamEndCapture(b, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    EXPECT_EQ(driver().cuStreamWaitEvent(b, moment, 0), CUDA_ERROR_CAPTURED_EVENT);
    // the legacy stream, another thread
    begin(blocking);
    EXPECT_EQ(driver().cuMemsetD32_v2(x, 1, 1), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    EXPECT_EQ(driver().cuStreamEndCapture(blocking, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    begin(a);
    CUresult of_thread = CUDA_SUCCESS;
    std::thread([&] {
        EXPECT_OK(cuCtxSetCurrent(context));
        of_thread = driver().cuStreamEndCapture(a, &graph);
    }).join();
    EXPECT_EQ(of_thread, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    EXPECT_EQ(driver().cuCtxSynchronize(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    ends_with(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    EXPECT_EQ(value_at(x), 0);
}

TEST_F(EmulatedStreams, unsafe_calls_are_forbidden_unless_the_thread_allows_them) {
    const CUstream a = stream();
    CUdeviceptr memory = 0;
    CUgraph graph = nullptr;
    begin(a);
    int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    EXPECT_OK(cuThreadExchangeStreamCaptureMode(&mode));
    EXPECT_OK(cuMemAlloc_v2(&memory, 4));
    EXPECT_OK(cuThreadExchangeStreamCaptureMode(&mode));
    EXPECT_EQ(mode, CU_STREAM_CAPTURE_MODE_RELAXED);
    EXPECT_EQ(driver().cuMemAlloc_v2(&memory, 4), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    EXPECT_EQ(driver().cuStreamEndCapture(a, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    begin(a);
    CUmodule module = nullptr;
    EXPECT_EQ(driver().cuModuleLoadData(&module, kernel_text("ret;").c_str()), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    EXPECT_EQ(driver().cuStreamEndCapture(a, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    // to ask and to wait for another stream, as an H200 has it
    const CUstream other = stream();
    CUevent moment = nullptr;
    EXPECT_OK(cuEventCreate(&moment, 0));
    EXPECT_OK(cuEventRecord(moment, other));
    const std::function<CUresult()> calls[] = {
        [&] { return driver().cuStreamSynchronize(other); }, [&] { return driver().cuStreamQuery(other); },
        [&] { return driver().cuEventSynchronize(moment); }, [&] { return driver().cuEventQuery(moment); }};
    for (const std::function<CUresult()>& call : calls) {
        begin(a);
        EXPECT_EQ(call(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        EXPECT_EQ(driver().cuStreamEndCapture(a, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    }
}

TEST_F(EmulatedStreams, memory_of_a_graph_is_there_while_it_runs) {
    const CUstream a = stream();
    CUdeviceptr memory = 0;
    begin(a);
    EXPECT_OK(cuMemAllocAsync(&memory, 4, a));
    EXPECT_OK(cuMemsetD32Async(memory, 5, 1, a));
    EXPECT_EQ(add_in(a, 1, memory), CUDA_SUCCESS);
    EXPECT_OK(cuMemcpyDtoDAsync_v2(x, memory, 4, a));
    EXPECT_OK(cuMemFreeAsync(memory, a));
    const CUgraph graph = captured(a);
    const CUgraphExec exec = ready(graph);
    for (int i = 0; i < 2; ++i) {
        EXPECT_OK(cuGraphLaunch(exec, a));
        EXPECT_OK(cuStreamSynchronize(a));
        EXPECT_EQ(peek(), 6);
        int value = 0;
        EXPECT_EQ(driver().cuMemcpyDtoH_v2(&value, memory, 4), CUDA_ERROR_INVALID_VALUE);
    }
    EXPECT_OK(cuGraphExecDestroy(exec));
    EXPECT_OK(cuGraphDestroy(graph));
}

// ---- conditions, children ----

constexpr char kConditionText[] =
    ".version 8.7\n.target sm_90\n.address_size 64\n"
    ".extern .func cudaGraphSetConditional (.param .b64 h, .param .b32 v);\n"
    ".visible .entry kernel(.param .b64 a, .param .b64 b, .param .b64 c, .param .b64 d)\n{\n"
    ".reg .b64 %d<4>; .reg .b32 %r<4>; .param .b64 p0; .param .b32 p1;\n"
    "ld.param.b64 %d0, [a]; ld.param.b64 %d1, [b]; ld.global.b32 %r0, [%d0];\n"
    "st.param.b64 [p0], %d1; st.param.b32 [p1], %r0; call cudaGraphSetConditional, (p0, p1); ret;\n}\n";

TEST_F(EmulatedStreams, a_graph_repeats_a_body_while_a_condition_holds) {
    const CUstream a = stream(), inside = stream();
    const CUfunction set = function(kConditionText);
    const CUdeviceptr sum = allocated(4);
    EXPECT_OK(cuMemsetD32_v2(sum, 0, 1));
    CUgraph graph = nullptr;
    EXPECT_OK(cuGraphCreate(&graph, 0));
    CUgraphConditionalHandle handle = 0;
    EXPECT_OK(cuGraphConditionalHandleCreate(&handle, graph, context, 1, CU_GRAPH_COND_ASSIGN_DEFAULT));
    CUgraphNodeParams asked{};
    asked.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    asked.conditional = {handle, CU_GRAPH_COND_TYPE_WHILE, 1, nullptr, context};
    CUgraphNode node = nullptr;
    EXPECT_OK(cuGraphAddNode_v2(&node, graph, nullptr, nullptr, 0, &asked));
    const CUgraph body = asked.conditional.phGraph_out[0];
    EXPECT_OK(cuStreamBeginCaptureToGraph(inside, body, nullptr, nullptr, 0, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    EXPECT_EQ(add_in(inside, 1, sum), CUDA_SUCCESS);
    EXPECT_EQ(add_in(inside, uint64_t(-1)), CUDA_SUCCESS);
    EXPECT_EQ(launch_in(inside, set, 1, 1, x, handle, uint64_t(0), uint64_t(0)), CUDA_SUCCESS);
    CUgraph same = nullptr;
    EXPECT_OK(cuStreamEndCapture(inside, &same));
    EXPECT_EQ(same, body);
    const CUgraphExec exec = ready(graph);
    EXPECT_OK(cuMemsetD32_v2(x, 5, 1));
    EXPECT_OK(cuGraphLaunch(exec, nullptr));
    EXPECT_EQ(value_at(x), 0);
    EXPECT_EQ(value_at(sum), 5);
    // A graph with a condition is no child; a host function is no work for a body.
    CUgraph outer = nullptr;
    EXPECT_OK(cuGraphCreate(&outer, 0));
    EXPECT_EQ(driver().cuGraphAddChildGraphNode(&node, outer, nullptr, 0, graph), CUDA_ERROR_INVALID_VALUE);
    EXPECT_OK(cuStreamBeginCaptureToGraph(a, body, nullptr, nullptr, 0, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    EXPECT_OK(cuLaunchHostFunc(a, [](void*) {}, nullptr));
    EXPECT_OK(cuStreamEndCapture(a, &same));
    CUgraphExec refused = nullptr;
    EXPECT_EQ(driver().cuGraphInstantiateWithFlags(&refused, graph, 0), CUDA_ERROR_NOT_SUPPORTED);
    // nor is there a graph with a handle that no node has
    EXPECT_OK(cuGraphConditionalHandleCreate(&handle, outer, context, 0, 0));
    EXPECT_EQ(driver().cuGraphInstantiateWithFlags(&refused, outer, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(EmulatedStreams, a_child_is_put_into_a_capture) {
    const CUstream a = stream();
    begin(a);
    EXPECT_EQ(add_in(a, 1), CUDA_SUCCESS);
    const CUgraph child = captured(a);
    begin(a);
    EXPECT_EQ(add_in(a, 10), CUDA_SUCCESS);
    CUgraph graph = nullptr;
    const CUgraphNode* before = nullptr;
    size_t count = 0;
    int status = 0;
    cuuint64_t id = 0;
    EXPECT_OK(cuStreamGetCaptureInfo_v3(a, &status, &id, &graph, &before, nullptr, &count));
    EXPECT_EQ(count, 1u);
    CUgraphNode node = nullptr;
    EXPECT_OK(cuGraphAddChildGraphNode(&node, graph, before, count, child));
    EXPECT_OK(cuStreamUpdateCaptureDependencies_v2(a, &node, nullptr, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
    EXPECT_OK(cuMemcpyDtoDAsync_v2(x, x, 4, a));
    const CUgraph whole = captured(a);
    char file[] = "/tmp/weft-graph-XXXXXX";
    const int descriptor = mkstemp(file);
    EXPECT_OK(cuGraphDebugDotPrint(whole, file, 0));
    std::stringstream text;
    text << std::ifstream(file).rdbuf();
    EXPECT_NE(text.str().find("node1 [label=\"graph\"]"), std::string::npos) << text.str();
    close(descriptor);
    std::remove(file);
    const CUgraphExec exec = ready(whole);
    EXPECT_OK(cuGraphDestroy(child));
    EXPECT_OK(cuGraphLaunch(exec, a));
    EXPECT_OK(cuStreamSynchronize(a));
    EXPECT_EQ(peek(), 11);
}

TEST_F(EmulatedStreams, nodes_of_a_launch_are_tasks_by_themselves) {
    const CUstream a = stream(), b = stream();
    const CUevent half = event(), go = event();
    begin(a);
    EXPECT_EQ(add_in(a, 1), CUDA_SUCCESS);
    EXPECT_OK(cuEventRecordWithFlags(half, a, CU_EVENT_RECORD_EXTERNAL));
    EXPECT_OK(cuStreamWaitEvent(a, go, CU_EVENT_WAIT_EXTERNAL));
    EXPECT_EQ(add_in(a, 10), CUDA_SUCCESS);
    const CUgraph child = captured(a);
    CUgraphNode nodes[4];
    size_t count = 4;
    EXPECT_OK(cuGraphGetNodes(child, nodes, &count));
    EXPECT_EQ(count, 4u);
    int type = -1;
    EXPECT_OK(cuGraphNodeGetType(nodes[1], &type));
    EXPECT_EQ(type, CU_GRAPH_NODE_TYPE_EVENT_RECORD);
    EXPECT_OK(cuGraphNodeGetType(nodes[2], &type));
    EXPECT_EQ(type, CU_GRAPH_NODE_TYPE_WAIT_EVENT);
    CUgraph whole = nullptr;
    EXPECT_OK(cuGraphCreate(&whole, 0));
    CUgraphNode node = nullptr;
    EXPECT_OK(cuGraphAddChildGraphNode(&node, whole, nullptr, 0, child));
    for (const CUgraph graph : {child, whole}) {  // by itself, and inside of another
        const CUgraphExec exec = ready(graph);
        EXPECT_OK(cuMemsetD32_v2(x, 0, 1));
        EXPECT_OK(cuEventRecord(go, b));
        EXPECT_OK(cuCtxSynchronize());
        EXPECT_OK(cuGraphLaunch(exec, a));
        EXPECT_OK(cuStreamWaitEvent(b, half, 0));
        EXPECT_EQ(add_in(b, 100), CUDA_SUCCESS);
        EXPECT_OK(cuStreamSynchronize(b));
        EXPECT_EQ(peek(), 101);  // between two nodes
        EXPECT_EQ(driver().cuStreamQuery(a), CUDA_ERROR_NOT_READY);
        EXPECT_OK(cuStreamSynchronize(a));
        EXPECT_EQ(peek(), 111);
        // the event is what it was recorded as when the graph is launched
        EXPECT_EQ(add_in(b, 1000), CUDA_SUCCESS);
        EXPECT_OK(cuEventRecord(go, b));
        EXPECT_OK(cuGraphLaunch(exec, a));
        EXPECT_OK(cuStreamSynchronize(a));
        EXPECT_EQ(peek(), 1122);
        float milliseconds = -1.0F;
        EXPECT_OK(cuEventElapsedTime_v2(&milliseconds, half, half));
        EXPECT_EQ(milliseconds, 0.0F);
        EXPECT_OK(cuGraphExecDestroy(exec));
    }
    const CUgraphExec exec = ready(child);
    EXPECT_OK(cuEventDestroy_v2(go));
    EXPECT_EQ(driver().cuGraphLaunch(exec, a), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(driver().cuEventRecordWithFlags(half, a, CU_EVENT_RECORD_EXTERNAL), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(driver().cuStreamWaitEvent(a, half, CU_EVENT_WAIT_EXTERNAL), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(EmulatedStreams, an_unsafe_call_of_another_thread_ends_a_capture_in_global_mode) {
    const CUstream a = stream();
    const auto allocate = [&](int mode) {
        CUresult result = CUDA_ERROR_UNKNOWN;
        std::thread([&] {
            CUdeviceptr memory = 0;
            EXPECT_OK(cuCtxSetCurrent(context));
            EXPECT_OK(cuThreadExchangeStreamCaptureMode(&mode));
            result = driver().cuMemAlloc_v2(&memory, 4);
        }).join();
        return result;
    };
    CUgraph graph = nullptr;
    for (const int captures_in : {CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_RELAXED}) {
        begin(a, captures_in);
        EXPECT_EQ(allocate(CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
        EXPECT_OK(cuStreamEndCapture(a, &graph));
    }
    for (const int other : {CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_RELAXED}) {
        begin(a, CU_STREAM_CAPTURE_MODE_GLOBAL);
        EXPECT_EQ(allocate(other), CUDA_SUCCESS);  // that thread has said that it knows what it does
        EXPECT_OK(cuStreamEndCapture(a, &graph));
    }
    begin(a, CU_STREAM_CAPTURE_MODE_GLOBAL);
    EXPECT_EQ(allocate(CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    EXPECT_EQ(driver().cuStreamEndCapture(a, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    EXPECT_EQ(add_in(a, 1), CUDA_SUCCESS);
    EXPECT_OK(cuStreamSynchronize(a));
    EXPECT_EQ(peek(), 1);
}

TEST_F(EmulatedStreams, user_objects_end_with_the_last_that_has_them) {
    const CUstream a = stream();
    static int ended = 0;
    ended = 0;
    begin(a);
    EXPECT_EQ(add_in(a, 1), CUDA_SUCCESS);
    const CUgraph graph = captured(a);
    CUuserObject object = nullptr;
    EXPECT_OK(cuUserObjectCreate(&object, nullptr, [](void*) { ++ended; }, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    EXPECT_OK(cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
    const CUgraphExec exec = ready(graph);
    EXPECT_OK(cuGraphDestroy(graph));
    EXPECT_OK(cuGraphLaunch(exec, a));
    EXPECT_OK(cuGraphExecDestroy(exec));
    EXPECT_EQ(ended, 0);  // a launch is pending
    EXPECT_OK(cuStreamSynchronize(a));
    EXPECT_EQ(ended, 1);
}

// ---- failures on demand ----

TEST_F(EmulatedStreams, a_call_fails_that_was_asked_to) {
    const uint64_t alive = driver().alive("streams");
    driver().fail("cuStreamCreate", 2, CUDA_ERROR_OUT_OF_MEMORY);
    CUstream made = stream();
    EXPECT_EQ(driver().alive("streams"), alive + 1);
    EXPECT_EQ(driver().cuStreamCreate(&made, 0), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(driver().alive("streams"), alive + 1);
    stream();
    EXPECT_EQ(driver().alive("streams"), alive + 2);
}

}  // namespace

}  // namespace weft::emulator
