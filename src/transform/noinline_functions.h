// Which functions of a large kernel stay functions.
//
// Calls are inlined, so that all of a kernel runs on lanes and is optimised as one. A kernel that calls its functions
// from many places may grow to several times its text, and its time to compile with it. Such a kernel gets one lane
// anyway; in scalar code a call is a call.
#pragma once

#include <unordered_set>

#include "ir/ir.h"

namespace weft::transform {

// The functions to keep in a module with one kernel; none unless the kernel is large. They need nothing that only the
// kernel knows (the thread's coordinates, where a fault of arrays out of memory that are None is reported), keep no
// arrays in memory, and give none of their own. What they raise and print is reported as of the kernel.
std::unordered_set<const ir::Function*> noinline_functions(const ir::Module& module);

}  // namespace weft::transform
