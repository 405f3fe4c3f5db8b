#include "runtime/cpu/private_gradients.h"

#include <algorithm>

#include "runtime/array.h"
#include "runtime/cpu/preemption.h"
#include "runtime/cpu/thread_pool.h"

namespace weft::runtime {
namespace {

// Elements of a private gradient that are cleared and summed in the time of one atomic addition.
constexpr std::int64_t kElementsPerAddition = 2;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 28;
constexpr std::int64_t kNumbersAtOnce = std::int64_t{1} << 15;

const ArrayView& view_of(const std::byte* arguments, const PrivateGradient& gradient) {
    return *reinterpret_cast<const ArrayView*>(arguments + gradient.offset);
}

// The number of elements; -1 if they are not packed.
std::int64_t packed_elements(const ArrayView& view, Type array) {
    std::int64_t stride = array.element().size_bytes(), elements = 1;
    for (int axis = array.ndim() - 1; axis >= 0; --axis) {
        if (view.shape[axis] > 1 && view.strides[axis] != stride) return -1;
        stride *= view.shape[axis];
        elements *= view.shape[axis];
    }
    return elements;
}

template <class T>
void add(void* to, const Buffer& from) {
    struct Sum {
        T* to;
        const T* from;
    } sum{static_cast<T*>(to), static_cast<const T*>(from.data)};
    const auto body = [](void* state, std::int64_t begin, std::int64_t end) {
        const Sum& sum = *static_cast<Sum*>(state);
        for (std::int64_t i = begin; i < end; ++i) sum.to[i] += sum.from[i];
    };
    parallel_range(from.size_bytes / static_cast<std::int64_t>(sizeof(T)), kNumbersAtOnce, body, &sum);
}

}  // namespace

bool should_privatise(std::span<const GradientView> gradients, std::int64_t threads) {
    if (gradients.empty()) return false;
    const std::int64_t others = cpu_threads() - 1;
    std::int64_t bytes = 0;
    for (const auto& [view, array, additions] : gradients) {
        const std::int64_t elements = view->grad ? packed_elements(*view, array) : -1;
        if (elements <= 0 || elements * others > kElementsPerAddition * additions * threads) return false;
        bytes += elements * array.element().size_bytes() * others;
    }
    return bytes <= kMostBytes;
}

// A thread other than the caller, with its own arguments.
struct PrivateGradients::Worker {
    std::thread::id thread;
    std::vector<std::byte> arguments;
    std::vector<BufferPtr> gradients;  // in the order of PrivateGradients::gradients_
};

PrivateGradients::PrivateGradients(KernelEntryPoint entry, std::span<const std::byte> arguments,
                                   std::span<const PrivateGradient> gradients)
    : entry_(entry), arguments_(arguments), gradients_(gradients) {}

PrivateGradients::~PrivateGradients() = default;

void PrivateGradients::run_piece(const void* self, const LaunchContext* context, std::int64_t begin, std::int64_t end) {
    auto& own = *static_cast<PrivateGradients*>(const_cast<void*>(self));
    run_chunk(own.entry_, own.arguments_of_this_thread(), *context, begin, end);
}

void PrivateGradients::add_up() {
    for (const std::unique_ptr<Worker>& worker : workers_) {
        for (std::size_t i = 0; i < gradients_.size(); ++i) {
            void* const to = view_of(arguments_.data(), gradients_[i]).grad;
            if (gradients_[i].array.element().scalar() == Scalar::f32)
                add<float>(to, *worker->gradients[i]);
            else
                add<double>(to, *worker->gradients[i]);
        }
    }
}

const std::byte* PrivateGradients::arguments_of_this_thread() {
    const std::thread::id thread = std::this_thread::get_id();
    if (thread == caller_) return arguments_.data();
    {
        const std::lock_guard lock(mutex_);
        const auto found = std::find_if(workers_.begin(), workers_.end(),
                                        [&](const auto& worker) { return worker->thread == thread; });
        if (found != workers_.end()) return (*found)->arguments.data();
    }
    auto worker = std::make_unique<Worker>();
    worker->thread = thread;
    worker->arguments.assign(arguments_.begin(), arguments_.end());
    for (const PrivateGradient& gradient : gradients_) {
        auto& view = const_cast<ArrayView&>(view_of(worker->arguments.data(), gradient));
        const std::int64_t size = packed_elements(view, gradient.array) * gradient.array.element().size_bytes();
        worker->gradients.push_back(allocate_zeroed(size, host_device()));
        view.grad = worker->gradients.back()->data;
    }
    const std::lock_guard lock(mutex_);
    workers_.push_back(std::move(worker));
    return workers_.back()->arguments.data();
}

}  // namespace weft::runtime
