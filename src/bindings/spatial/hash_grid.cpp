#include "runtime/spatial/hash_grid.h"

#include <nanobind/nanobind.h>

#include <optional>
#include <vector>

#include "bindings/arrays/array_object.h"
#include "bindings/devices/device.h"
#include "bindings/devices/stream.h"
#include "bindings/spatial/spatial.h"
#include "bindings/values/types.h"
#include "runtime/handles.h"
#include "types/objects.h"

namespace weft::bindings {

namespace {

using runtime::spatial::HashGrid;

void construct(HashGrid* self, std::int64_t x, std::int64_t y, std::int64_t z, nb::object device, nb::object dtype) {
    const Type type = dtype.is_none() ? f32_type() : dtype_argument(dtype.ptr(), "HashGrid()");
    const Type scalar = type.is_vector() && type.rows() == 3 ? type.scalar_type() : type;
    if (!scalar.is_scalar())
        throw UsageError("HashGrid()", "dtype is that of the points' coordinates, not " + type.python_name(),
                         ErrorCategory::type);
    new (self) HashGrid({x, y, z}, scalar.scalar(), device_from_python(device, "HashGrid()"));
}

// Without the GIL: a build takes milliseconds.
void build(nb::object object, nb::object points, double radius, nb::object groups) {
    const char* const api = "HashGrid.build()";
    HashGrid& self = nb::cast<HashGrid&>(object);
    const runtime::Array of = array_argument(points.ptr(), api, "points").array;
    std::optional<runtime::Array> group;
    if (!groups.is_none()) group = array_argument(groups.ptr(), api, "groups").array;
    const auto build = [&self, of, radius, group] {
        const nb::gil_scoped_release without;
        self.build(of, radius, group ? &*group : nullptr);
    };
    // A device with geometry captures the build itself.
    if (self.device().geometry() || !record_call(*of.device, "HashGrid.build", {object}, build)) build();
}

// HashGridQuery[wp.float64]: all queries are of one type, for any type of coordinates.
nb::object query_of(nb::handle cls, nb::handle dtype) {
    const std::optional<Type> type = dtype_from_python(dtype);
    if (!type || !type->is_float())
        throw UsageError("HashGridQuery[...]",
                         "expected float16, float32 or float64, got " + nb::cast<std::string>(nb::repr(dtype)),
                         ErrorCategory::type);
    return nb::borrow(cls);
}

// The data of a grid that queries read: 1 / width, the cell of each point, and their groups. None before it is built.
nb::object cells(HashGrid& self) {
    const runtime::spatial::ReadLease reading;
    const auto [grid, grouped] = self.describe();
    if (grid.inverse_width == 0.0) return nb::none();
    const auto numbers = [&](const ArrayView& view, std::int64_t count) {
        std::vector<std::int32_t> result(static_cast<std::size_t>(count));
        runtime::read_bytes(self.device(), result.data(), view.data, count * 4);
        return result;
    };
    const auto to_numpy = [](const std::vector<std::int32_t>& values) {
        const nb::bytes bytes(values.data(), values.size() * 4);
        return nb::module_::import_("numpy").attr("frombuffer")(bytes, "int32");
    };
    const std::int64_t count = grid.count, cell_count = std::int64_t{grid.dims[0]} * grid.dims[1] * grid.dims[2];
    const std::vector<std::int32_t> points = numbers(grid.points, count), starts = numbers(grid.starts, cell_count + 1);
    std::vector<std::int32_t> of_points(points.size());
    for (std::int64_t cell = 0; cell < cell_count; ++cell)
        for (std::int32_t at = starts[cell]; at < starts[cell + 1]; ++at)
            of_points[points[at]] = static_cast<std::int32_t>(cell);
    if (grouped.inverse_width == 0.0) return nb::make_tuple(grid.inverse_width, to_numpy(of_points), nb::none());
    const std::vector<std::int32_t> grouped_points = numbers(grouped.points, count),
                                    sorted = numbers(grouped.groups, count);
    std::vector<std::int32_t> groups(points.size());
    for (std::int64_t at = 0; at < count; ++at) groups[grouped_points[at]] = sorted[at];
    return nb::make_tuple(grid.inverse_width, to_numpy(of_points), to_numpy(groups));
}

}  // namespace

void bind_hash_grid(nb::module_& m) {
    const nb::object subscript = nb::cpp_function(&query_of, nb::arg("cls"), nb::arg("dtype").none());
    m.attr("HashGridQuery").attr("__class_getitem__") = nb::steal(PyClassMethod_New(subscript.ptr()));
    nb::class_<HashGrid> grid(
        m, "HashGrid", nb::is_weak_referenceable(),
        "Points ordered by cells of space, so that kernels find those near a place: wp.hash_grid_query().\n\n"
        "    grid = wp.HashGrid(128, 128, 128)\n"
        "    grid.build(points, radius)\n"
        "    wp.launch(kernel, dim=n, inputs=[grid.id, points, radius])\n\n"
        "Args:\n"
        "    dim_x, dim_y, dim_z: cells along each axis, before they are counted from 0 again; space has no border.\n"
        "        Points that are further apart than that share cells, which costs time and nothing else.\n"
        "    device: the device of the grid; by default the default device.\n"
        "    dtype: float16, float32 (None) or float64: the type of the points' coordinates.\n\n"
        "Errors: ValueError for dimensions below 1 and for more than 2^31 - 2 cells. Queries have no gradient; values\n"
        "that a kernel computes from their points have one.");
    define_del(grid);
    grid.def("__init__", &construct, nb::arg("dim_x") = 128, nb::arg("dim_y") = 128, nb::arg("dim_z") = 128,
             nb::arg("device") = nb::none(), nb::arg("dtype") = nb::none())
        .def(
            "build", &build, nb::arg("points"), nb::arg("radius"), nb::arg("groups") = nb::none(),
            "Orders these points; queries find them, and none of an earlier build.\n\n"
            "Args:\n"
            "    points: one-dimensional array of vec3 of the grid's type. It is read now only: after points have\n"
            "        moved, build again.\n"
            "    radius: the width of a cell, above 0; queries are fastest for this distance.\n"
            "    groups: int32 array, one number for each point, for queries that ask for one group; or None.\n\n"
            "Points of a cell stand in the order of their numbers, on any device and any number of threads. Launches "
            "that\n"
            "run meanwhile see the points of the former build; on a CUDA device the build comes after the work in the\n"
            "current stream, and works in the memory of the former one.")
        .def("reserve", &HashGrid::reserve, nb::arg("num_points"), nb::arg("with_groups") = false,
             nb::call_guard<nb::gil_scoped_release>(),
             "Takes the memory for so many points now, so that build() does not have to.")
        .def("__reduce__",
             [](nb::handle self) {
                 static PyObject* module = nullptr;
                 return function_of("warp._arrays.pickling", module, "reduce_hash_grid")(self);
             })
        .def("_cells", &cells)
        .def_prop_ro("id", &HashGrid::id, "The number that kernels take, as wp.uint64.")
        .def_prop_ro(
            "device", [](HashGrid& self) { return device_to_python(self.device()); }, "The device it is on.")
        .def_prop_ro(
            "dim_x", [](HashGrid& self) { return self.dims()[0]; }, "Cells along x.")
        .def_prop_ro(
            "dim_y", [](HashGrid& self) { return self.dims()[1]; }, "Cells along y.")
        .def_prop_ro(
            "dim_z", [](HashGrid& self) { return self.dims()[2]; }, "Cells along z.")
        .def_prop_ro(
            "dtype", [](HashGrid& self) { return dtype_to_python(Type::scalar(self.scalar())); },
            "The type of the points' coordinates.")
        .def("__repr__", [](HashGrid& self) {
            return "<HashGrid " + std::to_string(self.dims()[0]) + " x " + std::to_string(self.dims()[1]) + " x " +
                   std::to_string(self.dims()[2]) + " on '" + self.device().alias + "'>";
        });
}

}  // namespace weft::bindings
