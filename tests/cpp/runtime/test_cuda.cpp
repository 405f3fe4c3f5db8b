// The parts of runtime/cuda that need no device: the driver's table, how indices are taken apart, texts of prints.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <random>
#include <string>

#include "runtime/cuda/executable.h"
#include "runtime/cuda/reports.h"
#include "runtime/print.h"

namespace weft::runtime {
namespace {

// Those of the emulated device are compared with cuda.h (emulator/tests/test_driver_abi.cpp).
TEST(Cuda, driver_functions_are_those_of_the_emulated_device) {
    std::map<std::string, std::string> emulated;
#define WEFT_DRIVER(name, parameters) emulated[#name] = #parameters;
#include "emulator/src/driver/driver.def"
#undef WEFT_DRIVER
#define WEFT_DRIVER(name, parameters) EXPECT_EQ(emulated[#name], #parameters) << #name;
#define WEFT_DRIVER_RECENT(name, parameters)              \
    if (emulated.contains(#name)) {                       \
        EXPECT_EQ(emulated[#name], #parameters) << #name; \
    }
#include "runtime/cuda/driver.def"
#undef WEFT_DRIVER
#undef WEFT_DRIVER_RECENT
}

TEST(Cuda, numbers_are_those_of_the_emulated_device) {
    std::map<std::string, int> emulated;
#define WEFT_RESULT(name, number, text) emulated[#name] = number;
#define WEFT_ATTRIBUTE(name, number, value) emulated[#name] = number;
#define WEFT_CONSTANT(name, number) emulated[#name] = number;
#include "emulator/src/driver/codes.def"
    EXPECT_EQ(emulated["CUDA_SUCCESS"], cuda::kSuccess);
    EXPECT_EQ(emulated["CUDA_ERROR_OUT_OF_MEMORY"], cuda::kOutOfMemory);
    EXPECT_EQ(emulated["CUDA_ERROR_NO_DEVICE"], cuda::kNoDevice);
    EXPECT_EQ(emulated["CUDA_ERROR_NOT_READY"], cuda::kNotReady);
    EXPECT_EQ(emulated["CUDA_ERROR_UNSUPPORTED_PTX_VERSION"], cuda::kUnsupportedPtx);
    EXPECT_EQ(emulated["CUDA_ERROR_INVALID_HANDLE"], cuda::kInvalidHandle);
    EXPECT_EQ(emulated["CUDA_ERROR_CAPTURED_EVENT"], cuda::kCapturedEvent);
    EXPECT_EQ(emulated["CU_EVENT_DISABLE_TIMING"], cuda::kNoTiming);
    EXPECT_EQ(emulated["CU_EVENT_INTERPROCESS"], cuda::kInterprocess);
    EXPECT_EQ(emulated["CU_EVENT_RECORD_EXTERNAL"], cuda::kRecordedByGraph);
    EXPECT_EQ(emulated["CU_EVENT_WAIT_EXTERNAL"], cuda::kWaitedForByGraph);
    EXPECT_EQ(emulated["CU_POINTER_ATTRIBUTE_CONTEXT"], cuda::kPointerContext);
    EXPECT_EQ(emulated["CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK"], cuda::kMaxThreadsPerBlock);
    EXPECT_EQ(emulated["CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT"], cuda::kMultiprocessorCount);
    EXPECT_EQ(emulated["CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING"], cuda::kUnifiedAddressing);
    EXPECT_EQ(emulated["CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR"], cuda::kComputeCapabilityMajor);
    EXPECT_EQ(emulated["CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR"], cuda::kComputeCapabilityMinor);
    EXPECT_EQ(emulated["CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"], cuda::kMaxSharedMemoryPerBlockOptin);
    EXPECT_EQ(emulated["CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED"], cuda::kMemoryPoolsSupported);
    EXPECT_EQ(emulated["CU_JIT_ERROR_LOG_BUFFER"], cuda::kErrorLogBuffer);
    EXPECT_EQ(emulated["CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES"], cuda::kErrorLogBufferBytes);
    EXPECT_EQ(emulated["CU_JIT_GENERATE_LINE_INFO"], cuda::kGenerateLines);
    EXPECT_EQ(emulated["CU_JIT_INPUT_PTX"], cuda::kInputIsPtx);
    EXPECT_EQ(emulated["CU_MEMPOOL_ATTR_RELEASE_THRESHOLD"], cuda::kReleaseThreshold);
    EXPECT_EQ(emulated["CU_STREAM_CAPTURE_MODE_RELAXED"], cuda::kCaptureRelaxed);
    EXPECT_EQ(emulated["CU_STREAM_CAPTURE_STATUS_NONE"], cuda::kCaptureNone);
    EXPECT_EQ(emulated["CU_STREAM_CAPTURE_STATUS_ACTIVE"], cuda::kCaptureActive);
    EXPECT_EQ(emulated["CU_GRAPH_NODE_TYPE_CONDITIONAL"], cuda::kConditionalNode);
    EXPECT_EQ(emulated["CU_GRAPH_COND_TYPE_IF"], cuda::kConditionIf);
    EXPECT_EQ(emulated["CU_GRAPH_COND_TYPE_WHILE"], cuda::kConditionWhile);
    EXPECT_EQ(emulated["CU_STREAM_SET_CAPTURE_DEPENDENCIES"], cuda::kSetDependencies);
    EXPECT_EQ(emulated["CU_EVENT_DISABLE_TIMING"], cuda::kNoTiming);
    EXPECT_EQ(emulated["CU_STREAM_NON_BLOCKING"], cuda::kNonBlocking);
    EXPECT_EQ(emulated["CU_USER_OBJECT_NO_DESTRUCTOR_SYNC"], cuda::kNoDestructorSync);
    EXPECT_EQ(emulated["CU_GRAPH_USER_OBJECT_MOVE"], cuda::kMoveUserObject);
}

TEST(Cuda, machine_code_runs_on_its_architecture_and_later_ones_of_its_kind) {
    EXPECT_TRUE(runs_on("sm_80", 80) && runs_on("sm_80", 86) && runs_on("sm_120", 121));
    EXPECT_FALSE(runs_on("sm_86", 80) || runs_on("sm_80", 90) || runs_on("sm_90", 80) || runs_on("sm_12", 120));
    EXPECT_FALSE(runs_on("", 0) || runs_on("90", 90));
}

// As the entry does it (codegen/cuda/thread_coarsening.cpp).
std::int64_t quotient(std::int64_t n, const CudaAxis& axis) {
    if (axis.extent == 1) return n;
    const auto product = static_cast<unsigned __int128>(n) * axis.multiplier;
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(product >> 64) >> axis.shift);
}

std::int64_t short_quotient(std::int64_t n, const CudaAxis& axis) {
    if (axis.extent == 1) return n;
    const std::uint64_t product = static_cast<std::uint64_t>(n) * axis.short_multiplier;
    return static_cast<std::int64_t>(static_cast<std::uint32_t>(product >> 32) >> axis.shift);
}

TEST(Cuda, indices_are_taken_apart_exactly) {
    std::mt19937_64 random(5);
    for (int i = 0; i < 200000; ++i) {
        const int bits = static_cast<int>(random() % 31) + 1;
        std::int64_t extent = static_cast<std::int64_t>(random() >> (64 - bits)) + 1;
        if (i % 5 == 0) extent = std::int64_t{1} << (i % 32);
        if (i % 7 == 0) extent = (std::int64_t{1} << (1 + i % 31)) - 1;
        Grid grid{{1, extent, 1, 1}, 1};
        const CudaAxis axis = cuda_launch(grid).axes[1];
        ASSERT_EQ(axis.extent, extent);
        const auto largest = static_cast<std::int64_t>(random() >> (1 + random() % 40));
        const std::int64_t multiple = largest / extent * extent;
        for (const std::int64_t n :
             {largest, multiple, std::max<std::int64_t>(0, multiple - 1), std::int64_t{0}, INT64_MAX})
            ASSERT_EQ(quotient(n, axis), n / extent) << n << " / " << extent;
        if (extent > INT32_MAX) continue;
        const std::int64_t short_one = largest & INT32_MAX, short_multiple = short_one / extent * extent;
        for (const std::int64_t n : {short_one, short_multiple, std::max<std::int64_t>(0, short_multiple - 1),
                                     std::int64_t{0}, std::int64_t{INT32_MAX}})
            ASSERT_EQ(short_quotient(n, axis), n / extent) << n << " / " << extent << ", in 32 bits";
    }
}

TEST(Cuda, texts_are_those_of_printf) {
    const auto text = [](const std::string& format, std::initializer_list<std::int64_t> arguments) {
        return format_text(format, arguments.begin(), arguments.size());
    };
    const auto real = [](double value) { return std::bit_cast<std::int64_t>(value); };
    EXPECT_EQ(text("nothing\n", {}), "nothing\n");
    EXPECT_EQ(text("%d, 100%% of %lld\n", {-3, INT64_MIN}), "-3, 100% of -9223372036854775808\n");
    EXPECT_EQ(text("%u %x %llu", {-1, -2, -1}), "4294967295 fffffffe 18446744073709551615");
    EXPECT_EQ(text("%g|%8.3f|%-8e|%+.0f", {real(0.1), real(-2.5), real(1e300), real(7.0)}),
              "0.1|  -2.500|1.000000e+300|+7");
    EXPECT_EQ(text("%c%05d %hd", {'w', 42, 7}), "w00042 7");
    EXPECT_EQ(text("%300d", {5}), std::string(299, ' ') + "5");
    EXPECT_EQ(text("%d and %d of %d", {1, 2}), "1 and 2 of ...");
}

}  // namespace
}  // namespace weft::runtime
