#include "program/kernel/disk_image_cache.h"

#include "jit/disk_cache.h"
#include "jit/hash.h"
#include "program/host/settings.h"
#include "runtime/driver_image_cache.h"

namespace weft::program {

namespace {

class DiskImageCache final : public runtime::DriverImageCache {
public:
    bool is_open() override { return settings().cache_kernels; }
    std::optional<std::vector<std::byte>> load(const std::string& of) override {
        std::optional<Binary> found = cache().load(key_of(of));
        if (!found) return {};
        return std::move(found->code);
    }
    void store(const std::string& of, std::span<const std::byte> image) override {
        Binary binary;
        binary.key = key_of(of);
        binary.code.assign(image.begin(), image.end());
        cache().store(binary);  // a failure needs no report: the kernel's own cache fails too, and reports it
    }
    void remove(const std::string& of) override { cache().remove(key_of(of)); }

private:
    static jit::DiskCache cache() { return jit::DiskCache(jit::cache_folder(settings().cache_folder)); }
    static Digest key_of(const std::string& of) { return jit::hash_bytes("made by a driver\n" + of); }
};

}  // namespace

void cache_driver_images() {
    static DiskImageCache images;
    runtime::set_driver_image_cache(&images);
}

}  // namespace weft::program
