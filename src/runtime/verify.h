// wp.config.verify_cuda: each launch, copy and fill on a CUDA device is waited for, so that the call which caused an
// error of the device is the one that says so.
#pragma once

#include <atomic>

namespace weft::runtime {

inline constinit std::atomic<bool> cuda_is_verified{false};
inline bool verifies_cuda() { return cuda_is_verified.load(std::memory_order_relaxed); }
inline void set_verify_cuda(bool verify) { cuda_is_verified.store(verify, std::memory_order_relaxed); }

}  // namespace weft::runtime
