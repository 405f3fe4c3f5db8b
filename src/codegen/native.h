// Functions that the user wrote in C++ (@wp.func_native). Codegen writes C++ for each kind of call: the types of the
// arguments, the snippet as the body of a function, and one function around it that the kernel's code calls. It knows
// nothing of compilers: jit/native.h runs one over the text.
//
//   extern "C" void weft_native(unsigned long lanes, void* result, void* a, long a_step, ...)
//
// runs the snippet for each lane whose bit is set, in order. `result` is room for one value per lane; `a` points to the
// argument of lane 0, laid out as in memory, the next lane's is a_step bytes on (0: all lanes have the same one).
#pragma once

#include <string>
#include <vector>

#include "ir/ir.h"

namespace weft::codegen {

struct NativeFunction {
    std::string name;   // as the user calls it
    SourcePtr snippet;  // what lines of `text` after #line kSnippetName belong to
    std::string text;   // without include/weft/native.h, which stands before it
    Span call;          // the first one, for messages
};

// How #line directives call the snippet, and what is written around it.
inline constexpr const char* kSnippetName = "snippet";
inline constexpr const char* kAroundName = "around";
inline constexpr const char* kFunctionName = "weft_function";

// The functions that the code of one module calls, numbered in the order of their first calls.
class NativeFunctions {
public:
    // The number of the function for this call_library with a snippet. Throws CompileError where a name of a parameter
    // or field is none in C++.
    std::size_t number(const ir::Operation& call);
    std::vector<NativeFunction> take() { return std::move(functions_); }

private:
    std::vector<NativeFunction> functions_;
};

}  // namespace weft::codegen
