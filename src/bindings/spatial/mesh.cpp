// wp.Mesh and wp.Bvh.
#include "runtime/spatial/mesh.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bindings/arrays/array_object.h"
#include "bindings/devices/device.h"
#include "bindings/devices/stream.h"
#include "bindings/spatial/spatial.h"
#include "runtime/handles.h"
#include "runtime/recording.h"
#include "runtime/spatial/bvh.h"
#include "runtime/spatial/device_geometry.h"
#include "types/objects.h"

namespace weft::bindings {

namespace {

namespace spatial = runtime::spatial;

// The default is the best tree, and the quickest build on a device that builds trees itself.
spatial::TreeOptions tree_options(const std::optional<std::string>& constructor, std::optional<int> leaf_size,
                                  const runtime::Device& device, const char* api) {
    spatial::TreeOptions options;
    const std::string name = constructor.value_or(device.geometry() ? "lbvh" : "sah");
    if (name == "sah" || name == "cubql")
        options.method = spatial::TreeMethod::sah;
    else if (name == "median")
        options.method = spatial::TreeMethod::median;
    else if (name == "lbvh")
        options.method = spatial::TreeMethod::linear;
    else
        throw UsageError(api, "there is no constructor '" + name + "'; expected 'sah', 'median', 'lbvh' or 'cubql'",
                         ErrorCategory::value);
    if (leaf_size) {
        if (*leaf_size < 1)
            throw UsageError(api, "a leaf has at least 1 item, not " + std::to_string(*leaf_size),
                             ErrorCategory::value);
        options.leaf_size = *leaf_size;
    }
    return options;
}

std::optional<runtime::Array> optional_array(nb::handle object, const char* api, const char* name) {
    if (object.is_none()) return std::nullopt;
    return array_argument(object.ptr(), api, name).array;
}

spatial::DeviceTable* table_of(runtime::Device& device) {
    spatial::DeviceGeometry* const geometry = device.geometry();
    return geometry ? &geometry->table() : nullptr;
}

// An update of an object in the order of its device's stream. The graph that is being captured, if any, does it again:
// by a call on the host, or by kernels that are captured, for which it keeps the object.
template <typename Object>
void update(runtime::Device& device, const char* name, nb::object self, const std::shared_ptr<Object>& object,
            const std::function<void()>& work) {
    if (!device.geometry()) {
        if (!record_call(runtime::host_device(), name, {std::move(self)}, work)) work();
        return;
    }
    if (runtime::Recording* const recording = runtime::current_recording(device)) recording->memory().hold(object);
    work();
}

class MeshObject : public spatial::Object {
public:
    MeshObject(const runtime::Array& points, const runtime::Array& indices,
               const std::optional<runtime::Array>& velocities, const spatial::MeshOptions& options,
               const std::optional<runtime::Array>& groups)
        : mesh(points, indices, velocities, options, groups) {}
    MeshObject(const MeshObject& of) : mesh(of.mesh) {}

    const void* descriptor() const { return mesh.descriptor(); }
    spatial::DeviceTable* table() const { return table_of(*mesh.points().device); }
    spatial::Contents copy() const override {
        const auto made = std::make_shared<MeshObject>(*this);
        return {made->descriptor(), made, made->table()};
    }
    std::shared_ptr<const void> descriptor_with(std::span<const ArrayView> arrays) const override {
        return mesh.descriptor_with(arrays[0], arrays[1], arrays[2]);
    }
    std::vector<const void*> addresses() const override {
        std::vector<const void*> all;
        const auto add = [&](const runtime::Array& array) {
            const void* const both[] = {array.view.data, array.view.grad};
            all.insert(all.end(), std::begin(both), std::end(both));
        };
        add(mesh.points());
        add(mesh.indices());
        if (mesh.velocities()) add(*mesh.velocities());
        return all;
    }

    spatial::Mesh mesh;
};

// Changes the tree of an object: in place, or in the host's memory, if a tape has it, in a copy that has the id from
// then on.
template <typename Python, typename Change>
void change_tree(Python& self, const Change& change) {
    auto object = self.object;
    {
        const nb::gil_scoped_release without;
        if (spatial::DeviceTable* const table = object->table()) {
            // Graphs have the addresses of its memory.
            spatial::keep_apart_in(runtime::current_recording(table->device()), self.id);
            return change(*object);
        }
        if (!spatial::is_kept(self.id)) {
            spatial::count_change();
            return change(*object);
        }
        object = std::make_shared<typename decltype(object)::element_type>(*object);
        change(*object);
    }
    spatial::replace(self.id, {object->descriptor(), object, object->table()});
    self.object = std::move(object);
}

struct PyMesh {
    std::shared_ptr<MeshObject> object;
    std::uint64_t id = 0;
    nb::object points, indices, velocities, groups;
    bool has_winding = false;

    ~PyMesh();
    // Arrays may have got gradients, which kernels find through the descriptor.
    std::uint64_t current_id() {
        program::mark_gradient_escaped(value_of(points.ptr()));
        if (!velocities.is_none()) program::mark_gradient_escaped(value_of(velocities.ptr()));
        object->mesh.set_gradients(value_of(points.ptr()).array,
                                   velocities.is_none() ? nullptr : &value_of(velocities.ptr()).array);
        return id;
    }
};

// By id, for tapes: launches read and write the arrays of meshes.
std::map<std::uint64_t, PyMesh*>& meshes() {
    static auto& all = *new std::map<std::uint64_t, PyMesh*>;
    return all;
}

PyMesh::~PyMesh() {
    meshes().erase(id);
    spatial::withdraw(id);
}

void construct_mesh(PyMesh* self, nb::object points, nb::object indices, nb::object velocities, bool winding,
                    std::optional<std::string> constructor, std::optional<int> leaf_size, nb::object groups) {
    const char* const api = "Mesh()";
    const runtime::Array& p = array_argument(points.ptr(), api, "points").array;
    const spatial::MeshOptions options{tree_options(constructor, leaf_size, *p.device, api), winding};
    const runtime::Array& i = array_argument(indices.ptr(), api, "indices").array;
    const std::optional<runtime::Array> v = optional_array(velocities, api, "velocities"),
                                        g = optional_array(groups, api, "groups");
    runtime::refuse_recording(*p.device, api, "make meshes before the capture, and refit() in it");
    std::shared_ptr<MeshObject> object;
    {
        const nb::gil_scoped_release without;
        object = std::make_shared<MeshObject>(p, i, v, options, g);
    }
    const std::uint64_t id = spatial::publish(ObjectKind::mesh, {object->descriptor(), object, object->table()});
    new (self) PyMesh{std::move(object), id, points, indices, velocities, groups, winding};
    meshes()[id] = self;
}

void refit(nb::object object) {
    auto& self = nb::cast<PyMesh&>(object);
    update(*self.object->mesh.points().device, "Mesh.refit", object, self.object,
           [&self] { change_tree(self, [](MeshObject& changed) { changed.mesh.refit(); }); });
}

void set_points(PyMesh& self, nb::object points) {
    const runtime::Array& p = array_argument(points.ptr(), "Mesh.points", "points").array;
    runtime::refuse_recording(*p.device, "Mesh.points", "assign the points before the capture, and refit() in it");
    change_tree(self, [&](MeshObject& object) { object.mesh.set_points(p); });
    self.points = std::move(points);
}

void set_velocities(PyMesh& self, nb::object velocities) {
    const std::optional<runtime::Array> v = optional_array(velocities, "Mesh.velocities", "velocities");
    spatial::count_change();
    self.object->mesh.set_velocities(v);
    self.velocities = std::move(velocities);
}

int traverse_mesh(PyObject* self, visitproc visit, void* arg) {
    if (!nb::inst_ready(self)) return 0;
    PyMesh* const mesh = nb::inst_ptr<PyMesh>(self);
    for (const nb::object* held : {&mesh->points, &mesh->indices, &mesh->velocities, &mesh->groups})
        Py_VISIT(held->ptr());
    Py_VISIT(Py_TYPE(self));
    return 0;
}
int clear_mesh(PyObject* self) {
    if (!nb::inst_ready(self)) return 0;
    PyMesh* const mesh = nb::inst_ptr<PyMesh>(self);
    for (nb::object* held : {&mesh->velocities, &mesh->groups}) *held = nb::none();
    return 0;
}
PyType_Slot mesh_slots[] = {
    {Py_tp_traverse, reinterpret_cast<void*>(&traverse_mesh)},
    {Py_tp_clear, reinterpret_cast<void*>(&clear_mesh)},
    {0, nullptr},
};

// ---- wp.Bvh ----

struct BvhObject : spatial::Object {
    BvhObject(const runtime::Array& lowers, const runtime::Array& uppers, const spatial::TreeOptions& options,
              const std::optional<runtime::Array>& groups)
        : bvh(lowers, uppers, options, groups) {}
    BvhObject(const BvhObject& of) : bvh(of.bvh) {}

    const void* descriptor() const { return bvh.descriptor(); }
    spatial::DeviceTable* table() const { return table_of(*bvh.lowers().device); }
    spatial::Contents copy() const override {
        const auto made = std::make_shared<BvhObject>(*this);
        return {made->descriptor(), made, made->table()};
    }

    spatial::Bvh bvh;
};

struct PyBvh {
    std::shared_ptr<BvhObject> object;
    std::uint64_t id = 0;
    nb::object lowers, uppers, groups;
    spatial::TreeOptions options;

    ~PyBvh() { spatial::withdraw(id); }
};

void construct_bvh(PyBvh* self, nb::object lowers, nb::object uppers, std::optional<std::string> constructor,
                   nb::object groups, std::optional<int> leaf_size) {
    const char* const api = "Bvh()";
    const runtime::Array& l = array_argument(lowers.ptr(), api, "lowers").array;
    const spatial::TreeOptions options = tree_options(constructor, leaf_size, *l.device, api);
    const runtime::Array& u = array_argument(uppers.ptr(), api, "uppers").array;
    const std::optional<runtime::Array> g = optional_array(groups, api, "groups");
    runtime::refuse_recording(*l.device, api, "make trees before the capture, and refit() or rebuild() in it");
    std::shared_ptr<BvhObject> object;
    {
        const nb::gil_scoped_release without;
        object = std::make_shared<BvhObject>(l, u, options, g);
    }
    const std::uint64_t id = spatial::publish(ObjectKind::bvh, {object->descriptor(), object, object->table()});
    new (self) PyBvh{std::move(object), id, lowers, uppers, groups, options};
}

void refit_bvh(nb::object object) {
    auto& self = nb::cast<PyBvh&>(object);
    update(*self.object->bvh.lowers().device, "Bvh.refit", object, self.object,
           [&self] { change_tree(self, [](BvhObject& changed) { changed.bvh.refit(); }); });
}

// A new tree under the same id: running launches keep the former one.
void replace_tree(PyBvh& self, const spatial::TreeOptions& options) {
    const std::optional<runtime::Array> groups = optional_array(self.groups, "Bvh.rebuild()", "groups");
    const runtime::Array lowers = self.object->bvh.lowers(), uppers = self.object->bvh.uppers();
    std::shared_ptr<BvhObject> object;
    {
        const nb::gil_scoped_release without;
        object = std::make_shared<BvhObject>(lowers, uppers, options, groups);
    }
    spatial::replace(self.id, {object->descriptor(), object, object->table()});
    self.object = std::move(object);
}

void rebuild(nb::object of, std::optional<std::string> constructor) {
    PyBvh& self = nb::cast<PyBvh&>(of);
    runtime::Device& device = *self.object->bvh.lowers().device;
    const spatial::TreeMethod method =
        constructor ? tree_options(constructor, std::nullopt, device, "Bvh.rebuild()").method : self.options.method;
    if (!device.geometry()) {
        self.options.method = method;
        return update(device, "Bvh.rebuild", of, self.object,
                      [&self, options = self.options] { replace_tree(self, options); });
    }
    // A device builds packed trees alone. A graph finds one that is made before, beside the capture.
    const bool is_captured = runtime::current_recording(device) != nullptr;
    if (is_captured && !self.object->bvh.is_packed()) {
        if (spatial::is_kept(self.id))
            throw UsageError("Bvh.rebuild()",
                             "a tape keeps the tree, which the host has built, and a graph builds another kind. help: "
                             "make the tree with constructor='lbvh'");
        const runtime::WithoutRecording without;
        self.options.method = spatial::TreeMethod::linear;
        replace_tree(self, self.options);
    }
    if (self.object->bvh.is_packed() && (is_captured || method == spatial::TreeMethod::linear)) {
        spatial::keep_apart_in(runtime::current_recording(device), self.id);
        return update(device, "Bvh.rebuild", of, self.object, [&self] { self.object->bvh.rebuild_in_place(); });
    }
    self.options.method = method;
    replace_tree(self, self.options);
}

int traverse_bvh(PyObject* self, visitproc visit, void* arg) {
    if (!nb::inst_ready(self)) return 0;
    PyBvh* const bvh = nb::inst_ptr<PyBvh>(self);
    for (const nb::object* held : {&bvh->lowers, &bvh->uppers, &bvh->groups}) Py_VISIT(held->ptr());
    Py_VISIT(Py_TYPE(self));
    return 0;
}
PyType_Slot bvh_slots[] = {
    {Py_tp_traverse, reinterpret_cast<void*>(&traverse_bvh)},
    {0, nullptr},
};

// For pickle: by the arrays that it was made of.
nb::object reduced(nb::handle self, const char* how) {
    static PyObject* module = nullptr;
    return function_of("warp._arrays.pickling", module, how)(self);
}

constexpr const char* kMeshDoc =
    "Triangles, for queries by kernels: rays, closest points, boxes (wp.mesh_query_ray() and the like).\n\n"
    "    mesh = wp.Mesh(points, indices)\n"
    "    wp.launch(kernel, dim=n, inputs=[mesh.id])\n\n"
    "Args:\n"
    "    points: one-dimensional array of vec3 or vec3d. It is kept, and may be written to: call refit() then.\n"
    "    indices: one-dimensional int32 array, the three points of each face, counter-clockwise from outside. Checked\n"
    "        here; they do not change afterwards.\n"
    "    velocities: array like points, for wp.mesh_eval_velocity(); or None.\n"
    "    support_winding_number: also prepares wp.mesh_query_point_sign_winding_number().\n"
    "    bvh_constructor: 'sah': the best tree; 'median' and 'lbvh' are built faster; 'cubql' is 'sah' here. None is\n"
    "        'sah' on a CPU and 'lbvh' on a CUDA device, which builds such a tree by itself: others are built on the "
    "host.\n"
    "    bvh_leaf_size: faces of a leaf of the tree at most; None is 8, which is also the most.\n"
    "    groups: int32 array, a number for each face: queries may be restricted to one, see\n"
    "        wp.mesh_get_group_root(); or None.\n\n"
    "Faces without area and equal faces are allowed; faces with a coordinate that is not finite are never found.\n\n"
    "Errors: TypeError and ValueError if the arrays do not fit each other; an index of no point is named.\n\n"
    "Gradient: results of queries have derivatives with respect to the query and, if the points have "
    "requires_grad,\n"
    "to the points; the face and the side count as constant. A tape keeps the mesh as each of its launches saw it.";

constexpr const char* kBvhDoc =
    "Boxes, for queries by kernels: which of them meet a box, a ray, a sphere (wp.bvh_query_aabb() and the like).\n\n"
    "Args:\n"
    "    lowers, uppers: one-dimensional arrays of vec3 or vec3d, the corners of each box. They are kept, and may be\n"
    "        written to: call refit() or rebuild() then.\n"
    "    constructor: 'sah': the best tree; 'median' and 'lbvh' are built faster; 'cubql' is 'sah' here. None is "
    "'sah'\n"
    "        on a CPU and 'lbvh' on a CUDA device, which builds such a tree by itself: others are built on the host.\n"
    "    groups: int32 array, a number for each box: queries may be restricted to one, see\n"
    "        wp.bvh_get_group_root(); or None.\n"
    "    leaf_size: boxes of a leaf of the tree at most, up to 8.\n\n"
    "Boxes with a NaN, or with a lower corner above the upper one, are never found.";

}  // namespace

std::vector<program::Variable*> arrays_of_mesh(std::uint64_t id) {
    const auto found = meshes().find(id);
    if (found == meshes().end()) return {};
    PyMesh& mesh = *found->second;
    mesh.current_id();
    const auto variable = [](const nb::object& of) { return of.is_none() ? nullptr : &value_of(of.ptr()); };
    return {variable(mesh.points), variable(mesh.velocities), variable(mesh.indices)};
}

void bind_mesh(nb::module_& m) {
    nb::class_<PyMesh> mesh(m, "Mesh", nb::type_slots(mesh_slots), nb::is_weak_referenceable(), nb::dynamic_attr(),
                            kMeshDoc);
    define_del(mesh);
    mesh.def("__init__", &construct_mesh, nb::arg("points"), nb::arg("indices"), nb::arg("velocities") = nb::none(),
             nb::arg("support_winding_number") = false, nb::arg("bvh_constructor") = nb::none(),
             nb::arg("bvh_leaf_size") = nb::none(), nb::arg("groups") = nb::none())
        .def("__reduce__", [](nb::handle self) { return reduced(self, "reduce_mesh"); })
        .def("refit", &refit,
             "To be called after points were written to: queries see them from then on, with the same tree.")
        .def_prop_ro("id", &PyMesh::current_id, "The number that kernels take, as wp.uint64.")
        .def_prop_rw(
            "points", [](PyMesh& self) { return self.points; }, &set_points,
            "The points. Another array of the same length may be assigned; the mesh is refitted.")
        .def_prop_ro(
            "indices", [](PyMesh& self) { return self.indices; }, "Three points of each face.")
        .def_prop_rw(
            "velocities", [](PyMesh& self) { return self.velocities; }, &set_velocities, nb::arg("velocities").none(),
            "Velocities of the points, or None.")
        .def_prop_ro(
            "groups", [](PyMesh& self) { return self.groups; }, "A number for each face, or None.")
        .def_prop_ro(
            "support_winding_number", [](PyMesh& self) { return self.has_winding; },
            "Whether winding numbers were prepared.")
        .def_prop_ro(
            "device", [](PyMesh& self) { return device_to_python(*self.object->mesh.points().device); },
            "The device it is on.");
    register_dtype(mesh, find_known_struct("Mesh")->type());

    nb::class_<PyBvh> bvh(m, "Bvh", nb::type_slots(bvh_slots), nb::is_weak_referenceable(), kBvhDoc);
    define_del(bvh);
    bvh.def("__init__", &construct_bvh, nb::arg("lowers"), nb::arg("uppers"), nb::arg("constructor") = nb::none(),
            nb::arg("groups") = nb::none(), nb::arg("leaf_size") = nb::none())
        .def("__reduce__", [](nb::handle self) { return reduced(self, "reduce_bvh"); })
        .def("refit", &refit_bvh, "After boxes have changed: the same tree, around the boxes as they are now.")
        .def("rebuild", &rebuild, nb::arg("constructor") = nb::none(),
             "After boxes have changed a lot: a new tree, under the same id. In a capture on a CUDA device it is one "
             "of\n"
             "'lbvh', also of a tree that was made otherwise, and stays one: the device builds no others.")
        .def_prop_ro(
            "id", [](PyBvh& self) { return self.id; }, "The number that kernels take, as wp.uint64.")
        .def_prop_ro(
            "lowers", [](PyBvh& self) { return self.lowers; }, "The lower corners.")
        .def_prop_ro(
            "uppers", [](PyBvh& self) { return self.uppers; }, "The upper corners.")
        .def_prop_ro(
            "groups", [](PyBvh& self) { return self.groups; }, "A number for each box, or None.")
        .def_prop_ro(
            "device", [](PyBvh& self) { return device_to_python(*self.object->bvh.lowers().device); },
            "The device it is on.");
}

}  // namespace weft::bindings
