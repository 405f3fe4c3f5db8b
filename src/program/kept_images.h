// What drivers of GPUs have compiled lies in the disk cache, beside the kernels.
#pragma once

namespace weft::program {

// From now on, where wp.config.cache_kernels allows it. May be called more than once.
void keep_images_of_drivers();

}  // namespace weft::program
