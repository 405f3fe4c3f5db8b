#include "runtime/spatial/texture.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "runtime/array_copies.h"
#include "runtime/recording.h"
#include "runtime/spatial/device_geometry.h"
#include "support/error.h"
#include "types/objects.h"

namespace weft::runtime::spatial {

static_assert(offsetof(TextureDescriptor, extents) == 8 * sizeof(ArrayView) &&
              offsetof(TextureDescriptor, levels) == 8 * sizeof(ArrayView) + 48);

namespace {

struct FormatInfo {
    Scalar scalar;
    float divisor;
};
// By TexelFormat.
constexpr FormatInfo kFormats[] = {{Scalar::f32, 1.0f},     {Scalar::u8, 255.0f},    {Scalar::i8, 127.0f},
                                   {Scalar::u16, 65535.0f}, {Scalar::i16, 32767.0f}, {Scalar::f16, 1.0f},
                                   {Scalar::u32, 1.0f},     {Scalar::i32, 1.0f}};

std::optional<TexelFormat> format_of(Type type) {
    for (std::size_t n = 0; n < std::size(kFormats); ++n)
        if (type == Type::scalar(kFormats[n].scalar)) return static_cast<TexelFormat>(n);
    return std::nullopt;
}

// A view of packed elements.
ArrayView packed(void* data, std::int64_t size_bytes, std::int64_t element_bytes) {
    ArrayView view;
    view.data = data;
    view.shape[0] = size_bytes / element_bytes;
    view.strides[0] = element_bytes;
    return view;
}

std::int64_t texels_of_level(const TextureSettings& settings, std::int32_t level) {
    std::int64_t count = 1;
    for (const std::int32_t extent : settings.extents) count *= std::max(extent >> level, 1);
    return count;
}

void check(const Array& texels, const TextureSettings& settings, std::string_view api) {
    const auto fail = [&](const std::string& text) { throw UsageError(api, text, ErrorCategory::value); };
    if (!format_of(texels.dtype))
        fail("a texture has texels of uint8, uint16, uint32, int8, int16, int32, float16 or float32, not " +
             texels.dtype.python_name());
    if (settings.channels != 1 && settings.channels != 2 && settings.channels != 4)
        fail("a texture has 1, 2 or 4 channels, not " + std::to_string(settings.channels));
    for (const std::int32_t extent : settings.extents)
        if (extent < 1 || extent > kMostTextureExtent)
            fail("an extent is " + std::to_string(extent) + ", expected 1 to " + std::to_string(kMostTextureExtent));
    const std::int32_t largest = *std::ranges::max_element(settings.extents);
    if (settings.levels < 1 || settings.levels > kMostTextureLevels || largest >> (settings.levels - 1) == 0)
        fail("there are no " + std::to_string(settings.levels) + " levels of a texture whose largest extent is " +
             std::to_string(largest));
    const std::int64_t count = texels_before(settings, settings.levels) * settings.channels;
    if (count > INT32_MAX) fail("a texture has at most 2147483647 numbers, and this one " + std::to_string(count));
    // Kernels read words of 4 bytes.
    const std::int64_t bytes = (count * texels.dtype.size_bytes() + 3) / 4 * 4;
    if (texels.ndim != 1 || !texels.is_contiguous() || texels.size_bytes() != bytes)
        fail("the texels are an array of shape " + shape_text(texels.shape()) + ", expected (" +
             std::to_string(bytes / texels.dtype.size_bytes()) + ",)");
}

}  // namespace

std::int64_t texels_before(const TextureSettings& settings, std::int32_t level) {
    std::int64_t count = 0;
    for (std::int32_t each = 0; each < level; ++each) {
        count += texels_of_level(settings, each);
        if (count > INT32_MAX) break;  // too many in any case
    }
    return count;
}

TextureView::TextureView(Array texels, const TextureSettings& settings)
    : texels_(std::move(texels)), settings_(settings) {
    for (std::int32_t level = 0; level < settings.levels; ++level)
        level_starts_.push_back(static_cast<std::int32_t>(texels_before(settings, level)));
    const TexelFormat format = format_of(texels_.dtype).value();
    const std::int64_t size = texels_.size_bytes(),
                       starts_bytes = static_cast<std::int64_t>(level_starts_.size() * sizeof(std::int32_t));
    TextureDescriptor& d = descriptor_;
    const auto texels_as = [&](std::int64_t element_bytes) { return packed(texels_.view.data, size, element_bytes); };
    d.f32 = texels_as(4), d.f32x2 = texels_as(8), d.f32x4 = texels_as(16);
    d.u8 = texels_as(1), d.u16 = texels_as(2), d.f16 = texels_as(2), d.u32 = texels_as(4);
    d.level_starts = packed(level_starts_.data(), starts_bytes, sizeof(std::int32_t));
    std::ranges::copy(settings.extents, d.extents);
    std::ranges::copy(settings.address_modes, d.address_modes);
    d.channels = settings.channels;
    d.format = static_cast<std::int32_t>(format);
    d.divisor = kFormats[d.format].divisor;
    d.filter_mode = settings.filter_mode;
    d.mip_filter_mode = settings.mip_filter_mode;
    d.is_normalized = settings.is_normalized ? 1 : 0;
    d.levels = settings.levels;
    DeviceGeometry* const geometry = texels_.device->geometry();
    if (!geometry) return;
    const auto total = static_cast<std::int64_t>(sizeof d) + starts_bytes;
    memory_ = allocate(total, *texels_.device);
    d.level_starts.data = static_cast<std::byte*>(memory_->data) + sizeof d;
    std::vector<std::byte> bytes(static_cast<std::size_t>(total));
    std::memcpy(bytes.data(), &d, sizeof d);
    std::memcpy(bytes.data() + sizeof d, level_starts_.data(), static_cast<std::size_t>(starts_bytes));
    geometry->write(memory_->data, bytes.data(), total);
}

Contents TextureView::contents_of(std::shared_ptr<const TextureView> view) {
    DeviceGeometry* const geometry = view->texels_.device->geometry();
    const void* const descriptor = geometry ? view->memory_->data : static_cast<const void*>(&view->descriptor_);
    return {descriptor, std::move(view), geometry ? &geometry->table() : nullptr};
}

std::uint64_t TextureView::version() const { return texels_.buffer ? texels_.buffer->version : 0; }

Contents TextureView::copy() const {
    return contents_of(std::make_shared<const TextureView>(clone(texels_, *texels_.device), settings_));
}

Texture::Texture(Array texels, const TextureSettings& settings, std::string_view api) {
    check(texels, settings, api);
    id_ = publish(ObjectKind::texture,
                  TextureView::contents_of(std::make_shared<const TextureView>(std::move(texels), settings)));
}

Texture::~Texture() { withdraw(id_); }

std::shared_ptr<const TextureView> find_texture(std::uint64_t id) {
    return std::dynamic_pointer_cast<const TextureView>(present_contents(id).object);
}

void before_texels_are_written(std::uint64_t id, Device& device) {
    Recording* const recording = current_recording(device);
    if (recording && recording->runs_nodes()) {
        // A graph counts its writes when it begins, and a snapshot that is older than a write is of no use then.
        recording->memory().add_preparation([id] { keep_apart(id); });
        recording->add("keep texels", [id] { keep_apart(id); }, {});
    }
    keep_apart_in(recording, id);
}

}  // namespace weft::runtime::spatial
