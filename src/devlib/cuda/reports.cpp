// Called by kernels on CUDA devices (codegen/cuda/reports.cpp), rarely. They are not inlined, so that the surrounding
// code keeps its registers.
#include "devlib/cuda/reports.h"

namespace weft::devlib {

namespace {

// True for the first caller of the launch.
bool claim(CudaFault* fault) {
    Int32 unclaimed = 0;
    return __scoped_atomic_compare_exchange_n(&fault->claimed, &unclaimed, 1, /*weak=*/false, __ATOMIC_RELAXED,
                                              __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
}

}  // namespace

extern "C" {

[[gnu::noinline]] void weft_lib_report_fault(CudaFault* fault, Int32 kind, Int64 thread, Int64 index, Int64 size,
                                             Int32 axis, Int32 site) {
    if (!claim(fault)) return;
    fault->kind = kind;
    fault->thread = thread;
    fault->index = index;
    fault->size = size;
    fault->axis = axis;
    fault->site = site;
}

[[gnu::noinline]] void weft_lib_report_raise(CudaFault* fault, Int32 kind, Int64 thread, Int32 site, Int64 format,
                                             const Int64* arguments, Int32 count) {
    if (!claim(fault)) return;
    fault->kind = kind;
    fault->thread = thread;
    fault->site = site;
    fault->format = format;
    for (Int32 i = 0; i < count && i < kMostRaisedArguments; ++i) fault->arguments[i] = arguments[i];
}

// A record is written completely or not at all.
[[gnu::noinline]] void weft_lib_report_print(CudaReports* reports, Int64 format, const Int64* arguments, Int32 count) {
    const Int64 words = count + 2;
    const Int64 at = __scoped_atomic_fetch_add(&reports->printed, words, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
    if (at + words > kCudaPrintWords) return;
    Int64* record = reinterpret_cast<Int64*>(reports + 1) + at;
    record[0] = format;
    record[1] = count;
    for (Int32 i = 0; i < count; ++i) record[i + 2] = arguments[i];
}

}  // extern "C"

}  // namespace weft::devlib
