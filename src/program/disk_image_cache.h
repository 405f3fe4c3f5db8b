// What drivers of GPUs have compiled lies in the disk cache, beside the kernels.
#pragma once

namespace weft::program {

// From now on, where wp.config.cache_kernels allows it. May be called more than once.
void cache_driver_images();

}  // namespace weft::program
