// Machine code that drivers of GPUs made of PTX, in the disk cache beside the kernels: implements
// runtime/driver_image_cache.h with jit/disk_cache.h.
#pragma once

namespace weft::program {

// Takes effect from now on, if wp.config.cache_kernels allows it. May be called more than once.
void cache_driver_images();

}  // namespace weft::program
