#include "devlib/cuda/radix_sort_pass.h"

WEFT_RADIX_SORT_OF(u8, __UINT8_TYPE__, false)
WEFT_RADIX_SORT_OF(f8, __UINT8_TYPE__, true)
