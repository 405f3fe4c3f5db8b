// Texts for GPUs in files, for tools that look at those of a whole test run, or change them.
//
//     WEFT_KEEP_PTX=FOLDER   every text that the compiler writes is left there, as <key>.ptx
//     WEFT_TAKE_PTX=FOLDER   where that folder has <key>.ptx, it is taken in place of what the compiler writes
//
// A text that is kept names its kernels in its first lines, "// kernel saxpy" or "// adjoint of kernel saxpy".
#pragma once

#include "binary/binary.h"
#include "ir/ir.h"

namespace weft::jit {

// Throw UsageError where the folder cannot be used. Code for CPUs is none of their business.
void keep_text(const Binary& binary, const ir::Module& module);
void take_text(Binary& binary);
// Whether texts may come from files: the disk cache must not keep them, and what it has must not stand in their place.
bool takes_texts(const Target& target);

}  // namespace weft::jit
