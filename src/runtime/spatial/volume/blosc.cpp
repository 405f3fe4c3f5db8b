#include "runtime/spatial/volume/blosc.h"

#include <dlfcn.h>

#include <optional>

#include "support/error.h"

namespace weft::runtime {

namespace {

std::optional<Blosc> find() {
    void* const library = dlopen("libblosc.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return std::nullopt;
    Blosc found;
    const auto look = [&](auto& function, const char* name) {
        function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
        return function != nullptr;
    };
    if (look(found.validate, "blosc_cbuffer_validate") && look(found.decompress, "blosc_decompress_ctx") &&
        look(found.compress, "blosc_compress_ctx"))
        return found;
    return std::nullopt;
}

}  // namespace

const Blosc& blosc(std::string_view api) {
    static const std::optional<Blosc> found = find();
    if (!found)
        throw UsageError(api,
                         "the codec 'blosc' needs the library libblosc.so.1, which was not found. help: install it "
                         "(Debian: libblosc1), or use the codec 'zip'");
    return *found;
}

}  // namespace weft::runtime
