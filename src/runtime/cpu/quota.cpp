#include "runtime/cpu/quota.h"

#include <algorithm>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>

namespace weft::runtime {

namespace {

using std::filesystem::path;
using Quota = std::optional<double>;

Quota as_cpus(double quota, double period) {
    return quota > 0.0 && period > 0.0 ? Quota(quota / period) : std::nullopt;
}

// "<quota> <period>", or "max <period>".
Quota read_second_version(const path& folder) {
    std::ifstream file(folder / "cpu.max");
    double quota = 0.0, period = 0.0;
    return file >> quota >> period ? as_cpus(quota, period) : std::nullopt;
}

// The file has -1 if there is no quota.
Quota read_first_version(const path& folder) {
    std::ifstream quota_file(folder / "cpu.cfs_quota_us"), period_file(folder / "cpu.cfs_period_us");
    double quota = 0.0, period = 0.0;
    return quota_file >> quota && period_file >> period ? as_cpus(quota, period) : std::nullopt;
}

Quota smaller(Quota a, Quota b) { return a && b ? std::min(*a, *b) : a ? a : b; }

// The smallest quota of a group and all groups around it.
Quota smallest(const path& root, const std::string& group, const std::function<Quota(const path&)>& read) {
    Quota found = read(root);
    path folder = root;
    for (const path& part : path(group).relative_path()) {
        folder /= part;
        found = smaller(found, read(folder));
    }
    return found;
}

bool has_word(std::string_view list, std::string_view word) {
    for (std::size_t begin = 0; begin <= list.size();) {
        const std::size_t end = std::min(list.find(',', begin), list.size());
        if (list.substr(begin, end - begin) == word) return true;
        begin = end + 1;
    }
    return false;
}

}  // namespace

std::optional<double> cpu_quota(const path& groups, const path& mounted) {
    Quota found;
    std::ifstream file(groups);
    for (std::string line; std::getline(file, line);) {  // "<hierarchy>:<controllers>:<group>"
        const std::size_t first = line.find(':'), second = line.find(':', first + 1);
        if (first == std::string::npos || second == std::string::npos) continue;
        const std::string controllers = line.substr(first + 1, second - first - 1), group = line.substr(second + 1);
        if (controllers.empty()) {
            // If there are also hierarchies of the first version, that of the second may be in a folder of its own.
            for (const char* const place : {"", "unified"})
                found = smaller(found, smallest(mounted / place, group, read_second_version));
        } else if (has_word(controllers, "cpu")) {
            for (const std::string& place : {controllers, std::string("cpu")})
                found = smaller(found, smallest(mounted / place, group, read_first_version));
        }
    }
    return found;
}

}  // namespace weft::runtime
