// The functions that compiled kernels may call, by name: the math library, SLEEF, the compiler's helpers, print and
// fault. It is a fixed table and not a search of the process: a kernel can never bind to a function of another library
// that has the same name.
#pragma once

#include <string>

namespace weft::runtime {

// Null if there is no such function.
void* find_symbol(const std::string& name);
// The lookup for functions that the user wrote in C++: they may use all symbols of the process.
void* find_symbol_of_process(const std::string& name);

}  // namespace weft::runtime
