// Messages about Weft's own work go to the program's logger, python/warp/_logger.py, from wp.config.log_level on.
// Output of kernels does not go here, nor do errors: those are exceptions.
#pragma once

#include <string>

#include "program/host/host.h"

namespace weft::bindings {

using program::LogLevel;

bool is_logged(LogLevel level);
// Needs the GIL. Does nothing below the level.
void log(LogLevel level, const std::string& text);
// The same at any level, for output that the program asked for.
void say(LogLevel level, const std::string& text);

}  // namespace weft::bindings
