#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "runtime/cpu/quota.h"

namespace weft::runtime {
namespace {

namespace fs = std::filesystem;

// A machine's control groups, in a folder.
class CpuQuota : public testing::Test {
protected:
    CpuQuota() : root_(fs::temp_directory_path() / ("weft-quota-" + std::to_string(::getpid()))) {}
    ~CpuQuota() override { fs::remove_all(root_); }

    void write(const std::string& name, const std::string& text) {
        fs::create_directories((root_ / name).parent_path());
        std::ofstream(root_ / name) << text << '\n';
    }
    std::optional<double> quota() { return cpu_quota(root_ / "groups", root_ / "mounted"); }

private:
    fs::path root_;
};

TEST_F(CpuQuota, without_a_group_or_a_limit_there_is_none) {
    EXPECT_EQ(quota(), std::nullopt);
    write("groups", "0::/");
    EXPECT_EQ(quota(), std::nullopt);
    write("mounted/cpu.max", "max 100000");
    EXPECT_EQ(quota(), std::nullopt);
}

TEST_F(CpuQuota, of_a_container_that_sees_its_group_as_the_root) {
    write("groups", "0::/");
    write("mounted/cpu.max", "150000 100000");
    EXPECT_EQ(quota(), 1.5);
}

TEST_F(CpuQuota, nested_groups_have_the_smallest_of_their_quotas) {
    write("groups", "0::/user.slice/job.scope");
    write("mounted/user.slice/job.scope/cpu.max", "400000 100000");
    EXPECT_EQ(quota(), 4.0);
    write("mounted/user.slice/cpu.max", "200000 100000");
    EXPECT_EQ(quota(), 2.0);
    write("mounted/user.slice/job.scope/cpu.max", "max 100000");
    EXPECT_EQ(quota(), 2.0);
    write("mounted/user.slice/other.scope/cpu.max", "50000 100000");
    EXPECT_EQ(quota(), 2.0);
}

TEST_F(CpuQuota, of_the_first_version) {
    write("groups", "5:memory:/docker/a\n4:cpu,cpuacct:/docker/a\n3:cpuset:/docker/a\n0::/");
    write("mounted/cpu,cpuacct/docker/a/cpu.cfs_quota_us", "-1");
    write("mounted/cpu,cpuacct/docker/a/cpu.cfs_period_us", "100000");
    EXPECT_EQ(quota(), std::nullopt);
    write("mounted/cpu,cpuacct/docker/a/cpu.cfs_quota_us", "300000");
    EXPECT_EQ(quota(), 3.0);
    write("mounted/cpu,cpuacct/cpu.cfs_quota_us", "250000");
    write("mounted/cpu,cpuacct/cpu.cfs_period_us", "100000");
    EXPECT_EQ(quota(), 2.5);
}

TEST_F(CpuQuota, of_both_versions_at_once_the_smaller_one) {
    write("groups", "4:cpu:/a\n0::/b");
    write("mounted/cpu/a/cpu.cfs_quota_us", "200000");
    write("mounted/cpu/a/cpu.cfs_period_us", "50000");
    write("mounted/unified/b/cpu.max", "300000 100000");
    EXPECT_EQ(quota(), 3.0);
}

TEST_F(CpuQuota, controllers_with_similar_names_are_not_read) {
    write("groups", "4:cpuset,cpuacct:/a");
    write("mounted/cpuset,cpuacct/a/cpu.cfs_quota_us", "100000");
    write("mounted/cpuset,cpuacct/a/cpu.cfs_period_us", "100000");
    EXPECT_EQ(quota(), std::nullopt);
}

}  // namespace
}  // namespace weft::runtime
