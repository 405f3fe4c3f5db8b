// Functions that the user wrote in C++ (@wp.func_native). Codegen writes C++ for each kind of call: the types of the
// arguments, the snippet as the body of a function, and a wrapper that the kernel's code calls. jit/native.h compiles
// the text.
//
//   extern "C" void weft_native(unsigned long lanes, void* result, void* a, long a_step, ...)
//
// runs the snippet for each lane whose bit is set, in order. `result` has room for one value per lane. `a` points to
// the argument of lane 0 in its memory layout; the next lane's is a_step bytes further (0: all lanes share one). On
// CUDA devices a call has one lane, and is inlined.
#pragma once

#include <string>
#include <vector>

#include "ir/ir.h"

namespace weft::codegen {

struct NativeFunction {
    std::string name;         // as the user calls it
    SourcePtr snippet;        // source of the lines of `text` behind #line kSnippetName
    std::string definitions;  // macros that go before include/weft/native.h
    std::string text;         // behind it
    Span call;                // the first one, for messages
};

inline constexpr const char* kSnippetName = "snippet";         // its file in #line directives
inline constexpr const char* kAroundName = "around";           // the file of the code around it
inline constexpr const char* kFunctionName = "weft_function";  // the function of the snippet

// The functions that the code of one module calls, numbered in the order of their first calls.
class NativeFunctions {
public:
    // The number of the function for this call_library with a snippet. Throws CompileError if the name of a parameter,
    // struct or field is a keyword of C++.
    std::size_t number(const ir::Operation& call);
    std::vector<NativeFunction> take() { return std::move(functions_); }

private:
    std::vector<NativeFunction> functions_;
};

}  // namespace weft::codegen
