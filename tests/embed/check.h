// The checks of this folder's programs: they print failures, go on, and end with the number of failures.
#pragma once

#include <cstdio>
#include <initializer_list>
#include <stdexcept>
#include <string>

inline int failures = 0;

inline void check(bool holds, const std::string& what) {
    if (holds) return;
    ++failures;
    std::printf("FAILED: %s\n", what.c_str());
}

// The text that the call throws, which must have all of these parts.
template <typename Call>
void expect_error(const Call& call, std::initializer_list<const char*> parts) {
    try {
        call();
    } catch (const std::invalid_argument& error) {
        for (const char* part : parts)
            check(std::string(error.what()).find(part) != std::string::npos,
                  std::string("'") + part + "' is not in: " + error.what());
        return;
    }
    check(false, std::string("no error where one with '") + *parts.begin() + "' was expected");
}
