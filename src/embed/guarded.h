// Errors as C++ programs see them: exceptions of the standard library, so that no class of Weft crosses the boundary.
#pragma once

#include <stdexcept>

#include "support/error.h"

namespace weft {

template <typename Body>
auto guarded(const Body& body) {
    try {
        return body();
    } catch (const UsageError& error) {
        throw std::invalid_argument(error.what());
    } catch (const Error& error) {
        throw std::runtime_error(error.what());
    }
}

}  // namespace weft
