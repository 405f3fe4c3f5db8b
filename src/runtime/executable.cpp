#include "runtime/executable.h"

#include "runtime/cpu/loader.h"

namespace weft::runtime {

std::shared_ptr<const Executable> load(Binary binary) { return std::make_shared<CpuExecutable>(std::move(binary)); }

}  // namespace weft::runtime
