#include "program/kernel/ptx_library.h"

#include "jit/assemble.h"
#include "runtime/ptx_compiler.h"

namespace weft::program {

namespace {

class PtxLibrary final : public runtime::PtxCompiler {
public:
    bool is_chosen() override { return jit::names_library(); }
    std::vector<std::byte> compile(std::string_view ptx, const std::string& processor) override {
        return jit::assemble_in_library(ptx, processor);
    }
};

}  // namespace

void compile_ptx_in_library() {
    static PtxLibrary library;
    runtime::set_ptx_compiler(&library);
}

}  // namespace weft::program
