// A compiler of PTX besides the driver's: drivers compile one module at a time in a process.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace weft::runtime {

// Its functions do not throw, and any number of threads may call them at once.
class PtxCompiler {
public:
    virtual ~PtxCompiler() = default;
    // Whether the user has chosen it, and it is to be asked first. Else only what would wait for another module is.
    virtual bool is_chosen() = 0;
    // Machine code for exactly this processor ("sm_90"); empty if there is no compiler, or it refuses.
    virtual std::vector<std::byte> compile(std::string_view ptx, const std::string& processor) = 0;
};

// Null, which is the default: the driver compiles all. It must live until the process ends.
void set_ptx_compiler(PtxCompiler* compiler);
PtxCompiler* ptx_compiler();

}  // namespace weft::runtime
