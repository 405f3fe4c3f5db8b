// The driver's interface as emulator/src declares it, against cuda.h if that is installed: compiling is most of the
// test.
#include <gtest/gtest.h>

#ifdef WEFT_CUDA_HEADER
#include WEFT_CUDA_HEADER
#include <cudaProfiler.h>
#include <cudaTypedefs.h>

#include <cstddef>
#include <type_traits>

#if CUDA_VERSION >= 13000
#define WEFT_DRIVER(name, parameters) \
    static_assert(std::is_same_v<decltype(&name), CUresult(*) parameters>, #name " has other parameters in cuda.h");
#include "driver/driver.def"
#undef WEFT_DRIVER
#endif

#define WEFT_RESULT(name, number, text) static_assert(int(name) == number, #name);
#define WEFT_ATTRIBUTE(name, number, value) static_assert(int(name) == number, #name);
#define WEFT_CONSTANT(name, number) static_assert(int(name) == number, #name);
#if CUDA_VERSION >= 13000
#define WEFT_SINCE(name, base, cuda) \
    static_assert(std::is_same_v<decltype(&name), PFN_##base##_v##cuda>, #name " did not come with that version");
#endif
#include "driver/codes.def"

// "ours" is the emulator's header with names of its own, so that both can be compared here.
namespace ours {
#include "driver/abi_structs.h"
}

template <class A, class B>
constexpr bool same_size = sizeof(A) == sizeof(B) && alignof(A) == alignof(B);

static_assert(same_size<ours::CUuuid, CUuuid>);
static_assert(same_size<ours::CUipcMemHandle, CUipcMemHandle>);
static_assert(same_size<ours::CUipcEventHandle, CUipcEventHandle>);
static_assert(same_size<ours::CUmemAccessDesc, CUmemAccessDesc>);
static_assert(same_size<ours::CUDA_MEMCPY2D, CUDA_MEMCPY2D>);
static_assert(same_size<ours::CUlaunchAttribute, CUlaunchAttribute>);
static_assert(same_size<ours::CUlaunchConfig, CUlaunchConfig>);
static_assert(same_size<ours::CUgraphEdgeData, CUgraphEdgeData>);
static_assert(same_size<ours::CUDA_CONDITIONAL_NODE_PARAMS, CUDA_CONDITIONAL_NODE_PARAMS>);
static_assert(same_size<ours::CUDA_CHILD_GRAPH_NODE_PARAMS, CUDA_CHILD_GRAPH_NODE_PARAMS>);
static_assert(same_size<ours::CUgraphNodeParams, CUgraphNodeParams>);
static_assert(same_size<ours::CUmemLocation, CUmemLocation>);
#define WEFT_SAME_PLACE(type, field) \
    static_assert(offsetof(ours::type, field) == offsetof(type, field), #type "." #field);
WEFT_SAME_PLACE(CUDA_MEMCPY2D, srcMemoryType)
WEFT_SAME_PLACE(CUDA_MEMCPY2D, srcHost)
WEFT_SAME_PLACE(CUDA_MEMCPY2D, srcDevice)
WEFT_SAME_PLACE(CUDA_MEMCPY2D, srcPitch)
WEFT_SAME_PLACE(CUDA_MEMCPY2D, dstXInBytes)
WEFT_SAME_PLACE(CUDA_MEMCPY2D, dstMemoryType)
WEFT_SAME_PLACE(CUDA_MEMCPY2D, dstHost)
WEFT_SAME_PLACE(CUDA_MEMCPY2D, dstDevice)
WEFT_SAME_PLACE(CUDA_MEMCPY2D, dstPitch)
WEFT_SAME_PLACE(CUDA_MEMCPY2D, WidthInBytes)
WEFT_SAME_PLACE(CUDA_MEMCPY2D, Height)
WEFT_SAME_PLACE(CUlaunchAttribute, id)
WEFT_SAME_PLACE(CUlaunchAttribute, value)
WEFT_SAME_PLACE(CUlaunchConfig, gridDimX)
WEFT_SAME_PLACE(CUlaunchConfig, blockDimX)
WEFT_SAME_PLACE(CUlaunchConfig, sharedMemBytes)
WEFT_SAME_PLACE(CUlaunchConfig, hStream)
WEFT_SAME_PLACE(CUlaunchConfig, attrs)
WEFT_SAME_PLACE(CUlaunchConfig, numAttrs)
WEFT_SAME_PLACE(CUDA_CONDITIONAL_NODE_PARAMS, handle)
WEFT_SAME_PLACE(CUDA_CONDITIONAL_NODE_PARAMS, type)
WEFT_SAME_PLACE(CUDA_CONDITIONAL_NODE_PARAMS, size)
WEFT_SAME_PLACE(CUDA_CONDITIONAL_NODE_PARAMS, phGraph_out)
WEFT_SAME_PLACE(CUDA_CONDITIONAL_NODE_PARAMS, ctx)
WEFT_SAME_PLACE(CUDA_CHILD_GRAPH_NODE_PARAMS, graph)
WEFT_SAME_PLACE(CUgraphNodeParams, conditional)
WEFT_SAME_PLACE(CUgraphNodeParams, graph)

TEST(EmulatedDriver, is_declared_as_in_cuda_h) { EXPECT_GE(CUDA_VERSION, 12000); }
#else
TEST(EmulatedDriver, is_declared_as_in_cuda_h) { GTEST_SKIP() << "cuda.h is not installed"; }
#endif
