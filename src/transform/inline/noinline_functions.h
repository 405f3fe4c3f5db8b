// Chooses the functions of a large kernel whose calls are not inlined.
//
// Calls are usually inlined, so that all of a kernel runs on lanes and is optimised as one. A kernel that calls its
// functions from many places may grow to several times its text, and its compile time with it. Such a kernel gets one
// lane anyway, and scalar code can call functions.
#pragma once

#include <unordered_set>

#include "ir/ir.h"

namespace weft::transform {

// The functions to keep in a module with one kernel; none unless the kernel is large. They use nothing that only the
// kernel has: the thread's coordinates, and the reports of faults for arrays from memory that are None. They store no
// arrays in memory, and return no local ones. Messages of their errors and prints name the kernel.
std::unordered_set<const ir::Function*> noinline_functions(const ir::Module& module);

}  // namespace weft::transform
