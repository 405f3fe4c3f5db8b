#pragma once
// Functions for tests of programs, which no driver has (failures.cpp).
#include <cstdint>

namespace weft::emulator {

extern "C" {

#define WEFT_EXPORTED __attribute__((visibility("default")))
// Makes one call of the function fail with `result`, without any effect: the `call`-th from now on, 1 being the next.
// 0: none.
WEFT_EXPORTED void weftEmulatedFail(const char* function, uint64_t call, int result);
// The number of calls of the function since counting began; nullptr: begins counting.
WEFT_EXPORTED uint64_t weftEmulatedCalls(const char* function);
// The number of live "allocations", "pinned" (allocations), "modules", "links", "streams", "events", "graphs" or
// "executables".
WEFT_EXPORTED uint64_t weftEmulatedAlive(const char* kind);
// Makes devices usable again after a kernel's fault, as in a new process; returns whether there were any. The text of
// the fault is kept.
WEFT_EXPORTED bool weftEmulatedRecover();
// Replaces WEFT_EMULATED_LIMIT for kernels that begin from now on; returns the former limit.
WEFT_EXPORTED uint64_t weftEmulatedLimit(uint64_t most);
#undef WEFT_EXPORTED
}

}  // namespace weft::emulator
