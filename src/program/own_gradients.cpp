#include "program/own_gradients.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/array.h"
#include "runtime/cpu/pool.h"

namespace weft::program {
namespace {

// So many elements of a worker's gradient are cleared and added up in the time that an addition by atomics takes.
constexpr std::int64_t kElementsPerAddition = 2;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 28;
constexpr std::int64_t kNumbersAtOnce = std::int64_t{1} << 15;

Type array_type(const CompiledKernel& kernel, int parameter) {
    return kernel.parameter_types[static_cast<std::size_t>(parameter)];
}

ArrayView& view_of(const CompiledKernel& kernel, std::byte* block, int parameter) {
    return *reinterpret_cast<ArrayView*>(block + kernel.layout.offsets[static_cast<std::size_t>(parameter)]);
}

const ArrayView& view_of(const CompiledKernel& kernel, const std::byte* block, int parameter) {
    return *reinterpret_cast<const ArrayView*>(block + kernel.layout.offsets[static_cast<std::size_t>(parameter)]);
}

// The number of elements; -1 where they are not packed.
std::int64_t packed_elements(const ArrayView& view, Type array) {
    std::int64_t stride = array.element().size_bytes(), elements = 1;
    for (int axis = array.ndim() - 1; axis >= 0; --axis) {
        if (view.shape[axis] > 1 && view.strides[axis] != stride) return -1;
        stride *= view.shape[axis];
        elements *= view.shape[axis];
    }
    return elements;
}

// Another thread than the caller, with the arguments that it runs on.
struct Worker {
    std::thread::id thread;
    std::vector<std::byte> block;
    std::vector<runtime::BufferPtr> gradients;  // as CompiledKernel::own_gradients
};

class OwnGradients {
public:
    OwnGradients(const CompiledKernel& kernel, const std::byte* block) : kernel_(kernel), block_(block) {}

    // A KernelEntryPoint whose arguments are an object of this class.
    static void run_piece(const void* self, const LaunchContext* context, std::int64_t begin, std::int64_t end) {
        auto& own = *static_cast<OwnGradients*>(const_cast<void*>(self));
        own.kernel_.entry(own.block_of_this_thread(), context, begin, end);
    }

    void add_up() {
        for (const std::unique_ptr<Worker>& worker : workers_) {
            for (std::size_t i = 0; i < kernel_.own_gradients.size(); ++i) {
                const int parameter = kernel_.own_gradients[i];
                const Type element = array_type(kernel_, parameter).element();
                void* const to = view_of(kernel_, block_, parameter).grad;
                if (element.scalar() == Scalar::f32)
                    add<float>(to, *worker->gradients[i]);
                else
                    add<double>(to, *worker->gradients[i]);
            }
        }
    }

private:
    const std::byte* block_of_this_thread() {
        const std::thread::id thread = std::this_thread::get_id();
        if (thread == caller_) return block_;
        {
            const std::lock_guard lock(mutex_);
            const auto found = std::find_if(workers_.begin(), workers_.end(),
                                            [&](const auto& worker) { return worker->thread == thread; });
            if (found != workers_.end()) return (*found)->block.data();
        }
        auto worker = std::make_unique<Worker>();
        worker->thread = thread;
        worker->block.assign(block_, block_ + kernel_.layout.size_bytes);
        for (const int parameter : kernel_.own_gradients) {
            ArrayView& view = view_of(kernel_, worker->block.data(), parameter);
            const Type type = array_type(kernel_, parameter);
            const std::int64_t size = packed_elements(view, type) * type.element().size_bytes();
            worker->gradients.push_back(runtime::allocate_zeroed(size, runtime::device("cpu")));
            view.grad = worker->gradients.back()->data;
        }
        const std::lock_guard lock(mutex_);
        workers_.push_back(std::move(worker));
        return workers_.back()->block.data();
    }

    template <class T>
    static void add(void* to, const runtime::Buffer& from) {
        struct Sum {
            T* to;
            const T* from;
        } sum{static_cast<T*>(to), static_cast<const T*>(from.data)};
        const auto body = [](void* state, std::int64_t begin, std::int64_t end) {
            const Sum& sum = *static_cast<Sum*>(state);
            for (std::int64_t i = begin; i < end; ++i) sum.to[i] += sum.from[i];
        };
        runtime::parallel_range(from.size_bytes / static_cast<std::int64_t>(sizeof(T)), kNumbersAtOnce, body, &sum);
    }

    const CompiledKernel& kernel_;
    const std::byte* const block_;
    const std::thread::id caller_ = std::this_thread::get_id();
    std::mutex mutex_;
    std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace

bool pays_to_own(std::span<const GradientView> gradients, std::int64_t threads) {
    if (gradients.empty()) return false;
    const std::int64_t others = runtime::cpu_threads() - 1;
    std::int64_t bytes = 0;
    for (const auto& [view, array, additions] : gradients) {
        const std::int64_t elements = view->grad ? packed_elements(*view, array) : -1;
        if (elements <= 0 || elements * others > kElementsPerAddition * additions * threads) return false;
        bytes += elements * array.element().size_bytes() * others;
    }
    return bytes <= kMostBytes;
}

bool run_with_own(const CompiledKernel& adjoint, const std::byte* block, const Grid& grid, bool (*interrupted)()) {
    OwnGradients own(adjoint, block);
    const bool finished = run_entry(adjoint, &OwnGradients::run_piece, &own, block, grid, interrupted);
    own.add_up();
    return finished;
}

}  // namespace weft::program
