#include "program/host/settings.h"

#include <cstdlib>
#include <string_view>

namespace weft::program {

bool serial_by_environment() {
    const char* const text = std::getenv("WARP_SERIAL");
    return text && *text && std::string_view(text) != "0";
}

Settings current_settings;

thread_local std::optional<bool> Determinism::wanted_;

bool is_deterministic(std::optional<bool> of_kernel) {
    if (Determinism::wanted_) return *Determinism::wanted_;
    return of_kernel.value_or(current_settings.deterministic);
}

}  // namespace weft::program
