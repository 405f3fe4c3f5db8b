// Machine code that a driver has made of the code that it was given, kept from one process to the next.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace weft::runtime {

// A place for it. `of` is all that it was made of and with. Its functions do not throw.
class ImageStore {
public:
    virtual ~ImageStore() = default;
    virtual bool is_open() = 0;  // now; else there is no sense in asking
    virtual std::optional<std::vector<std::byte>> load(const std::string& of) = 0;
    virtual void store(const std::string& of, std::span<const std::byte> image) = 0;
    virtual void remove(const std::string& of) = 0;
};

// Null: nothing is kept, as long as nobody has called this. It is used until the process ends.
void keep_images_in(ImageStore* store);
ImageStore* image_store();

}  // namespace weft::runtime
