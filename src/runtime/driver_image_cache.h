// Machine code that a driver compiled, kept across processes.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace weft::runtime {

// A store of images. `of` is the key: everything that the image was made from and with. Its functions do not throw.
class DriverImageCache {
public:
    virtual ~DriverImageCache() = default;
    virtual bool is_open() = 0;  // at present; if not, the other functions have no effect
    virtual std::optional<std::vector<std::byte>> load(const std::string& of) = 0;
    virtual void store(const std::string& of, std::span<const std::byte> image) = 0;
    virtual void remove(const std::string& of) = 0;
};

// Null, which is the default: nothing is kept. The store must live until the process ends.
void set_driver_image_cache(DriverImageCache* store);
DriverImageCache* driver_image_cache();

}  // namespace weft::runtime
