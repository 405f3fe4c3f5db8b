#include "program/settings.h"

#include <cstdlib>
#include <string_view>

namespace weft::program {

bool serial_by_environment() {
    const char* const text = std::getenv("WARP_SERIAL");
    return text && *text && std::string_view(text) != "0";
}

Settings current_settings;

}  // namespace weft::program
