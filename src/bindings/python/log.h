// What Weft says about its own work goes to the program's logger, python/warp/_logger.py, from
// wp.config.log_level on. Nothing that a kernel prints goes here, and no error: those are exceptions.
#pragma once

#include <string>

#include "program/host.h"

namespace weft::bindings {

using program::LogLevel;

bool is_logged(LogLevel level);
// Needs the GIL. Does nothing below the level.
void log(LogLevel level, const std::string& text);
// The same at any level: what the program asked for.
void say(LogLevel level, const std::string& text);

}  // namespace weft::bindings
