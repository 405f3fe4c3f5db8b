#include "devlib/cuda/radix_sort_pass.h"

WEFT_RADIX_SORT_OF(u32, __UINT32_TYPE__, false)
WEFT_RADIX_SORT_OF(f32, __UINT32_TYPE__, true)
