#include "bindings/log.h"

#include <nanobind/nanobind.h>

#include "program/settings.h"

namespace weft::bindings {

namespace nb = nanobind;

bool is_logged(LogLevel level) { return static_cast<int>(level) >= program::settings().log_level; }

void log(LogLevel level, const std::string& text) {
    if (!is_logged(level)) return;
    const std::string line = std::string(level >= LogLevel::warning ? "warp: warning: " : "warp: ") + text;
    // As print() does, and nothing in a process whose sys.stderr is None.
    nb::object stream = nb::borrow(PySys_GetObject("stderr"));
    if (stream.is_valid() && !stream.is_none()) nb::print(nb::str(line.c_str(), line.size()), nb::handle(), stream);
}

}  // namespace weft::bindings
