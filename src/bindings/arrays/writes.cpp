#include "bindings/arrays/writes.h"

#include <utility>

#include "runtime/graph.h"

namespace weft::bindings {

static thread_local WriteObserver* observer = nullptr;

WriteObserver* write_observer() { return observer; }
void set_write_observer(WriteObserver* next) { observer = next; }

Unobserved::Unobserved() : observer_(std::exchange(observer, nullptr)) {}
Unobserved::~Unobserved() { observer = observer_; }

void record_write(nb::handle to, nb::handle from) {
    if (observer) observer->before_write(to, from);
}

void record_write(PyArray& to) {
    if (observer) observer->before_write(object_of(to), nb::handle());
}

void count_write(PyArray& array) {
    if (array.array.buffer) runtime::count_write(array.array.buffer);
}

}  // namespace weft::bindings
