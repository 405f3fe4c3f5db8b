#include "program/launch.h"

#include <algorithm>
#include <array>
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

// Calls visit(offset) for the arrays in a value of this type.
template <class Visit>
void for_each_offset(Type type, std::int64_t offset, Visit&& visit) {
    if (type.is_array()) {
        visit(offset);
    } else if (type.is_struct()) {
        for (const Type::Field& field : type.fields()) for_each_offset(field.type, offset + field.offset, visit);
    }
}

// Calls visit(ArrayView&, Type array) for the arrays in a value of this type.
template <class Byte, class Visit>
void for_each_view(Type type, Byte* value, Visit&& visit) {
    using View = std::conditional_t<std::is_const_v<Byte>, const ArrayView, ArrayView>;
    if (type.is_array()) {
        visit(*reinterpret_cast<View*>(value), type);
    } else if (type.is_struct()) {
        for (const Type::Field& field : type.fields()) for_each_view(field.type, value + field.offset, visit);
    }
}

}  // namespace

CompiledKernel prepare(std::shared_ptr<runtime::Executable> executable, std::string_view name,
                       std::vector<Type> parameter_types, std::vector<ir::ParameterEffects> effects) {
    CompiledKernel kernel;
    kernel.entry = executable->entry(name);
    kernel.description = executable->kernel(name);
    kernel.executable = std::move(executable);
    kernel.layout = argument_layout(parameter_types);
    kernel.array_offsets = array_offsets(kernel.layout, parameter_types);
    kernel.parameter_types = std::move(parameter_types);
    for (const ir::ParameterEffects& effect : effects) kernel.keeps_arrays |= effect.keeps;
    for (std::size_t i = 0; i < effects.size(); ++i)
        kernel.takes_views_in_structs |=
            kernel.parameter_types[i].is_struct() && ir::holds_array(kernel.parameter_types[i]);
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
    } else if (static_cast<int>(dims.size()) > tid_rank && launch_rank(dims).least > tid_rank) {
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
    bool any = false;
    for (const std::int32_t parameter : kernel.description.own_parameters)
        for_each_view(kernel.parameter_types[parameter], block + kernel.layout.offsets[parameter],
                      [&](const ArrayView& view, Type array) { any = any || shows_twice(view, array); });
    return any;
}

namespace {

bool meet(const Extent& a, const Extent& b) {
    return a.begin != a.end && b.begin != b.end && a.begin < b.end && b.begin < a.end;
}

// has_overlap() of a kernel with structs that hold arrays.
bool has_overlap_in_structs(const CompiledKernel& kernel, const std::byte* block) {
    struct Shown {
        Extent extent;
        bool is_written;
    };
    std::vector<Shown> shown;
    for (std::size_t i = 0; i < kernel.effects.size(); ++i)
        for_each_view(kernel.parameter_types[i], block + kernel.layout.offsets[i],
                      [&](const ArrayView& view, Type array) {
                          shown.push_back({extent(view, array), kernel.effects[i].writes});
                      });
    for (std::size_t a = 0; a < shown.size(); ++a)
        for (std::size_t b = a + 1; b < shown.size(); ++b)
            if ((shown[a].is_written || shown[b].is_written) && meet(shown[a].extent, shown[b].extent)) return true;
    return false;
}

}  // namespace

bool has_overlap(const CompiledKernel& kernel, const std::byte* block) {
    if (kernel.takes_views_in_structs) return has_overlap_in_structs(kernel, block);
    std::size_t count = kernel.effects.size();  // without copies, which are apart, and what is read only
    for (std::size_t a = 0; a < count; ++a) {
        if (!kernel.parameter_types[a].is_array() || !kernel.effects[a].writes) continue;
        Extent mine = extent(view_of(kernel, block, a), kernel.parameter_types[a]);
        if (mine.begin == mine.end) continue;
        for (std::size_t b = 0; b < count; ++b) {
            if (b == a || !kernel.parameter_types[b].is_array()) continue;
            if (b < a && kernel.effects[b].writes) continue;  // that pair has been looked at
            Extent other = extent(view_of(kernel, block, b), kernel.parameter_types[b]);
            if (other.begin != other.end && mine.begin < other.end && other.begin < mine.end) return true;
        }
    }
    return false;
}

bool has_gradient_overlap(const CompiledKernel& adjoint, const std::byte* block) {
    // All that the launch may touch, arrays in structs too, in the order of memory. Two of these may show the same
    // bytes only if both are read.
    enum Use { read, written, gradient, use_count };
    struct Touched {
        Extent extent;
        Use use;
    };
    std::vector<Touched> touched;
    bool shows_an_element_twice = false;
    for (std::size_t i = 0; i < adjoint.effects.size(); ++i) {
        for_each_view(adjoint.parameter_types[i], block + adjoint.layout.offsets[i],
                      [&](const ArrayView& view, Type array) {
                          touched.push_back({extent(view, array), adjoint.effects[i].writes ? written : read});
                          if (!view.grad) return;
                          shows_an_element_twice |= shows_twice(view, array);
                          ArrayView of_gradient = view;
                          of_gradient.data = view.grad;
                          touched.push_back({extent(of_gradient, array), gradient});
                      });
    }
    if (shows_an_element_twice) return true;
    std::erase_if(touched, [](const Touched& one) { return one.extent.begin == one.extent.end; });
    std::sort(touched.begin(), touched.end(),
              [](const Touched& a, const Touched& b) { return a.extent.begin < b.extent.begin; });
    std::array<const std::byte*, use_count> reached{};  // by what came before in memory
    for (const Touched& one : touched) {
        for (const Use other : {read, written, gradient})
            if (one.extent.begin < reached[other] && !(one.use == read && other == read)) return true;
        reached[one.use] = std::max(reached[one.use], one.extent.end);
    }
    return false;
}

std::vector<std::int64_t> array_offsets(const ArgumentLayout& layout, std::span<const Type> types) {
    std::vector<std::int64_t> offsets;
    for (std::size_t i = 0; i < types.size(); ++i)
        for_each_offset(types[i], layout.offsets[i], [&](std::int64_t offset) { offsets.push_back(offset); });
    return offsets;
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
        for_each_view(type, to, [](ArrayView& view, Type) { view.grad = nullptr; });
    }
}

std::vector<runtime::BufferPtr> make_copies(const CompiledKernel& adjoint, std::byte* block, runtime::Device& device) {
    struct Copied {
        ArrayView* view;
        Extent extent;
    };
    std::vector<Copied> all;
    const std::size_t own = adjoint.parameter_types.size() - adjoint.extras.size();
    for (std::size_t i = 0; i < adjoint.extras.size(); ++i) {
        if (adjoint.extras[i].of < 0 || adjoint.extras[i].kind != ir::Extra::Kind::copy) continue;
        for_each_view(adjoint.parameter_types[own + i], block + adjoint.layout.offsets[own + i],
                      [&](ArrayView& view, Type array) {
                          const Extent memory = extent(view, array);
                          if (memory.begin != memory.end) all.push_back({&view, memory});
                      });
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
// not make up for the atomics. It keeps others waiting, and does not ask about interrupts: it has to be short.
bool pays_to_be_alone(const KernelEntry& entry, std::int64_t threads) {
    constexpr double kNobodyAskedNs = 30'000, kShortNs = 100'000, kShortOnOneThreadNs = 2'000'000;
    if (entry.cost_alone <= 0.0) return false;
    const double alone = entry.cost_alone * static_cast<double>(threads);
    const int workers = runtime::cpu_threads();
    if (workers == 1) return alone < kShortOnOneThreadNs;
    return alone < kNobodyAskedNs || (alone < kShortNs && alone < entry.cost * static_cast<double>(threads) / workers);
}

}  // namespace

bool run_entry(const CompiledKernel& kernel, KernelEntryPoint entry, const void* arguments, const std::byte* block,
               const Grid& grid, bool (*interrupted)(), Fault* not_finite) {
    if (grid.count == 0) return true;
    LaunchContext context;
    std::copy(std::begin(grid.dim), std::end(grid.dim), context.dim);
    Fault fault{};
    context.fault = kernel.description.sites.empty() ? nullptr : &fault;
    context.not_finite = not_finite;
    std::optional<Meeting> meeting;
    if (kernel.description.meets) meeting.emplace(pays_to_be_alone(kernel.description, grid.count));
    if (meeting && meeting->is_alone()) {
        context.alone = true;
        entry(arguments, &context, 0, grid.count);
        if (fault.claimed) throw_fault(kernel, fault, block);
        return true;
    }
    int rank = kernel.description.tid_rank;
    std::int64_t row = rank <= 1 ? grid.count : grid.dim[rank - 1];
    // A chunk is mostly middle where it is so many times as long as its two ends.
    constexpr std::int64_t kMiddle = 128;
    const std::int64_t least = grid.count / grid.dim[0] * kernel.description.seam * kMiddle;
    bool finished = runtime::parallel_launch(entry, arguments, context, grid.count, row, kernel.description.cost,
                                             interrupted, least, kernel.serial ? 1 : 0);
    if (fault.claimed) throw_fault(kernel, fault, block);
    return finished;
}

bool run(const CompiledKernel& kernel, const std::byte* block, const Grid& grid, bool (*interrupted)(),
         Fault* not_finite) {
    if (!kernel.own_gradients.empty()) return run_with_own(kernel, block, grid, interrupted);
    return run_entry(kernel, kernel.entry, block, block, grid, interrupted, not_finite);
}

}  // namespace weft::program
