// Other ways to run a launch. A kernel with a strategy has equivalent code that is faster for the arguments of some
// launches. The strategy decides for each launch. Most kernels have none, and their launches do not ask (strategies.h).
#pragma once

#include <cstddef>
#include <memory>

#include "program/kernel/compiled.h"
#include "program/kernel/grid.h"

namespace weft::program {

// One launch by a strategy's code. Must outlive the launch.
class StrategicLaunch {
public:
    virtual ~StrategicLaunch() = default;
    StrategicLaunch(const StrategicLaunch&) = delete;
    StrategicLaunch& operator=(const StrategicLaunch&) = delete;

    // Fills in the implicit parameters of that code, whose facts these are. False if the arguments do not allow it: the
    // plain code has to run.
    virtual bool fill_implicit_parameters(const KernelFacts& kernel, std::byte* block) = 0;
    // After an adjoint: adds gradients of copies to those of the arrays of that block.
    virtual void add_gradients(const std::byte* block) = 0;

protected:
    StrategicLaunch() = default;
};

class LaunchStrategy {
public:
    // Whether some launch over this grid may use the strategy, for any contents of its arrays.
    virtual bool is_possible(const KernelFacts& kernel, const runtime::Device& device, const Grid& grid) const = 0;
    // Null if the plain code is better for these arguments. `has_host`: the caller has the host's lock, which is given
    // up during longer work.
    virtual std::unique_ptr<StrategicLaunch> begin(const KernelFacts& kernel, runtime::Device& device,
                                                   const std::byte* block, const Grid& grid, bool has_host) const = 0;
    // Makes the variant that of the strategy's code.
    virtual void choose(Variant& variant) const = 0;

protected:
    ~LaunchStrategy() = default;
};

}  // namespace weft::program
