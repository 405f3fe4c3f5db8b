#include "runtime/ptx_compiler.h"

#include <atomic>

namespace weft::runtime {

namespace {

std::atomic<PtxCompiler*> current = nullptr;

}  // namespace

void set_ptx_compiler(PtxCompiler* compiler) { current = compiler; }
PtxCompiler* ptx_compiler() { return current; }

}  // namespace weft::runtime
