// The functions of the driver that Weft may ask for and idle_cuda.cpp does not have: they answer that they are not
// supported. Weak, so that those of the other file stand.
#include "runtime/cuda/driver.h"

using namespace weft::runtime::cuda;

extern "C" {
#define WEFT_DRIVER(name, parameters) \
    __attribute__((weak)) CUresult name parameters { return 801; }
#define WEFT_DRIVER_RECENT(name, parameters) WEFT_DRIVER(name, parameters)
#include "runtime/cuda/driver.def"
}
