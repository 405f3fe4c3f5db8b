// What compiled kernels may call outside themselves, by name: the math library, SLEEF, the compiler's own helpers,
// print and fault. A fixed table and no search of the process: a kernel can never bind to a function that some other
// library in the process happens to call the same.
#pragma once

#include <string>

namespace weft::runtime {

// Null where there is no such function.
void* find_symbol(const std::string& name);
// The same for functions that the user wrote in C++: they may use all that the process has.
void* find_symbol_of_process(const std::string& name);

}  // namespace weft::runtime
