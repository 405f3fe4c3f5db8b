#include "program/launch.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>

#include "ir/typing.h"
#include "program/fault.h"
#include "program/meeting.h"
#include "program/own_gradients.h"
#include "program/settings.h"
#include "runtime/array.h"
#include "runtime/cpu/pool.h"
#include "support/error.h"

namespace weft::program {
namespace {

const ArrayView& view_of(const CompiledKernel& kernel, const std::byte* block, std::size_t parameter) {
    return *reinterpret_cast<const ArrayView*>(block + kernel.layout.offsets[parameter]);
}

// Whether different indices may reach one element, as where an array is broadcast: axis by axis, from the shortest
// stride on, a step has to lead past all that the axes before reach.
bool shows_twice(const ArrayView& view, Type array) {
    std::array<std::pair<std::int64_t, std::int64_t>, kMaxDims> axes;  // (stride, extent), sorted
    std::size_t count = 0;
    for (int axis = 0; axis < array.ndim(); ++axis) {
        if (view.shape[axis] <= 1) continue;
        const std::pair added{std::abs(view.strides[axis]), view.shape[axis]};
        std::size_t at = count++;
        for (; at > 0 && added < axes[at - 1]; --at) axes[at] = axes[at - 1];
        axes[at] = added;
    }
    std::int64_t reach = array.element().size_bytes();
    for (std::size_t i = 0; i < count; ++i) {
        const auto [stride, extent] = axes[i];
        if (stride < reach) return true;
        reach += stride * (extent - 1);
    }
    return false;
}

void add_arrays(Type type, std::int64_t offset, int parameter, std::vector<ArrayPlace>& places) {
    if (type.is_array()) {
        places.push_back({offset, type, parameter});
    } else if (type.is_struct()) {
        for (const Type::Field& field : type.fields()) add_arrays(field.type, offset + field.offset, parameter, places);
    }
}

const ArrayView& view_at(const std::byte* block, const ArrayPlace& place) {
    return *reinterpret_cast<const ArrayView*>(block + place.offset);
}

ArrayView& view_at(std::byte* block, const ArrayPlace& place) {
    return *reinterpret_cast<ArrayView*>(block + place.offset);
}

}  // namespace

CompiledKernel prepare(std::shared_ptr<runtime::Executable> executable, std::string_view name,
                       std::vector<Type> parameter_types, std::vector<ir::ParameterEffects> effects) {
    CompiledKernel kernel;
    kernel.entry = executable->entry(name);
    kernel.description = executable->kernel(name);
    kernel.executable = std::move(executable);
    kernel.layout = argument_layout(parameter_types);
    kernel.arrays = array_places(kernel.layout, parameter_types);
    kernel.parameter_types = std::move(parameter_types);
    for (const ir::ParameterEffects& effect : effects) kernel.keeps_arrays |= effect.keeps;
    kernel.effects = std::move(effects);
    return kernel;
}

Grid make_grid(std::span<const std::int64_t> dims, int tid_rank, std::string_view kernel_name) {
    auto name = [&] { return "kernel '" + std::string(kernel_name) + "'"; };
    if (dims.empty() || dims.size() > kMaxDims) {
        throw UsageError("launch()", "dim has " + std::to_string(dims.size()) + " extents, expected 1 to 4",
                         ErrorCategory::value);
    }
    Grid grid;
    std::int64_t count = 1;
    bool empty = false;
    for (std::size_t axis = 0; axis < dims.size(); ++axis) {
        if (dims[axis] < 0) {
            throw UsageError(
                "launch()",
                "dim " + runtime::shape_text(dims) + " of " + name() + " is negative; expected extents of 0 or more",
                ErrorCategory::value);
        }
        empty |= dims[axis] == 0;
        if (!empty && __builtin_mul_overflow(count, dims[axis], &count)) {
            throw UsageError("launch()",
                             "dim " + runtime::shape_text(dims) + " of " + name() + " is more than 2^63 threads",
                             ErrorCategory::value);
        }
    }
    grid.count = empty ? 0 : count;
    if (tid_rank == 0) {
        grid.dim[0] = grid.count;
    } else if (static_cast<int>(dims.size()) > tid_rank && launch_rank(dims) > tid_rank) {
        throw UsageError("launch()",
                         "dim " + runtime::shape_text(dims) + " has " + std::to_string(dims.size()) + " axes, but " +
                             name() + " was compiled for " + std::to_string(tid_rank) +
                             ", the number of names that it unpacks wp.tid() to. help: unpack as many names as dim "
                             "has axes, and do without those that you don't need: i, _ = wp.tid()",
                         ErrorCategory::value);
    } else {
        std::copy_n(dims.begin(), std::min<std::size_t>(dims.size(), static_cast<std::size_t>(tid_rank)), grid.dim);
    }
    // wp.tid() is an int32: an extent that it cannot count would run threads with wrong indices.
    for (int axis = 0; axis < tid_rank; ++axis) {
        if (grid.dim[axis] > std::int64_t{1} << 31) {
            throw UsageError("launch()",
                             "dim " + runtime::shape_text(dims) + " gives axis " + std::to_string(axis) + " of " +
                                 name() + " " + std::to_string(grid.dim[axis]) +
                                 " threads, and wp.tid() is an int32 that counts to 2147483648. help: "
                                 "split the axis: dim=(n // m, m) with i, j = wp.tid()",
                             ErrorCategory::value);
        }
    }
    return grid;
}

bool needs_strided(const CompiledKernel& kernel, const std::byte* block) {
    for (std::int32_t parameter : kernel.description.dense_parameters) {
        Type type = kernel.parameter_types[parameter];
        const ArrayView& view = view_of(kernel, block, parameter);
        int last = type.ndim() - 1;
        if (view.strides[last] != type.element().size_bytes() && view.shape[last] > 1) return true;
    }
    return false;
}

Extent extent(const ArrayView& view, Type array) {
    auto low = reinterpret_cast<std::intptr_t>(view.data);
    auto high = low;
    for (int axis = 0; axis < array.ndim(); ++axis) {
        if (view.shape[axis] == 0) return {};
        std::int64_t reach = (view.shape[axis] - 1) * view.strides[axis];
        (reach < 0 ? low : high) += reach;
    }
    if (view.data == nullptr) return {};
    return {reinterpret_cast<const std::byte*>(low),
            reinterpret_cast<const std::byte*>(high + array.element().size_bytes())};
}

bool repeats_elements(const CompiledKernel& kernel, const std::byte* block) {
    const std::vector<std::int32_t>& own = kernel.description.own_parameters;
    return !own.empty() && std::ranges::any_of(kernel.arrays, [&](const ArrayPlace& place) {
        return std::ranges::find(own, place.parameter) != own.end() && shows_twice(view_at(block, place), place.type);
    });
}

namespace {

// Memory that a launch may touch.
struct Touched {
    const std::byte* begin;
    const std::byte* end;
    bool changes;
};

// Whether two of them show the same bytes and one of the two changes them. Sorts them.
bool any_meet(std::span<Touched> touched) {
    std::ranges::sort(touched, {}, &Touched::begin);
    // The ends of what came before in memory: of all, and of what is changed.
    const std::byte *end = nullptr, *changed_end = nullptr;
    for (const Touched& one : touched) {
        if (one.begin < (one.changes ? end : changed_end)) return true;
        end = std::max(end, one.end);
        if (one.changes) changed_end = std::max(changed_end, one.end);
    }
    return false;
}

// The same, which takes longer where many are changed and is quicker where few are.
bool any_pair_meets(std::span<const Touched> touched) {
    for (const Touched& one : touched) {
        if (!one.changes) continue;
        for (const Touched& other : touched)
            if (&one != &other && one.begin < other.end && other.begin < one.end) return true;
    }
    return false;
}

// Whether memory that the launch changes is shown by another array or, with gradients, by another gradient.
template <bool kWithGradients>
bool has_shared_memory(const CompiledKernel& kernel, const std::byte* block, std::span<Touched> room) {
    std::size_t count = 0, changed = 0;
    const auto add = [&](const ArrayView& view, Type array, bool changes) {
        const Extent memory = extent(view, array);
        if (memory.begin == memory.end) return;
        room[count++] = {memory.begin, memory.end, changes};
        changed += changes;
    };
    for (const ArrayPlace& place : kernel.arrays) {
        const auto parameter = static_cast<std::size_t>(place.parameter);
        if (parameter >= kernel.effects.size()) break;  // extras: copies, which are apart, and what is read only
        const ArrayView& view = view_at(block, place);
        add(view, place.type, kernel.effects[parameter].writes);
        if (!kWithGradients || !view.grad) continue;
        if (shows_twice(view, place.type)) return true;
        ArrayView of_gradient = view;
        of_gradient.data = view.grad;
        add(of_gradient, place.type, true);
    }
    constexpr std::size_t kFewPairs = 100;
    return changed * count <= kFewPairs ? any_pair_meets(room.first(count)) : any_meet(room.first(count));
}

template <bool kWithGradients>
bool has_shared_memory(const CompiledKernel& kernel, const std::byte* block) {
    constexpr std::size_t kFew = 64;  // that many need no allocation
    const std::size_t most = kernel.arrays.size() * (kWithGradients ? 2 : 1);
    if (most < 2) return false;
    if (most <= kFew) {
        Touched few[kFew];  // not cleared
        return has_shared_memory<kWithGradients>(kernel, block, few);
    }
    std::vector<Touched> many(most);
    return has_shared_memory<kWithGradients>(kernel, block, many);
}

}  // namespace

bool has_overlap(const CompiledKernel& kernel, const std::byte* block) {
    if (std::ranges::none_of(kernel.effects, &ir::ParameterEffects::writes)) return false;
    return has_shared_memory<false>(kernel, block);
}

bool has_gradient_overlap(const CompiledKernel& adjoint, const std::byte* block) {
    return has_shared_memory<true>(adjoint, block);
}

std::vector<ArrayPlace> array_places(const ArgumentLayout& layout, std::span<const Type> types) {
    std::vector<ArrayPlace> places;
    for (std::size_t i = 0; i < types.size(); ++i) add_arrays(types[i], layout.offsets[i], static_cast<int>(i), places);
    return places;
}

void point_extras(const CompiledKernel& adjoint, std::byte* block, const std::byte* after,
                  std::span<const ArrayView> records) {
    const std::size_t own = adjoint.parameter_types.size() - adjoint.extras.size();
    for (std::size_t i = 0; i < adjoint.extras.size(); ++i) {
        const ir::Extra& extra = adjoint.extras[i];
        std::byte* const to = block + adjoint.layout.offsets[own + i];
        const Type type = adjoint.parameter_types[own + i];
        std::memset(to, 0, static_cast<std::size_t>(type.size_bytes()));
        if (extra.of < 0) continue;
        if (extra.is_recorded()) {
            WEFT_CHECK(static_cast<std::size_t>(extra.of) < records.size(), "a record of the launch is missing");
            std::memcpy(to, &records[static_cast<std::size_t>(extra.of)], static_cast<std::size_t>(type.size_bytes()));
            continue;
        }
        const std::byte* from = extra.kind == ir::Extra::Kind::after ? after : block;
        from += adjoint.layout.offsets[static_cast<std::size_t>(extra.of)];
        std::memcpy(to, from, static_cast<std::size_t>(type.size_bytes()));
    }
    // What is shown besides the arguments has no gradient.
    for (const ArrayPlace& place : adjoint.arrays)
        if (static_cast<std::size_t>(place.parameter) >= own) view_at(block, place).grad = nullptr;
}

std::vector<runtime::BufferPtr> make_copies(const CompiledKernel& adjoint, std::byte* block, runtime::Device& device) {
    struct Copied {
        ArrayView* view;
        Extent extent;
    };
    std::vector<Copied> all;
    const std::size_t own = adjoint.parameter_types.size() - adjoint.extras.size();
    for (const ArrayPlace& place : adjoint.arrays) {
        const auto parameter = static_cast<std::size_t>(place.parameter);
        if (parameter < own) continue;
        const ir::Extra& extra = adjoint.extras[parameter - own];
        if (extra.of < 0 || extra.kind != ir::Extra::Kind::copy) continue;
        ArrayView& view = view_at(block, place);
        const Extent memory = extent(view, place.type);
        if (memory.begin != memory.end) all.push_back({&view, memory});
    }
    std::sort(all.begin(), all.end(), [](const Copied& a, const Copied& b) { return a.extent.begin < b.extent.begin; });
    std::vector<runtime::BufferPtr> buffers;
    for (std::size_t first = 0; first < all.size();) {
        std::size_t last = first;
        const std::byte* end = all[first].extent.end;
        while (last < all.size() && all[last].extent.begin < end) end = std::max(end, all[last++].extent.end);
        const std::byte* const begin = all[first].extent.begin;
        runtime::BufferPtr buffer = runtime::allocate(end - begin, device);
        std::memcpy(buffer->data, begin, static_cast<std::size_t>(end - begin));
        for (; first < last; ++first) {
            auto* const data = static_cast<std::byte*>(all[first].view->data);
            all[first].view->data = static_cast<std::byte*>(buffer->data) + (data - begin);
        }
        buffers.push_back(std::move(buffer));
    }
    return buffers;
}

namespace {

// A launch that is alone has one thread. That is no loss where others would not be asked, and a gain where they could
// not make up for the atomics. It keeps others waiting, and does not ask about interrupts: it has to be short. How long
// it takes is measured, since that depends on where the data lies; before, the estimate is taken with the factor that
// it has for data in the cache.
bool pays_to_be_alone(const CompiledKernel& kernel, std::int64_t threads) {
    constexpr double kNobodyAskedNs = 30'000, kShortNs = 100'000, kShortOnOneThreadNs = 2'000'000, kInCache = 0.3;
    const KernelEntry& entry = kernel.description;
    if (entry.cost_alone <= 0.0) return false;
    const double measured = kernel.cost_alone.get();
    const double each = measured > 0.0 ? measured : kInCache * entry.cost_alone;
    const double alone = each * static_cast<double>(threads);
    const int workers = runtime::cpu_threads();
    if (alone < kNobodyAskedNs) return true;
    const double shared = alone * entry.cost / entry.cost_alone / workers;
    if (workers == 1 ? alone < kShortOnOneThreadNs : alone < kShortNs && alone < shared) return true;
    // What was measured once may have been an accident: some time it is tried again.
    constexpr double kForgotten = 0.99;
    if (measured > 0.0) kernel.cost_alone.set(measured * kForgotten);
    return false;
}

// The threads of a launch that is alone.
void run_alone(const CompiledKernel& kernel, KernelEntryPoint entry, const void* arguments, LaunchContext& context,
               std::int64_t count) {
    constexpr double kWorthMeasuringNs = 5'000;
    context.alone = true;
    if (kernel.description.cost_alone * static_cast<double>(count) < kWorthMeasuringNs) {
        entry(arguments, &context, 0, count);
        return;
    }
    const auto start = std::chrono::steady_clock::now();
    entry(arguments, &context, 0, count);
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
    // One launch that was interrupted does not count for more than it has to.
    constexpr double kMostGrowth = 1.25;
    const double before = kernel.cost_alone.get();
    const double most = before > 0.0 ? kMostGrowth * before : kernel.description.cost_alone;
    kernel.cost_alone.set(std::min(took.count() / static_cast<double>(count), most));
}

}  // namespace

bool run_entry(const CompiledKernel& kernel, KernelEntryPoint entry, const void* arguments, const std::byte* block,
               const Grid& grid, bool (*interrupted)(), Fault* not_finite) {
    if (grid.count == 0) return true;
    LaunchContext context;
    std::copy(std::begin(grid.dim), std::end(grid.dim), context.dim);
    Fault fault;  // not cleared: a launch takes less time than that
    context.fault = kernel.description.sites.empty() ? nullptr : &fault;
    context.not_finite = not_finite;
    // One CPU thread, and always the same code: whether a launch is alone depends on what others do.
    const bool keeps_order = kernel.description.ordered && settings().deterministic;
    std::optional<Meeting> meeting;
    if (kernel.description.meets) meeting.emplace(!keeps_order && pays_to_be_alone(kernel, grid.count));
    if (meeting && meeting->is_alone()) {
        run_alone(kernel, entry, arguments, context, grid.count);
        if (fault.claimed) throw_fault(kernel, fault, block);
        return true;
    }
    int rank = kernel.description.tid_rank;
    std::int64_t row = rank <= 1 ? grid.count : grid.dim[rank - 1];
    // A chunk is mostly middle where it is so many times as long as its two ends.
    constexpr std::int64_t kMiddle = 128;
    const std::int64_t least = grid.count / grid.dim[0] * kernel.description.seam * kMiddle;
    bool finished = runtime::parallel_launch(entry, arguments, context, grid.count, row, kernel.description.cost,
                                             interrupted, least, kernel.serial || keeps_order ? 1 : 0);
    if (fault.claimed) throw_fault(kernel, fault, block);
    return finished;
}

bool run(const CompiledKernel& kernel, const std::byte* block, const Grid& grid, bool (*interrupted)(),
         Fault* not_finite) {
    if (!kernel.own_gradients.empty()) return run_with_own(kernel, block, grid, interrupted);
    return run_entry(kernel, kernel.entry, block, block, grid, interrupted, not_finite);
}

}  // namespace weft::program
