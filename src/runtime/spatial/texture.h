// A texture: texels that kernels sample by its id (runtime/handles.h, builtins/texture.cpp).
//
// Texels are numbers in memory of a device, width first, then height, then depth, the channels of a texel side by side,
// and the levels of a pyramid one after the other. The descriptor has everything that sampling depends on.
//
// On a device with geometry of its own (device_geometry.h) the descriptor is in that device's memory, too.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "runtime/array.h"
#include "runtime/handles.h"

namespace weft::runtime::spatial {

// Kernels compare these numbers (builtins/texture.cpp).
enum class TexelFormat : std::int32_t { f32, u8, i8, u16, i16, f16, u32, i32 };

struct TextureSettings {
    std::array<std::int32_t, 3> extents{1, 1, 1};  // width, height, depth; 1 for axes that it lacks
    std::int32_t channels = 1;                     // 1, 2, 4
    std::int32_t levels = 1;
    std::array<std::int32_t, 3> address_modes{};  // wp.TextureAddressMode
    std::int32_t filter_mode = 0;                 // wp.TextureFilterMode
    std::int32_t mip_filter_mode = 0;
    bool is_normalized = true;
};

inline constexpr std::int32_t kMostTextureExtent = 1 << 29;
inline constexpr std::int32_t kMostTextureLevels = 30;

// types/objects.cpp has these fields in this order.
struct TextureDescriptor {
    // The same memory, as the arrays of numbers that formats consist of.
    ArrayView f32, f32x2, f32x4, u8, u16, f16, u32;
    ArrayView level_starts;  // int32, in texels
    std::int32_t extents[3] = {0, 0, 0};
    std::int32_t address_modes[3] = {0, 0, 0};
    std::int32_t channels = 0;
    std::int32_t format = 0;
    float divisor = 1.0f;
    std::int32_t filter_mode = 0;
    std::int32_t mip_filter_mode = 0;
    std::int32_t is_normalized = 0;
    std::int32_t levels = 0;
};

// The contents of a texture's id.
class TextureView : public Object {
public:
    TextureView(Array texels, const TextureSettings& settings);
    TextureView(const TextureView&) = delete;
    TextureView& operator=(const TextureView&) = delete;

    static Contents contents_of(std::shared_ptr<const TextureView> view);
    const Array& texels() const { return texels_; }
    const TextureSettings& settings() const { return settings_; }

    // Counts writes to the texels.
    std::uint64_t version() const override;
    Contents copy() const override;

private:
    Array texels_;
    TextureSettings settings_;
    std::vector<std::int32_t> level_starts_;
    TextureDescriptor descriptor_;
    BufferPtr memory_;  // on a device with geometry of its own: the descriptor, the starts
};

class Texture {
public:
    // The texels of all levels, a contiguous array of one dimension of whole words of 4 bytes, which the texture
    // shares. Throws UsageError in the
    // name of `api` for a type without a format, and settings that do not fit each other or the texels.
    Texture(Array texels, const TextureSettings& settings, std::string_view api);
    ~Texture();
    Texture(const Texture&) = delete;
    Texture& operator=(const Texture&) = delete;

    std::uint64_t id() const { return id_; }

private:
    std::uint64_t id_ = 0;
};

// The texture that an id names; null if there is none.
std::shared_ptr<const TextureView> find_texture(std::uint64_t id);
// To be called before the texels are written: tapes keep those that launches have read.
void before_texels_are_written(std::uint64_t id, Device& device);

// The number of texels in the levels before `level`.
std::int64_t texels_before(const TextureSettings& settings, std::int32_t level);

}  // namespace weft::runtime::spatial
