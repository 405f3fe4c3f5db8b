// The CPU time that the control groups of this process allow.
#pragma once

#include <filesystem>
#include <optional>

namespace weft::runtime {

// The smallest quota of the process's group and of the groups around it, in CPUs; nothing if none is set. Both versions
// of Linux' control groups are read: cpu.max, and cpu.cfs_quota_us with cpu.cfs_period_us ("CFS Bandwidth Control" and
// "Control Group v2" in the kernel's documentation). `groups` is the file that names the process's groups, `mounted`
// the folder of the file systems; a container may show its own group as the root only.
std::optional<double> cpu_quota(const std::filesystem::path& groups = "/proc/self/cgroup",
                                const std::filesystem::path& mounted = "/sys/fs/cgroup");

}  // namespace weft::runtime
