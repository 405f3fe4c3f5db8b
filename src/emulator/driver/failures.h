#pragma once
// What no driver has: functions for the tests of programs (failures.cpp).
#include <cstdint>

namespace weft::emulator {

extern "C" {

#define WEFT_EXPORTED __attribute__((visibility("default")))
// The call of the function that comes as the `call`-th from now on, 1 being the next, fails with `result`, and does
// nothing. 0: none.
WEFT_EXPORTED void weftEmulatedFail(const char* function, uint64_t call, int result);
// How often a function was called since the calls are counted; nullptr: they are counted from now on.
WEFT_EXPORTED uint64_t weftEmulatedCalls(const char* function);
// How many "allocations", "pinned" (ones), "modules", "links", "streams", "events", "graphs" or "executables" there
// are.
WEFT_EXPORTED uint64_t weftEmulatedAlive(const char* kind);
// Makes devices that a kernel's fault has ended usable again, as a new process would: whether there were any. The text
// of the fault stays.
WEFT_EXPORTED bool weftEmulatedRecover();
// In place of WEFT_EMULATED_LIMIT, for kernels that begin from now on; the limit of before.
WEFT_EXPORTED uint64_t weftEmulatedLimit(uint64_t most);
#undef WEFT_EXPORTED
}

}  // namespace weft::emulator
