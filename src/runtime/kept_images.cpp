#include "runtime/kept_images.h"

#include <atomic>

namespace weft::runtime {

namespace {

std::atomic<ImageStore*> current = nullptr;

}  // namespace

void keep_images_in(ImageStore* store) { current = store; }
ImageStore* image_store() { return current; }

}  // namespace weft::runtime
