#include "runtime/cuda/executable.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>

#include "runtime/cuda/capture.h"
#include "runtime/cuda/objects.h"
#include "runtime/cuda/timing.h"
#include "support/error.h"

namespace weft::runtime {

using namespace cuda;

using GridShape = CudaKernel::GridShape;

namespace {

constexpr int kThreadsOfBlock = 256;  // default threads per block
// Blocks of a cluster: on every GPU that has them, and for kernels that ask for more.
constexpr int kMostPortable = 8, kMostClustered = 16;

// Every kernel can have blocks of so many threads: a thread has at most 255 registers, and a block 65536.
constexpr unsigned kBlockOfAnyCode = 256;
// The bound of code for blocks of more threads.
unsigned bound_of(unsigned threads) { return threads <= 512 ? 512 : 1024; }

bool has_clusters(const CudaDevice& device) { return device.gpu()->arch >= 90; }

// A grid with the launch's own axes (binary/cuda_abi.h), if most threads of its rows have work and most rows form whole
// groups; else none.
std::optional<GridShape> shape_by_axes(const Grid& grid, int rank, std::int64_t together, std::int64_t threads) {
    constexpr std::int64_t kMostBlocks = 65535;  // limit of the second and the third axis
    constexpr std::int64_t kLeastThreads = 64;   // a multiprocessor has room for few blocks only
    constexpr double kLeastUse = 0.75;
    const auto blocks = [](std::int64_t count, std::int64_t of) { return (count + of - 1) / of; };
    const std::int64_t columns = grid.dim[rank - 1], rows = grid.dim[rank - 2], groups = blocks(rows, together);
    std::int64_t others = 1;
    for (int axis = 0; axis < rank - 2; ++axis) others *= grid.dim[axis];
    const auto grouped = static_cast<double>(rows / together * together);
    if (groups > kMostBlocks || others > kMostBlocks || grouped < kLeastUse * static_cast<double>(rows))
        return std::nullopt;
    std::optional<GridShape> best;
    double best_use = 0.0;
    for (const std::int64_t tried : {threads, threads / 2, threads / 4}) {
        if (tried < threads && tried < kLeastThreads) break;
        const double use = static_cast<double>(columns) / static_cast<double>(blocks(columns, tried) * tried);
        if (use >= kLeastUse && use > best_use) {
            best = {static_cast<unsigned>(blocks(columns, tried)), static_cast<unsigned>(groups),
                    static_cast<unsigned>(others), static_cast<unsigned>(tried), true};
            best_use = use;
        }
        if (grid.block_dim > 0) break;
    }
    return best;
}

// Grids have up to 2^31 - 1 blocks; threads take several elements if there are more.
GridShape shape_of(const Grid& grid, int rank, const LaunchOptions& options, const CudaEntry& entry,
                   std::int64_t threads_at_once) {
    if (options.serial || options.keeps_order) return {};
    std::int64_t threads = grid.block_dim > 0 ? grid.block_dim : kThreadsOfBlock;
    if (grid.block_dim == 0 && entry.most_threads > 0) threads = std::min<std::int64_t>(threads, entry.most_threads);
    // Threads take several elements at once only if the GPU is fully occupied anyway.
    if (entry.together > 1 && grid.max_blocks == 0 && grid.count <= kMostTogether &&
        grid.count >= threads_at_once * entry.together) {
        const std::int64_t of_block = threads * entry.together;
        if (rank == 1)
            return {static_cast<unsigned>((grid.count + of_block - 1) / of_block), 1, 1, static_cast<unsigned>(threads),
                    true};
        if (const auto shape = shape_by_axes(grid, rank, entry.together, threads)) return *shape;
    }
    std::int64_t blocks = (grid.count + threads - 1) / threads;
    blocks = std::min<std::int64_t>(blocks, std::numeric_limits<std::int32_t>::max());
    if (grid.max_blocks > 0) blocks = std::min<std::int64_t>(blocks, grid.max_blocks);
    if (entry.logs > 0) blocks = std::min(blocks, std::max<std::int64_t>(1, kMostLoggingThreads / threads));
    return {static_cast<unsigned>(blocks), 1, 1, static_cast<unsigned>(threads)};
}

// The copies in shared memory that pay off at this launch, as in CudaLaunch, and their bytes.
struct SharedCopies {
    std::int64_t flags = 0, bytes = 0;
};

SharedCopies shared_copies(const CudaEntry& entry, std::span<const std::byte> arguments, const Grid& grid,
                           const GridShape& shape) {
    // Eight blocks of 256 threads share the memory of a multiprocessor, which serves as its cache, too.
    constexpr std::int64_t kMostBytes = 12 * 1024;
    SharedCopies chosen;
    const auto number_at = [&](std::int64_t offset) {
        std::int64_t number = 0;
        std::memcpy(&number, arguments.data() + offset, sizeof number);
        return number;
    };
    const std::int64_t of_block = grid.count / shape.x;  // elements
    for (std::size_t i = 0; i < entry.shared_copies.size(); ++i) {
        const CudaSharedCopy& copy = entry.shared_copies[i];
        std::int64_t bytes = copy.element_bytes, elements = 1;
        bool fits = number_at(copy.data) != 0;
        for (std::int64_t axis = copy.ndim; fits && axis-- > 0;) {
            const std::int64_t extent = number_at(copy.shape + 8 * axis), stride = number_at(copy.strides + 8 * axis);
            fits = stride == bytes && extent > 0 && extent <= kMostBytes;
            bytes *= extent;
            elements *= extent;
            fits = fits && bytes <= kMostBytes;
        }
        bytes = (bytes + kSharedCopyAlignment - 1) / kSharedCopyAlignment * kSharedCopyAlignment;
        // Each element is filled and added once for a block.
        if (!fits || chosen.bytes + bytes > kMostBytes || 2 * elements > of_block) continue;
        chosen.flags |= std::int64_t{1} << i;
        chosen.bytes += bytes;
    }
    return chosen;
}

// The length of a thread's log, a multiple of 16 bytes.
std::int64_t log_bytes(const CudaEntry& entry, const GridShape& shape) {
    return kCudaLogBytes / (std::int64_t{entry.logs} * shape.x * shape.threads) / 16 * 16;
}

CudaAxis axis_of(std::int64_t extent) {
    CudaAxis axis{.extent = extent};
    if (extent <= 1) return axis;  // the kernel handles it separately
    const int bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(extent - 1)));
    const unsigned __int128 numerator = static_cast<unsigned __int128>(1) << (63 + bits);
    axis.multiplier = static_cast<std::uint64_t>(numerator / static_cast<std::uint64_t>(extent)) + 1;
    axis.shift = static_cast<std::uint32_t>(bits - 1);
    if (extent <= std::numeric_limits<std::int32_t>::max())
        axis.short_multiplier =
            static_cast<std::uint32_t>((std::uint64_t{1} << (31 + bits)) / static_cast<std::uint64_t>(extent) + 1);
    return axis;
}

}  // namespace

CudaLaunch cuda_launch(const Grid& grid) {
    CudaLaunch launch;
    for (int i = 0; i < kMaxDims; ++i) launch.axes[i] = axis_of(grid.dim[i]);
    launch.count = grid.count;
    return launch;
}

// ---- kernels ----

CudaKernel::CudaKernel(const KernelEntry& description, CudaExecutable& executable)
    : LoadedKernel(description, /*cost_ns=*/0.0, description.cuda().ordered, /*may_be_long=*/false),
      executable_(executable),
      formats_(std::make_shared<const std::vector<std::string>>(description.cuda().formats)),
      functions_(gpus().size()) {}

CUfunction CudaKernel::function_on(CudaDevice& device, unsigned threads) const {
    const auto find = [&] {
        return threads <= kBlockOfAnyCode ? executable_.function(description().symbol, device)
                                          : function_of_large_blocks(device, threads);
    };
    if (!device.is_primary()) return find();
    Functions& of_device = functions_[static_cast<std::size_t>(device.ordinal)];
    std::atomic<CUfunction>& known =
        threads <= kBlockOfAnyCode ? of_device.any : of_device.of_large_blocks[bound_of(threads) > 512];
    if (const CUfunction function = known.load(std::memory_order_acquire)) return function;
    const CUfunction function = find();
    known.store(function, std::memory_order_release);
    return function;
}

// The function itself if its registers suffice; else one that is compiled for the bound.
CUfunction CudaKernel::function_of_large_blocks(CudaDevice& device, unsigned threads) const {
    const CudaEntry& entry = description().cuda();
    const unsigned bound = entry.most_threads > 0 ? threads : bound_of(threads);
    const auto number_of = [&](CUfunction function, CUfunction_attribute attribute) {
        const CudaDevice::Inside inside(device);
        int number = 0;
        device.check(driver().cuFuncGetAttribute(&number, attribute, function), "cuFuncGetAttribute");
        return static_cast<unsigned>(number);
    };
    CUfunction function = executable_.function(description().symbol, device);
    if (number_of(function, kMostThreadsOfBlock) >= bound) return function;
    if (entry.most_threads == 0) function = executable_.function(description().symbol, device, bound);
    const unsigned most = number_of(function, kMostThreadsOfBlock);
    if (most >= bound) return function;
    throw UsageError("launch()",
                     "block_dim is " + std::to_string(threads) + ", and kernel '" + description().name + "' has " +
                         std::to_string(number_of(function, kRegisters)) + " registers for each thread on '" +
                         device.alias + "', which allow blocks of " + std::to_string(most) +
                         " threads. help: block_dim=" + std::to_string(std::min(most, kBlockOfAnyCode)) +
                         ", or cuda_max_registers of at most " + std::to_string(65536 / bound),
                     ErrorCategory::value);
}

// The blocks that the device holds at once, as far as threads and registers bound them.
std::int64_t CudaKernel::blocks_at_once(CudaDevice& device, CUfunction function, unsigned threads) const {
    int registers = 0;
    std::atomic<int>* const known =
        device.is_primary() ? &functions_[static_cast<std::size_t>(device.ordinal)].registers : nullptr;
    if (known) registers = known->load(std::memory_order_relaxed);
    if (registers == 0) {
        device.check(driver().cuFuncGetAttribute(&registers, kRegisters, function), "cuFuncGetAttribute");
        if (known) known->store(registers, std::memory_order_relaxed);
    }
    constexpr std::int64_t kWarp = 32, kUnit = 256, kRegistersOfMultiprocessor = 65536;  // a warp has whole units
    const std::int64_t warps = (threads + kWarp - 1) / kWarp;
    const std::int64_t of_warp = (registers * kWarp + kUnit - 1) / kUnit * kUnit;
    const std::int64_t by_threads = device.gpu()->threads_at_once / device.gpu()->sm_count / (warps * kWarp);
    const std::int64_t by_registers = of_warp > 0 ? kRegistersOfMultiprocessor / of_warp / warps : by_threads;
    return std::max<std::int64_t>(1, std::min(by_threads, by_registers)) * device.gpu()->sm_count;
}

void CudaKernel::prepare(Device& device) const { function_on(static_cast<CudaDevice&>(device)); }

std::string CudaKernel::origin(Device& device) const {
    prepare(device);
    return executable_.origin(static_cast<CudaDevice&>(device));
}

std::pair<int, int> CudaKernel::max_occupancy_block(Device& device) const {
    auto& gpu = static_cast<CudaDevice&>(device);
    const CUfunction function = function_on(gpu);
    const CudaDevice::Inside inside(gpu);
    int blocks = 0, threads = 0;
    gpu.check(driver().cuOccupancyMaxPotentialBlockSize(&blocks, &threads, function, nullptr, 0, 0),
              "cuOccupancyMaxPotentialBlockSize");
    return {threads, blocks};
}

std::pair<int, int> CudaKernel::thread_needs(Device& device) const {
    auto& gpu = static_cast<CudaDevice&>(device);
    const CUfunction function = function_on(gpu);
    const CudaDevice::Inside inside(gpu);
    int registers = 0, local_bytes = 0;
    gpu.check(driver().cuFuncGetAttribute(&registers, kRegisters, function), "cuFuncGetAttribute");
    gpu.check(driver().cuFuncGetAttribute(&local_bytes, kLocalBytes, function), "cuFuncGetAttribute");
    return {registers, local_bytes};
}

int CudaKernel::most_clustered(Device& device, int threads, int shared_bytes) const {
    auto& gpu = static_cast<CudaDevice&>(device);
    if (!has_clusters(gpu) || !driver().cuOccupancyMaxPotentialClusterSize) return 1;
    const CUfunction function = function_on(gpu);
    const CudaDevice::Inside inside(gpu);
    gpu.check(driver().cuFuncSetAttribute(function, kMayHaveLargeClusters, 1), "cuFuncSetAttribute");
    const CUlaunchConfig config{.grid_x = kMostClustered,
                                .grid_y = 1,
                                .grid_z = 1,
                                .block_x = static_cast<unsigned>(threads),
                                .block_y = 1,
                                .block_z = 1,
                                .shared_bytes = static_cast<unsigned>(shared_bytes)};
    int most = 1;
    gpu.check(driver().cuOccupancyMaxPotentialClusterSize(&most, function, &config),
              "cuOccupancyMaxPotentialClusterSize");
    return most;
}

void CudaKernel::require_clusters(CudaDevice& device, CUfunction function, int cluster) const {
    if (!has_clusters(device) || !driver().cuLaunchKernelEx)
        throw UsageError("launch()",
                         "kernel '" + description().name + "' has cluster_dim=" + std::to_string(cluster) + ", and '" +
                             device.alias + "' is of architecture " + std::to_string(device.gpu()->arch) +
                             "; clusters need 90 (Hopper) or later. help: leave cluster_dim out",
                         ErrorCategory::value);
    if (cluster > kMostPortable)
        device.check(driver().cuFuncSetAttribute(function, kMayHaveLargeClusters, 1), "cuFuncSetAttribute");
}

// Whether the code waits for the launch in front of it: code for older architectures does not.
bool CudaKernel::waits_for_previous() const {
    const std::string& processor = executable_.binary().target.processor;
    return processor.starts_with("sm_") && std::atoi(processor.c_str() + 3) >= 90 && driver().cuLaunchKernelEx;
}

// In clusters, if the kernel asks for them. Precondition: the grid has whole ones.
void CudaKernel::launch_blocks(CudaDevice& device, CUfunction function, const GridShape& shape, unsigned shared_bytes,
                               int cluster, bool programmatic, CUstream stream, void** parameters) const {
    if (programmatic) programmatic = waits_for_previous();
    if (cluster == 1 && !programmatic) {
        device.check(driver().cuLaunchKernel(function, shape.x, shape.y, shape.z, shape.threads, 1, 1, shared_bytes,
                                             stream, parameters, nullptr),
                     "cuLaunchKernel");
        return;
    }
    if (cluster > 1) require_clusters(device, function, cluster);
    const auto blocks = static_cast<unsigned>(cluster);
    CUlaunchAttribute attributes[2] = {};
    unsigned count = 0;
    if (cluster > 1) {
        attributes[count].id = kClusterDimension;
        attributes[count++].cluster = {blocks, 1, 1};
    }
    if (programmatic) {
        attributes[count].id = kProgrammaticSerialization;
        attributes[count++].is_programmatic = 1;
    }
    const CUlaunchConfig config{.grid_x = shape.x,
                                .grid_y = shape.y,
                                .grid_z = shape.z,
                                .block_x = shape.threads,
                                .block_y = 1,
                                .block_z = 1,
                                .shared_bytes = shared_bytes,
                                .stream = stream,
                                .attributes = attributes,
                                .attribute_count = count};
    device.check(driver().cuLaunchKernelEx(&config, function, parameters, nullptr), "cuLaunchKernelEx");
}

bool CudaKernel::launch(std::span<const std::byte> arguments, const Grid& grid, const LaunchOptions& options,
                        Stream& stream) const {
    if (grid.count == 0) return true;
    auto& device = static_cast<CudaDevice&>(stream.device());
    auto& queue = static_cast<CudaStream&>(stream);
    const CudaEntry& entry = description().cuda();
    if (entry.most_threads > 0 && grid.block_dim > entry.most_threads)
        throw UsageError("launch()",
                         "block_dim is " + std::to_string(grid.block_dim) + ", and kernel '" + description().name +
                             "' was made for blocks of at most " + std::to_string(entry.most_threads) +
                             " threads. help: block_dim=" + std::to_string(entry.most_threads) +
                             ", or a larger launch_bounds of @wp.kernel",
                         ErrorCategory::value);
    const bool in_order = options.serial || options.keeps_order;  // by one thread
    if (in_order && entry.whole_blocks)
        throw UsageError("launch()",
                         "kernel '" + description().name +
                             "' calls a @wp.func_native, whose C++ may need all threads of a block, and a "
                             "deterministic launch of it would run on one. help: pass deterministic=False to "
                             "wp.launch() or @wp.kernel, or launch it with device=\"cpu\"",
                         ErrorCategory::value);
    GridShape shape = shape_of(grid, description().tid_rank, options, entry, device.gpu()->threads_at_once);
    const CUfunction function = function_on(device, shape.threads);
    const CudaDevice::Inside inside(device);
    // One atomic for a block: no more blocks than run at once.
    if (entry.combines)
        shape.x =
            static_cast<unsigned>(std::min<std::int64_t>(shape.x, blocks_at_once(device, function, shape.threads)));
    const int cluster = in_order ? 1 : options.cluster;
    // Whole clusters: the last may have blocks without elements.
    const auto of_cluster = static_cast<unsigned>(cluster);
    shape.x = (shape.x + of_cluster - 1) / of_cluster * of_cluster;
    CudaLaunch launch = cuda_launch(grid);

    CudaRecording* const recording = cuda_recording(stream);
    ReportMemory reports;
    BufferPtr kept_reports;  // for a launch in a graph
    Report report{nullptr, options.fault, options.not_finite, grid, formats_, nullptr};
    if (options.late_fault) {
        report.late = *options.late_fault;
        report.fault = &report.late->fault;
        if (!recording && queue.reports().is_full()) queue.synchronize();
    }
    if (entry.reports) {
        const std::int64_t bytes =
            static_cast<std::int64_t>(sizeof(CudaReports)) + (entry.prints ? 8 * kCudaPrintWords : 0);
        if (recording) {
            kept_reports = recording->report_memory(bytes);
            report.data = kept_reports->data;
        } else {
            // Memory in the order of a stream that its owner may destroy is not kept.
            constexpr std::int64_t kReports = 64;
            reports = queue.reports().take_memory(bytes, device, stream, queue.is_foreign() ? 1 : kReports);
            report.data = reports.data;
        }
        launch.reports = static_cast<CudaReports*>(report.data);
    }
    std::optional<CudaMemory> block;
    void* address = nullptr;
    void* parameters[] = {&launch, const_cast<std::byte*>(arguments.data())};
    if (entry.arguments_in_memory) {
        block.emplace(device, entry.argument_bytes, /*zeroed=*/false, stream);
        device.from_host(block->data(), arguments.data(), entry.argument_bytes, stream);
        address = block->data();
        parameters[1] = &address;
    }
    std::unique_ptr<CudaMemory> objects;
    if (entry.finds_objects) {
        const spatial::PreviousObjectsPtr& previous = spatial::SnapshotScope::current();
        if (!previous)
            launch.objects = device.objects().table();
        else if (recording)
            launch.objects = device.objects().table_in_graph(previous, *recording);
        else
            objects = device.objects().table_with(*previous, stream);
        if (objects) launch.objects = objects->data();
    }
    launch.together = shape.together;
    SharedCopies copies;
    if (!in_order) copies = shared_copies(entry, arguments, grid, shape);
    launch.shared_copies = copies.flags;
    std::optional<CudaMemory> logs;
    if (entry.logs > 0) {
        logs.emplace(device, kCudaLogBytes, /*zeroed=*/false, stream);
        launch.logs = static_cast<std::byte*>(logs->data());
        launch.log_bytes = log_bytes(entry, shape);
    }
    const TimedWork timed(queue, kTimedKernel, "kernel ", description().name);
    launch_blocks(device, function, shape, static_cast<unsigned>(copies.bytes), cluster, options.programmatic,
                  queue.handle(), parameters);
    if (kept_reports) recording->add_report(std::move(report), std::move(kept_reports));
    if (reports.data) queue.reports().add({std::move(report), std::move(reports)});
    if (objects) device.objects().add_launch(*spatial::SnapshotScope::current(), std::move(objects));
    return true;
}

// ---- executables ----

CudaExecutable::CudaExecutable(Binary binary) : Executable(std::move(binary)) {
    if (this->binary().code.empty() || this->binary().code.back() != std::byte{0})
        throw InternalError("code for GPUs has no NUL at its end");
    for (const KernelEntry& entry : this->binary().kernels)
        kernels_.push_back(std::make_unique<CudaKernel>(entry, *this));
}

// Unloading a module waits for launches that use it, in the driver.
CudaExecutable::~CudaExecutable() {
    for (const auto& [of, module] : modules_) {
        if (module.handle == nullptr) continue;
        const CudaDevice::Inside inside(*of.first, std::nothrow);
        if (!inside.is_inside()) continue;
        const RelaxedCapture relaxed;
        destroy_quietly(driver().cuModuleUnload, module.handle);
    }
}

const CudaKernel& CudaExecutable::kernel(std::string_view name) const {
    for (const auto& kernel : kernels_)
        if (kernel->description().name == name) return *kernel;
    throw InternalError("there is no kernel '" + std::string(name) + "' in this executable");
}

CUfunction CudaExecutable::function(const std::string& symbol, CudaDevice& device, unsigned block_bound) {
    const std::lock_guard lock(mutex_);
    CudaModule& module = modules_[{&device, block_bound}];
    if (module.handle == nullptr) {
        const auto* const ptx = reinterpret_cast<const char*>(binary().code.data());
        const std::string& processor = binary().target.processor;
        module = block_bound == 0 ? load_module({ptx, binary().machine_code, processor}, device)
                                  : load_module({with_block_bound(ptx, block_bound).c_str(), {}, processor}, device);
    }
    const CudaDevice::Inside inside(device);
    const RelaxedCapture relaxed;
    CUfunction function = nullptr;
    device.check(driver().cuModuleGetFunction(&function, module.handle, symbol.c_str()), "cuModuleGetFunction");
    return function;
}

std::string CudaExecutable::origin(CudaDevice& device) {
    const std::lock_guard lock(mutex_);
    const auto found = modules_.find({&device, 0});
    return found == modules_.end() ? "" : found->second.origin;
}

}  // namespace weft::runtime
