// Work on the compiler's threads that the program can leave before its end: Ctrl-C during a long compilation.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "program/host/host.h"

namespace weft::program {

// Runs `work` on another thread without the host's lock, and waits. If the host wants to go on without it, throws the
// exception of Host::stop within some tens of milliseconds. The work then goes on by itself, so it must own all that it
// uses. Exceptions of `work` are passed on. The caller holds the host's lock. In a host that never interrupts, `work`
// runs on this thread. Long work is reported as the compilation of `kernel` (Host::compiling).
void run_interruptibly(const std::string& kernel, std::function<void()> work);

// The same with a result. Short work runs on this thread, without the host's lock.
template <typename Work>
auto interruptibly(const std::string& kernel, bool is_long, Work work) {
    using Result = std::invoke_result_t<Work>;
    if (!is_long) {
        const WithoutHost without;
        return work();
    }
    auto result = std::make_shared<std::optional<Result>>();
    run_interruptibly(kernel, [work = std::move(work), result] { *result = work(); });
    return std::move(**result);
}

}  // namespace weft::program
