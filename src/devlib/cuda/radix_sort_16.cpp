#include "devlib/cuda/radix_sort_pass.h"

WEFT_RADIX_SORT_OF(u16, __UINT16_TYPE__, false)
WEFT_RADIX_SORT_OF(f16, __UINT16_TYPE__, true)
