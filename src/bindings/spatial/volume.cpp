// The C++ half of Volume (python/warp/_spatial/volume.py), which has parsed the arguments: here they are numbers,
// arrays and bytes.
#include "runtime/spatial/volume/volume.h"

#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "bindings/arrays/array_object.h"
#include "bindings/devices/device.h"
#include "bindings/spatial/spatial.h"
#include "runtime/array_copies.h"
#include "runtime/bytes.h"
#include "runtime/foreign_memory.h"
#include "runtime/recording.h"
#include "runtime/spatial/volume/file.h"
#include "runtime/spatial/volume/points.h"

namespace weft::bindings {

namespace {

using namespace runtime::nanovdb;
using runtime::spatial::Volume;

constexpr std::array<std::pair<const char*, Codec>, 3> kCodecs{
    {{"none", Codec::none}, {"zip", Codec::zip}, {"blosc", Codec::blosc}}};

// Reasons why a rebuild fails, as bits: Volume.REBUILD_...
enum Status : std::uint32_t { kLeaves = 1, kLower = 2, kUpper = 4, kVoxels = 8, kInvalid = 16 };

// Coordinates that a volume gives, as an array on its device.
nb::object list_of(const Volume& volume, std::vector<Coordinate> (Volume::*list)() const) {
    runtime::Array result;
    without_gil(volume.bytes().size(), [&] {
        const std::vector<Coordinate> coordinates = (volume.*list)();
        const std::int64_t shape[] = {static_cast<std::int64_t>(coordinates.size()), 3};
        result = runtime::empty(i32_type(), shape, runtime::host_device());
        std::ranges::copy(std::as_bytes(std::span(coordinates)), runtime::host_data(result));
        const runtime::WithoutRecording without;
        if (!volume.device().is_host_memory) result = runtime::clone(result, volume.device());
    });
    return wrap_array(std::move(result));
}

nb::object dtype_object(GridType type) {
    const Type value = runtime::spatial::value_type(type);
    return value.is_none() ? nb::none() : dtype_to_python(value);
}

GridType grid_type(Type type) {
    for (unsigned n = 1; n < kGridTypes; ++n) {
        const auto candidate = static_cast<GridType>(n);
        // Kernels write no other types.
        const bool is_stored = shape_of(candidate).leaf_kind == LeafKind::values && candidate != GridType::rgba8 &&
                               candidate != GridType::f16;
        if (is_stored && runtime::spatial::value_type(candidate) == type) return candidate;
    }
    return GridType::unknown;
}

Map map_of(const std::array<double, 9>& matrix, const std::array<double, 3>& translation, const char* api) {
    const std::optional<Map> map = make_map(matrix, translation);
    if (!map) throw UsageError(api, "the transform is not finite or has no inverse", ErrorCategory::value);
    return *map;
}

// ---- building ----

// The plan of a grid, kept for rebuilds.
struct Plan {
    bool by_voxels = false;
    Recipe recipe;
    Capacity capacity;
    // Voxels, leaves, lower, upper nodes; empty: as many as points need.
    std::array<std::optional<std::uint64_t>, 4> limits;
    bool has_limits = false;

    void set_capacity(std::uint64_t points, const Topology& topology) {
        capacity = capacity_of(topology);
        if (!has_limits) return;
        const auto limit = [&](std::size_t n, std::uint64_t otherwise) { return limits[n].value_or(otherwise); };
        const std::uint64_t leaves = limit(1, by_voxels ? limit(0, points) : points);
        capacity = {by_voxels ? limit(0, points) : leaves * kLeafVoxels, leaves, limit(2, leaves), limit(3, leaves)};
    }
    std::uint32_t status(const Topology& topology) const {
        std::uint32_t result = 0;
        if (topology.leaves.size() > capacity.leaves) result |= kLeaves;
        if (topology.lower_nodes > capacity.lower) result |= kLower;
        if (topology.corners.size() > capacity.upper) result |= kUpper;
        if (topology.active_voxels > capacity.voxels) result |= kVoxels;
        return result;
    }
};

class VolumeObject {
public:
    // `host_bytes`: as in Volume(). With a plan it can be rebuilt.
    VolumeObject(runtime::Array bytes, const char* api, const runtime::Array* host_bytes = nullptr,
                 std::optional<Plan> plan = {})
        : volume_(std::move(bytes), api, host_bytes), plan_(std::move(plan)) {}

    Volume& volume() { return volume_; }
    const std::optional<Plan>& plan() const { return plan_; }

private:
    Volume volume_;
    std::optional<Plan> plan_;
};

void write_status(nb::handle status, std::uint32_t value, const char* api) {
    const runtime::Array& to = array_argument(status.ptr(), api, "status").array;
    if (to.dtype != Type::scalar(Scalar::u32) || to.ndim != 1 || to.view.shape[0] < 1)
        throw UsageError(api,
                         "status is an array of " + to.dtype.python_name() + " with shape " +
                             runtime::shape_text(to.shape()) + "; expected uint32 with one element",
                         ErrorCategory::type);
    runtime::write_bytes(*to.device, to.view.data, &value, sizeof value);
}

// Writes the status to the array `to`; without one, throws if the grid cannot be built. Returns whether it can be
// built.
bool report(std::uint32_t status, const FoundTopology& points, const Plan& plan, nb::handle to, const char* api) {
    const Topology& topology = points.topology;
    if (!to.is_none()) write_status(to, status, api);
    if (status == 0 || !to.is_none()) return status == 0;
    if (points.invalid >= 0)
        throw UsageError(
            api,
            "point " + std::to_string(points.invalid) + " is no voxel: it is not finite, or not in the range of int32",
            ErrorCategory::value);
    if (status & kInvalid) throw UsageError(api, "there are no points, and a volume has one tile at least");
    const auto text = [](const char* what, std::uint64_t has, std::uint64_t most) {
        return std::to_string(has) + " " + what + " of " + std::to_string(most);
    };
    throw UsageError(api, "the points need " + text("voxels", topology.active_voxels, plan.capacity.voxels) + ", " +
                              text("leaves", topology.leaves.size(), plan.capacity.leaves) + ", " +
                              text("lower nodes", topology.lower_nodes, plan.capacity.lower) + " and " +
                              text("upper nodes", topology.corners.size(), plan.capacity.upper) +
                              " that the volume has room for");
}

FoundTopology topology_of(nb::handle points, nb::handle mask, const Plan& plan, const char* api, const char* name) {
    const runtime::Array& from = array_argument(points.ptr(), api, name).array;
    const runtime::Array* chosen = mask.is_none() ? nullptr : &array_argument(mask.ptr(), api, "point_mask").array;
    FoundTopology result;
    without_gil(from.size(), [&] { result = find_topology(from, chosen, plan.recipe.map, plan.by_voxels, api, name); });
    return result;
}

// The values of a dense box whose first voxel is (0, 0, 0).
struct DenseValues {
    Bytes bytes;
    std::array<std::int64_t, 3> extent;
};
// Of (bytes, extent), which the result refers to; empty for None.
std::optional<DenseValues> dense_values(nb::handle given) {
    if (given.is_none()) return std::nullopt;
    const auto [bytes, extent] = nb::cast<std::pair<nb::bytes, std::array<std::int64_t, 3>>>(given);
    return DenseValues{{reinterpret_cast<const std::byte*>(bytes.c_str()), bytes.size()}, extent};
}

VolumeObject* build(nb::handle points, nb::handle mask, bool by_voxels, nb::handle background,
                    const std::array<double, 9>& matrix, const std::array<double, 3>& translation, nb::object limits,
                    nb::handle status, nb::handle device, const char* api, const char* name, nb::handle values) {
    Plan plan;
    plan.by_voxels = by_voxels;
    plan.recipe.map = map_of(matrix, translation, api);
    plan.recipe.type = by_voxels ? GridType::on_index : GridType::index;
    if (!background.is_none()) {
        const Type type = dtype_argument(background[nb::int_(0)].ptr(), api);
        plan.recipe.type = grid_type(type);
        const std::optional<std::vector<std::byte>> bytes =
            element_bytes(nb::object(background[nb::int_(1)]).ptr(), type);
        if (plan.recipe.type == GridType::unknown || !bytes)
            throw UsageError(api, "bg_value is " + type.python_name() + ", of which there are no volumes",
                             ErrorCategory::type);
        plan.recipe.background = *bytes;
    }
    plan.has_limits = !limits.is_none();
    if (plan.has_limits)
        for (std::size_t n = 0; n < 4; ++n)
            if (const nb::object limit = limits[nb::int_(n)]; !limit.is_none())
                plan.limits[n] = nb::cast<std::uint64_t>(limit);
    runtime::Device& on = device_from_python(device, api);
    runtime::refuse_recording(on, api, "make volumes before the capture");
    FoundTopology found = topology_of(points, mask, plan, api, name);
    Topology& topology = found.topology;
    plan.set_capacity(found.given, topology);
    const bool is_invalid = found.invalid >= 0 || topology.leaves.empty();
    const std::uint32_t problems = is_invalid ? kInvalid : plan.status(topology);
    if (!report(problems, found, plan, status, api)) topology = {};
    const std::int64_t shape[] = {static_cast<std::int64_t>(grid_bytes(plan.recipe.type, plan.capacity))};
    const runtime::Array bytes = runtime::empty(Type::scalar(Scalar::u8), shape, on);
    const std::optional<DenseValues> dense = dense_values(values);
    runtime::HostWrite written(bytes);
    VolumeObject* made = nullptr;
    without_gil(shape[0], [&] {
        const std::span grid(runtime::host_data(written.array()), static_cast<std::size_t>(shape[0]));
        build_grid(grid, topology, plan.recipe, plan.capacity);
        if (dense) write_dense(grid, dense->bytes, dense->extent, {0, 0, 0});
        written.finish();
        std::optional<Plan> kept;
        if (plan.has_limits) kept = std::move(plan);
        made = new VolumeObject(bytes, api, &written.array(), std::move(kept));
    });
    return made;
}

void rebuild(VolumeObject& self, nb::handle points, nb::handle mask, nb::handle status) {
    const char* const api = "Volume.rebuild()";
    if (!self.plan()) throw UsageError(api, "the volume was not allocated with rebuildable=True");
    const Plan& plan = *self.plan();
    for (const runtime::Device* const device :
         {&self.volume().device(), array_argument(points.ptr(), api, "points").array.device})
        runtime::refuse_recording(*device, api, "rebuild volumes outside of the capture");
    const FoundTopology found = topology_of(points, mask, plan, api, "points");
    const Topology& topology = found.topology;
    const bool is_invalid = found.invalid >= 0 || topology.leaves.empty();
    if (!report(is_invalid ? kInvalid : plan.status(topology), found, plan, status, api)) return;
    self.volume().replace(topology, plan.recipe, plan.capacity);
}

// ---- files ----

VolumeObject* read_file(nb::bytes file, nb::handle device) {
    const char* const api = "Volume.load_from_nvdb()";
    runtime::Device& on = device_from_python(device, api);
    const runtime::WithoutRecording without;
    VolumeObject* made = nullptr;
    without_gil(static_cast<std::int64_t>(file.size()), [&] {
        const runtime::Array grids = read_grids({reinterpret_cast<const std::byte*>(file.c_str()), file.size()}, api);
        made = new VolumeObject(&on == grids.device ? grids : runtime::clone(grids, on), api, &grids);
    });
    return made;
}

nb::bytes file_of(VolumeObject& self, const std::string& codec) {
    const char* const api = "Volume.save_to_nvdb()";
    for (const auto& [name, number] : kCodecs) {
        if (codec != name) continue;
        std::vector<std::byte> file;
        runtime::refuse_recording(self.volume().device(), api, "save it after the graph has run");
        const runtime::Array bytes = self.volume().host_bytes();
        without_gil(bytes.size(), [&] {
            file = write_grid({runtime::host_data(bytes), static_cast<std::size_t>(bytes.size())}, self.volume().grid(),
                              number, api);
        });
        return nb::bytes(reinterpret_cast<const char*>(file.data()), file.size());
    }
    throw UsageError(api, "there is no codec '" + codec + "'; there are 'none', 'zip' and 'blosc'",
                     ErrorCategory::value);
}

// ---- asking ----

// Reading such memory on the host would end the process.
void refuse_memory_of_gpu(const runtime::Array& bytes, const char* api) {
    if (bytes.device->geometry()) return;
    const runtime::Device* const owner = runtime::gpu_with_memory_at(bytes.address());
    if (!owner) return;
    throw UsageError(api, "address " + std::to_string(bytes.address()) + " is memory of '" + owner->alias +
                              "', which '" + bytes.device->alias + "' cannot read. help: device='" + owner->alias +
                              "'");
}

VolumeObject* from_array(nb::handle bytes, const char* api) {
    const runtime::Array& array = array_argument(bytes.ptr(), api, "data").array;
    if (array.dtype != Type::scalar(Scalar::u8) || array.ndim != 1 || !array.is_contiguous())
        throw UsageError(api, "the bytes of a grid are a contiguous array (n,) of uint8, and this is one of " +
                                  array.dtype.python_name() + " with shape " + runtime::shape_text(array.shape()));
    runtime::refuse_recording(*array.device, api, "make volumes before the capture");
    refuse_memory_of_gpu(array, api);
    VolumeObject* made = nullptr;
    without_gil(array.size(), [&] { made = new VolumeObject(array, api); });
    return made;
}

// The size that a grid in unknown memory has by its header, whose bytes are given.
std::uint64_t stated_size(nb::handle header, const char* api) {
    const runtime::Array& array = array_argument(header.ptr(), api, "data").array;
    refuse_memory_of_gpu(array, api);
    const runtime::Array host = runtime::spatial::readable_bytes(array, api);
    return read<std::uint64_t>(runtime::host_data(host) + grid::kSize);
}

nb::object next_grid(VolumeObject& self) {
    const Volume& volume = self.volume();
    const auto from = static_cast<std::int64_t>(volume.grid().size_bytes);
    if (volume.grid().index + 1 >= volume.grid().count || from >= volume.bytes().size()) return nb::none();
    const runtime::WithoutRecording without;
    runtime::Array bytes = runtime::slice(volume.bytes(), 0, from, volume.bytes().size() - from, 1);
    return nb::cast(new VolumeObject(std::move(bytes), "Volume.load_next_grid()"), nb::rv_policy::take_ownership);
}

const BlindData& blind_data(VolumeObject& self, std::int64_t index) {
    const std::vector<BlindData>& all = self.volume().grid().blind_data;
    if (index < 0 || static_cast<std::size_t>(index) >= all.size())
        throw UsageError("Volume.feature_array()", "the volume has " + std::to_string(all.size()) +
                                                       " feature arrays, and none with the number " +
                                                       std::to_string(index));
    return all[static_cast<std::size_t>(index)];
}

}  // namespace

void bind_volume(nb::module_& m) {
    m.def("_read_nvdb", &read_file, nb::arg("file"), nb::arg("device").none(), nb::rv_policy::take_ownership);
    m.def(
        "_volume_device",
        [](nb::handle device, const std::string& api) {
            return device_to_python(device_from_python(device, api.c_str()));
        },
        nb::arg("device").none(), nb::arg("api"));
    m.def("_stated_volume_size", &stated_size, nb::arg("header"), nb::arg("api"));
    m.def("_is_volume_type", [](nb::handle dtype) {
        const std::optional<Type> type = dtype_from_python(dtype);
        return type && grid_type(*type) != GridType::unknown;
    });
    m.def("_build_volume", &build, nb::arg("points"), nb::arg("mask").none(), nb::arg("by_voxels"),
          nb::arg("background").none(), nb::arg("matrix"), nb::arg("translation"), nb::arg("limits").none(),
          nb::arg("status").none(), nb::arg("device").none(), nb::arg("api"), nb::arg("name"), nb::arg("values").none(),
          nb::rv_policy::take_ownership);
    nb::class_<VolumeObject>(m, "_Volume", "The inside of a wp.Volume.")
        .def(nb::new_(&from_array), nb::arg("bytes"), nb::arg("api"))
        .def_prop_ro("id", [](VolumeObject& self) { return self.volume().id(); })
        .def_prop_ro("device", [](VolumeObject& self) { return device_to_python(self.volume().device()); })
        .def_prop_ro("bytes", [](VolumeObject& self) { return wrap_array(self.volume().bytes()); })
        .def_prop_ro("name", [](VolumeObject& self) { return self.volume().grid().name; })
        .def_prop_ro("size_bytes", [](VolumeObject& self) { return self.volume().grid().size_bytes; })
        .def_prop_ro("index", [](VolumeObject& self) { return self.volume().grid().index; })
        .def_prop_ro("count", [](VolumeObject& self) { return self.volume().grid().count; })
        .def_prop_ro("type", [](VolumeObject& self) { return std::string(type_name(self.volume().grid().type)); })
        .def_prop_ro("dtype", [](VolumeObject& self) { return dtype_object(self.volume().grid().type); })
        .def_prop_ro("matrix", [](VolumeObject& self) { return self.volume().grid().matrix; })
        .def_prop_ro("translation", [](VolumeObject& self) { return self.volume().grid().translation; })
        .def_prop_ro("voxel_size", [](VolumeObject& self) { return self.volume().grid().voxel_size; })
        .def_prop_ro("nodes", [](VolumeObject& self) { return self.volume().grid().nodes; })
        .def_prop_ro("voxel_count", [](VolumeObject& self) { return self.volume().voxel_count(); })
        .def_prop_ro("tiles", [](VolumeObject& self) { return list_of(self.volume(), &Volume::tiles); })
        .def_prop_ro("voxels", [](VolumeObject& self) { return list_of(self.volume(), &Volume::voxels); })
        // Whether it was built by voxels, and its capacity of voxels, leaves, lower and upper nodes.
        .def_prop_ro("room",
                     [](VolumeObject& self) -> nb::object {
                         if (!self.plan()) return nb::none();
                         const Capacity& c = self.plan()->capacity;
                         return nb::make_tuple(self.plan()->by_voxels, c.voxels, c.leaves, c.lower, c.upper);
                     })
        .def_prop_ro("feature_count", [](VolumeObject& self) { return self.volume().grid().blind_data.size(); })
        .def("feature_info",
             [](VolumeObject& self, std::int64_t index) {
                 const BlindData& data = blind_data(self, index);
                 return nb::make_tuple(data.name, self.volume().bytes().address() + data.offset, data.value_size,
                                       data.value_count, std::string(type_name(data.type)));
             })
        .def(
            "feature_array",
            [](VolumeObject& self, std::int64_t index, nb::handle dtype) {
                blind_data(self, index);
                std::optional<Type> as;
                if (!dtype.is_none()) as = dtype_argument(dtype.ptr(), "Volume.feature_array()");
                return wrap_array(self.volume().blind_data(static_cast<std::size_t>(index), as));
            },
            nb::arg("index"), nb::arg("dtype").none())
        .def("next_grid", &next_grid)
        .def("rebuild", &rebuild, nb::arg("points"), nb::arg("mask").none(), nb::arg("status").none())
        .def("file", &file_of, nb::arg("codec"));
}

}  // namespace weft::bindings
