// Errors as C++ programs get them: of the standard library, so that nothing of ours has to cross the border.
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
