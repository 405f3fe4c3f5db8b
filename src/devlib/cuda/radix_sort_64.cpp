#include "devlib/cuda/radix_sort_pass.h"

WEFT_RADIX_SORT_OF(u64, __UINT64_TYPE__, false)
WEFT_RADIX_SORT_OF(f64, __UINT64_TYPE__, true)
