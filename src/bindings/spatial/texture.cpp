// The C++ half of textures (python/warp/_spatial/texture.py), which has parsed the arguments and made the texels of all
// levels. An instance of wp.Texture2D is a struct value, its id and extents, as kernels take it.
#include "runtime/spatial/texture.h"

#include <nanobind/stl/array.h>
#include <nanobind/stl/string.h>

#include <cstring>

#include "bindings/arrays/array_object.h"
#include "bindings/devices/device.h"
#include "bindings/spatial/spatial.h"
#include "bindings/structs/structs.h"
#include "bindings/values/types.h"
#include "runtime/recording.h"
#include "types/objects.h"

namespace weft::bindings {

namespace {

using runtime::spatial::Texture, runtime::spatial::TextureSettings, runtime::spatial::TextureView;

// The bytes of a texture in kernels (weft::texture_type): an id, then as many extents as it has dimensions.
constexpr std::size_t kExtents = sizeof(std::uint64_t);

StructValue& struct_of(nb::handle texture) {
    StructValue* const value = struct_pointer(texture);
    if (!value || texture_dims(value->type()) == 0)
        throw UsageError("Texture", "expected a texture, got " + describe(texture), ErrorCategory::type);
    return *value;
}

std::uint64_t id_of(nb::handle texture) {
    std::uint64_t id = 0;
    std::memcpy(&id, struct_of(texture).data(), sizeof id);
    return id;
}

// The texture that such a value names; null if there is none.
std::shared_ptr<const TextureView> view_of(nb::handle texture) {
    return runtime::spatial::find_texture(id_of(texture));
}

nb::tuple extents_of(nb::handle texture) {
    const StructValue& value = struct_of(texture);
    std::array<std::int32_t, kMostTextureDims> extents{};
    std::memcpy(extents.data(), value.data() + kExtents,
                static_cast<std::size_t>(texture_dims(value.type())) * sizeof extents[0]);
    return nb::make_tuple(extents[0], extents[1], extents[2]);
}

Texture* make_texture(nb::handle texture, nb::handle texels, std::array<std::int32_t, 3> extents, std::int32_t channels,
                      std::int32_t levels, std::array<std::int32_t, 3> address_modes, std::int32_t filter_mode,
                      std::int32_t mip_filter_mode, bool is_normalized, const std::string& api) {
    StructValue& value = struct_of(texture);
    const runtime::Array& of = array_argument(texels.ptr(), api.c_str(), "texels").array;
    runtime::refuse_recording(*of.device, api, "make textures before the capture");
    const TextureSettings settings{.extents = extents,
                                   .channels = channels,
                                   .levels = levels,
                                   .address_modes = address_modes,
                                   .filter_mode = filter_mode,
                                   .mip_filter_mode = mip_filter_mode,
                                   .is_normalized = is_normalized};
    auto made = std::make_unique<Texture>(of, settings, api);
    const std::uint64_t id = made->id();
    std::memcpy(value.data(), &id, sizeof id);
    std::memcpy(value.data() + kExtents, extents.data(),
                static_cast<std::size_t>(texture_dims(value.type())) * sizeof extents[0]);
    return made.release();
}

// Of the texture that the value names: texels of all levels, and the settings; None if there is none.
nb::object settings_of(nb::handle texture) {
    const std::shared_ptr<const TextureView> view = view_of(texture);
    if (!view) return nb::none();
    const TextureSettings& s = view->settings();
    return nb::make_tuple(wrap_array(runtime::Array(view->texels())), s.channels, s.levels,
                          nb::make_tuple(s.address_modes[0], s.address_modes[1], s.address_modes[2]), s.filter_mode,
                          s.mip_filter_mode, s.is_normalized);
}

}  // namespace

void bind_texture(nb::module_& m) {
    nb::class_<Texture>(m, "_TextureMemory", "The inside of a texture: it lives as long as this object.");
    m.def("_make_texture", &make_texture, nb::arg("texture"), nb::arg("texels"), nb::arg("extents"),
          nb::arg("channels"), nb::arg("levels"), nb::arg("address_modes"), nb::arg("filter_mode"),
          nb::arg("mip_filter_mode"), nb::arg("is_normalized"), nb::arg("api"), nb::rv_policy::take_ownership);
    m.def("_texture_id", &id_of, nb::arg("texture"));
    m.def("_texture_extents", &extents_of, nb::arg("texture"));
    m.def("_texture_settings", &settings_of, nb::arg("texture"));
    m.def(
        "_before_texels_are_written",
        [](nb::handle texture) {
            if (const auto view = view_of(texture))
                runtime::spatial::before_texels_are_written(id_of(texture), *view->texels().device);
        },
        nb::arg("texture"));
    m.def(
        "_texture_class", [](nb::handle python_class, int dims) { register_dtype(python_class, texture_type(dims)); },
        nb::arg("python_class"), nb::arg("dims"), "Makes it the class of textures of so many dimensions.");
}

}  // namespace weft::bindings
