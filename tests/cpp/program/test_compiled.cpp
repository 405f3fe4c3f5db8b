#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <vector>

#include "program/kernel/compiled.h"
#include "program/launch/run.h"
#include "support/error.h"

namespace weft::program {
namespace {

namespace fs = std::filesystem;

// A cache folder of this test's own.
class Compile : public ::testing::Test {
protected:
    void SetUp() override {
        std::string pattern = (fs::temp_directory_path() / "weft-module-XXXXXX").string();
        ASSERT_NE(mkdtemp(pattern.data()), nullptr);
        folder_ = pattern;
        setenv("WARP_CACHE_PATH", folder_.c_str(), 1);
    }
    void TearDown() override {
        unsetenv("WARP_CACHE_PATH");
        fs::remove_all(folder_);
    }
    fs::path folder_;
};

const char* const kScale = R"(
kernel @scale(%a: f32, %x: array<f32, 1>) tid 1 {
  %i = tid 0
  %xi = load %x[%i]
  %e = exp %xi
  %p = mul %a, %e
  store %x[%i], %p
  return
}
)";

// Runs scale() over 1000 numbers; true if every result is right.
bool is_right(const CompiledKernel& kernel) {
    std::vector<float> data(1000);
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i) / 500.0f;
    struct {
        float a = 3.0f;
        alignas(8) ArrayView x;
    } block;
    block.x.data = data.data();
    block.x.shape[0] = 1000;
    block.x.strides[0] = sizeof(float);
    Grid grid;
    grid.dim[0] = grid.count = 1000;
    run(kernel, runtime::host_device().default_stream(), reinterpret_cast<const std::byte*>(&block), grid);
    for (std::size_t i = 0; i < data.size(); ++i)
        if (std::fabs(data[i] - 3.0f * std::exp(static_cast<float>(i) / 500.0f)) > 4e-6f * data[i]) return false;
    return true;
}

TEST_F(Compile, gives_code_that_runs_and_describes_it) {
    const auto kernel = compile(ir::parse(kScale), {});
    EXPECT_NE(kernel->cache, CompiledKernel::Cache::found);
    EXPECT_GT(kernel->compile_ms, 0.0);
    EXPECT_EQ(kernel->description.name, "scale");
    EXPECT_EQ(kernel->parameter_types.size(), 2u);
    EXPECT_EQ(kernel->layout.offsets, (std::vector<std::int64_t>{0, 8}));
    ASSERT_EQ(kernel->effects.size(), 2u);
    EXPECT_TRUE(kernel->effects[1].reads && kernel->effects[1].writes);
    EXPECT_TRUE(is_right(*kernel));
}

TEST_F(Compile, the_second_time_comes_from_the_cache) {
    compile(ir::parse(kScale), {});
    const auto again = compile(ir::parse(kScale), {});
    EXPECT_EQ(again->cache, CompiledKernel::Cache::found);
    EXPECT_TRUE(is_right(*again));
    CompileOptions strided;
    strided.dense = false;
    EXPECT_NE(compile(ir::parse(kScale), strided)->cache, CompiledKernel::Cache::found);
    EXPECT_EQ(compile(ir::parse(kScale), strided)->cache, CompiledKernel::Cache::found);
}

TEST_F(Compile, without_the_cache_nothing_is_written) {
    CompileOptions options;
    options.cache = false;
    EXPECT_TRUE(is_right(*compile(ir::parse(kScale), options)));
    EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(Compile, every_optimization_level_gives_the_same_results) {
    for (int level = 0; level <= 3; ++level) {
        CompileOptions options;
        options.optimization_level = level;
        EXPECT_TRUE(is_right(*compile(ir::parse(kScale), options))) << level;
    }
}

TEST_F(Compile, threads_that_ask_at_once_share_one_compilation) {
    std::vector<std::shared_ptr<const CompiledKernel>> kernels(8);
    std::vector<std::thread> threads;
    for (auto& kernel : kernels) threads.emplace_back([&kernel] { kernel = compile(ir::parse(kScale), {}); });
    for (std::thread& thread : threads) thread.join();
    int compiled = 0;
    std::vector<const CompiledKernel*> distinct;
    for (const auto& kernel : kernels) {
        EXPECT_TRUE(is_right(*kernel));
        if (std::find(distinct.begin(), distinct.end(), kernel.get()) != distinct.end()) continue;
        distinct.push_back(kernel.get());
        compiled += kernel->cache != CompiledKernel::Cache::found;
    }
    EXPECT_EQ(compiled, 1);
}

TEST_F(Compile, sixteen_processes_started_cold_on_one_cache_all_get_right_results) {
    std::vector<pid_t> children;
    for (int process = 0; process < 16; ++process) {
        const pid_t child = fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            alarm(60);
            bool right = false;
            try {
                right = is_right(*compile(ir::parse(kScale), {}));
            } catch (const std::exception& error) {
                std::fprintf(stderr, "%s\n", error.what());
            }
            _exit(right ? 0 : 1);
        }
        children.push_back(child);
    }
    for (const pid_t child : children) {
        int status = 0;
        ASSERT_EQ(waitpid(child, &status, 0), child);
        EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    }
}

TEST_F(Compile, a_module_without_a_kernel_is_an_error) {
    EXPECT_THROW(compile(std::make_unique<ir::Module>(), {}), InternalError);
}

}  // namespace
}  // namespace weft::program
