// Structs that kernels and launches share are declared twice, for the host and for the device. This file checks at
// compile time that both agree.
#include <cstddef>

#include "binary/cuda_abi.h"
#include "devlib/cuda/reports.h"
#include "devlib/cuda/strided.h"

namespace weft::runtime {

static_assert(kMostRaisedArguments == devlib::kMostRaisedArguments && kCudaPrintWords == devlib::kCudaPrintWords);
#define WEFT_SAME_PLACE(type, field) static_assert(offsetof(type, field) == offsetof(devlib::type, field))
WEFT_SAME_PLACE(CudaFault, claimed);
WEFT_SAME_PLACE(CudaFault, kind);
WEFT_SAME_PLACE(CudaFault, thread);
WEFT_SAME_PLACE(CudaFault, index);
WEFT_SAME_PLACE(CudaFault, size);
WEFT_SAME_PLACE(CudaFault, axis);
WEFT_SAME_PLACE(CudaFault, site);
WEFT_SAME_PLACE(CudaFault, format);
WEFT_SAME_PLACE(CudaFault, arguments);
WEFT_SAME_PLACE(CudaReports, fault);
WEFT_SAME_PLACE(CudaReports, not_finite);
WEFT_SAME_PLACE(CudaReports, printed);
#undef WEFT_SAME_PLACE
static_assert(sizeof(CudaFault) == sizeof(devlib::CudaFault) && sizeof(CudaReports) == sizeof(devlib::CudaReports));
static_assert(kMaxDims == devlib::kMostAxes);

}  // namespace weft::runtime
