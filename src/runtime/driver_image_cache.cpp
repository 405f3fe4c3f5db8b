#include "runtime/driver_image_cache.h"

#include <atomic>

namespace weft::runtime {

namespace {

std::atomic<DriverImageCache*> current = nullptr;

}  // namespace

void set_driver_image_cache(DriverImageCache* store) { current = store; }
DriverImageCache* driver_image_cache() { return current; }

}  // namespace weft::runtime
