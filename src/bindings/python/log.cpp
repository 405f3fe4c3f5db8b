#include "bindings/python/log.h"

#include <nanobind/nanobind.h>

#include "bindings/python/python_function.h"
#include "program/host/settings.h"

namespace weft::bindings {

namespace nb = nanobind;

bool is_logged(LogLevel level) { return static_cast<int>(level) >= program::settings().log_level; }

void say(LogLevel level, const std::string& text) {
    static PyObject* module = nullptr;
    const char* method = level >= LogLevel::error     ? "error"
                         : level >= LogLevel::warning ? "warning"
                         : level >= LogLevel::info    ? "info"
                                                      : "debug";
    function_of("warp._logger", module, "_say")(method, nb::str(text.c_str(), text.size()));
}

void log(LogLevel level, const std::string& text) {
    if (is_logged(level)) say(level, text);
}

}  // namespace weft::bindings
