#include "builtins/registry.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <unordered_set>

#include "builtins/groups.h"

namespace weft::builtins {

namespace {

// Made at the first lookup, then only read.
struct Index {
    std::unordered_map<std::string_view, std::vector<const Entry*>> by_name;
    std::unordered_set<std::string_view> callable_on_host;
    std::vector<std::string> names;

    Index() {
        for (const Group& group : groups()) {
            for (const Entry& entry : group.entries) {
                by_name[entry.name].push_back(&entry);
                if (entry.expand && !group.kernels_only) callable_on_host.insert(entry.name);
            }
        }
        for (const auto& [name, entries] : by_name) names.emplace_back(name);
        std::sort(names.begin(), names.end());
    }
};

const Index& table_index() {
    static const Index the_index;
    return the_index;
}

}  // namespace

std::span<const Group> groups() {
    static const std::array table = {
        Group{"Scalar math", scalar_entries()},         Group{"Vector and matrix math", vector_entries()},
        Group{"Matrix inverses", matrix_entries()},     Group{"Matrix decompositions", decomposition_entries()},
        Group{"Quaternions", quaternion_entries()},     Group{"Transforms", transform_entries()},
        Group{"Spatial math", spatial_entries()},       Group{"Norms", norm_entries()},
        Group{"Random numbers", random_entries()},      Group{"Noise", noise_entries()},
        Group{"Geometry", geometry_entries()},          Group{"Meshes", mesh_entries(), true},
        Group{"Bounding volumes", bvh_entries(), true}, Group{"Hash grids", hash_grid_entries(), true},
        Group{"Volumes", volume_entries(), true},       Group{"Textures", texture_entries(), true},
        Group{"Atomics", atomic_entries(), true},       Group{"Tiles", tile_entries(), true},
        Group{"Utilities", utility_entries()},          Group{"Operators", operator_entries()},
    };
    return table;
}

std::vector<const Entry*> overloads(std::string_view name) {
    const auto& by_name = table_index().by_name;
    const auto found = by_name.find(name);
    return found == by_name.end() ? std::vector<const Entry*>() : found->second;
}

bool is_for_kernels(std::string_view name) { return !table_index().callable_on_host.contains(name); }

const std::vector<std::string>& names() { return table_index().names; }

}  // namespace weft::builtins
