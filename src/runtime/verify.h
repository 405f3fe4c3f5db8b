// wp.config.verify_cuda: waits for each launch, copy and fill on a CUDA device, so that the call that caused an error
// of the device reports it.
#pragma once

#include <atomic>

namespace weft::runtime {

inline constinit std::atomic<bool> cuda_is_verified{false};
inline bool verifies_cuda() { return cuda_is_verified.load(std::memory_order_relaxed); }
inline void set_verify_cuda(bool verify) { cuda_is_verified.store(verify, std::memory_order_relaxed); }

}  // namespace weft::runtime
