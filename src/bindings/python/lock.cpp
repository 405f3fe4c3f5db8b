#include "bindings/python/lock.h"

namespace weft::bindings {

static thread_local bool is_running_foreign_call = false;

bool is_foreign_call() { return is_running_foreign_call; }
void leave_foreign_call() { is_running_foreign_call = false; }

ForeignCall::ForeignCall() { is_running_foreign_call = true; }
ForeignCall::~ForeignCall() { is_running_foreign_call = false; }

}  // namespace weft::bindings
