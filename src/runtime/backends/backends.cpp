// The only file that names all back ends.
#include "runtime/backend.h"
#include "runtime/cpu/backend.h"
#include "runtime/cuda/backend.h"

namespace weft::runtime {

std::span<const Backend> backends() {
    static const Backend all[] = {kCpuBackend, kCudaBackend};
    return all;
}

}  // namespace weft::runtime
