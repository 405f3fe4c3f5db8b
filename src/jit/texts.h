// PTX in files, for tools that inspect or change all code of a test run.
//
//     WEFT_KEEP_PTX=FOLDER   each PTX text that the compiler writes is stored there, as <key>.ptx
//     WEFT_TAKE_PTX=FOLDER   if that folder has <key>.ptx, it replaces the compiler's text
//
// The first lines of a stored text name its kernels: "// kernel saxpy" or "// adjoint of kernel saxpy".
#pragma once

#include "binary/binary.h"
#include "ir/ir.h"

namespace weft::jit {

// Both throw UsageError if the folder cannot be used, and do nothing for CPUs.
void keep_text(const Binary& binary, const ir::Module& module);
void take_text(Binary& binary);
// Whether texts may come from files: then the disk cache must neither store nor supply them.
bool takes_texts(const Target& target);

}  // namespace weft::jit
