// NVIDIA's compiler as a library, for modules that several threads load at once: implements runtime/ptx_compiler.h with
// jit/assemble.h.
#pragma once

namespace weft::program {

// Takes effect from now on. May be called more than once.
void compile_ptx_in_library();

}  // namespace weft::program
