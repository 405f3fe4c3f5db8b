#include "runtime/cuda/primitives/cublas.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <limits>
#include <map>
#include <mutex>
#include <optional>

#include "runtime/cublas.h"
#include "runtime/cuda/relaxed_capture.h"
#include "runtime/cuda/stream.h"
#include "runtime/cuda/timing.h"
#include "support/error.h"

namespace weft::runtime {

namespace {

using cublasHandle_t = struct CublasContext*;

// Numbers of its header files.
constexpr int kNoTranspose = 0, kTranspose = 1;
constexpr int kDefaultAlgorithm = -1;
constexpr int kCompute32 = 68, kCompute64 = 70, kComputeTf32 = 77;
constexpr int kTypeF16 = 2, kTypeF32 = 0, kTypeF64 = 1, kTypeBf16 = 14;
// Partial sums are not rounded to 16 bits.
constexpr int kNoReducedPrecision = 16;

struct Library {
#define WEFT_CUBLAS(result, function, parameters) result(*function) parameters = nullptr;
#include "runtime/cuda/primitives/cublas.def"
#undef WEFT_CUBLAS
    std::string file;

    // The name of a function that is missing, or "".
    std::string find(void* library) {
        std::string missing;
        const auto one = [&](auto& function, const char* name) {
            function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
            if (!function && missing.empty()) missing = name;
        };
#define WEFT_CUBLAS(result, function, parameters) one(function, #function);
#include "runtime/cuda/primitives/cublas.def"
#undef WEFT_CUBLAS
        return missing;
    }
    std::string text_of(int status) const {
        const char* const text = cublasGetStatusString(status);
        return (text ? text : "an error") + (" (" + std::to_string(status) + ")");
    }
};

std::atomic<bool> is_wanted{true};
std::mutex folders_mutex;
std::vector<std::string> folders;

std::optional<Library> load(const std::string& file, int mode) {
    void* const handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | mode);
    if (!handle) return {};
    Library library;
    if (!library.find(handle).empty()) return {};
    library.file = file;
    return library;
}

// One that the process has already; else by the linker's paths, or in the folders. A driver that a program has chosen
// itself, such as the emulated one, is none of cuBLAS's: then it has to be named.
std::optional<Library> find_library() {
    const char* const chosen = std::getenv("WEFT_CUBLAS");
    if (chosen && *chosen) {
        if (std::string(chosen) == "0") return {};
        std::optional<Library> library = load(chosen, 0);
        if (library) return library;
        const char* const problem = dlerror();
        throw UsageError("matmul()", std::string("$WEFT_CUBLAS is '") + chosen +
                                         "', which is no cuBLAS of CUDA 12 or 13" +
                                         (problem ? std::string(": ") + problem : "") +
                                         ". help: the path of libcublas.so.13 or libcublas.so.12, or 0 for none");
    }
    if (const char* const driver = std::getenv("WARP_CUDA_DRIVER"); driver && *driver) return {};
    const std::string names[] = {"libcublas.so.13", "libcublas.so.12"};
    for (const std::string& name : names)
        if (auto library = load(name, RTLD_NOLOAD)) return library;
    for (const std::string& name : names)
        if (auto library = load(name, 0)) return library;
    const std::lock_guard lock(folders_mutex);
    for (const std::string& folder : folders)
        for (const std::string& name : names)
            if (auto library = load(folder + "/" + name, 0)) return library;
    return {};
}

const Library* library() {
    if (!is_wanted.load(std::memory_order_relaxed)) return nullptr;
    static const std::optional<Library> found = find_library();
    return found ? &*found : nullptr;
}

void check(int status, const char* call, const CudaContext& device) {
    if (status == 0) return;
    throw UsageError("matmul()", std::string(call) + "(): " + library()->text_of(status) + ", on '" + device.alias +
                                     "', by " + library()->file +
                                     ". help: wp.config.use_cublas = False multiplies without cuBLAS");
}

// A handle for each device, under one lock: a call sets the stream and the workspace of its handle.
std::mutex handles_mutex;
cublasHandle_t handle_of(CudaContext& device) {
    static std::map<const CudaContext*, cublasHandle_t> handles;
    cublasHandle_t& handle = handles[&device];
    if (handle) return handle;
    const RelaxedCapture relaxed;
    cublasHandle_t made = nullptr;
    check(library()->cublasCreate_v2(&made), "cublasCreate_v2", device);
    check(library()->cublasSetMathMode(made, kNoReducedPrecision), "cublasSetMathMode", device);
    return handle = made;
}

bool is_int(std::int64_t number) { return number >= 0 && number <= std::numeric_limits<int>::max(); }

// The leading dimension of a matrix whose lines of `length` elements are contiguous; 0 if they are not.
std::int64_t leading_dimension(std::int64_t along, std::int64_t across, std::int64_t length, std::int64_t lines,
                               std::int64_t bytes) {
    if (along != bytes && length > 1) return 0;
    if (lines == 1) return length;
    return across % bytes == 0 && across / bytes >= length && is_int(across / bytes) ? across / bytes : 0;
}

}  // namespace

void set_cublas(bool is_used) { is_wanted.store(is_used, std::memory_order_relaxed); }

void set_cublas_folders(std::vector<std::string> all) {
    const std::lock_guard lock(folders_mutex);
    folders = std::move(all);
}

// cuBLAS has columns in sequence, so that it sees the transposed matrices: d^T = b^T a^T.
CublasProduct::CublasProduct(const Workplace& at, const devlib::MatmulPlan& plan, Scalar scalar,
                             MatmulPrecision precision) {
    // Below that a call of cuBLAS takes longer than the product.
    constexpr double kLeastWork = 1 << 21;
    if (precision == MatmulPrecision::exact || at.device.gpu()->arch < 80) return;
    compute_ = kCompute32;
    switch (scalar) {
        case Scalar::f16:
            type_ = kTypeF16;
            break;
        case Scalar::bf16:
            type_ = kTypeBf16;
            break;
        case Scalar::f32:
            if (precision != MatmulPrecision::tf32) return;
            type_ = kTypeF32;
            compute_ = kComputeTf32;
            break;
        case Scalar::f64:
            type_ = kTypeF64;
            compute_ = kCompute64;
            break;
        default:
            return;
    }
    const double work = static_cast<double>(plan.batches) * static_cast<double>(plan.rows) *
                        static_cast<double>(plan.columns) * static_cast<double>(plan.inner);
    if (work < kLeastWork || !is_int(plan.batches) || !is_int(plan.rows) || !is_int(plan.columns) ||
        !is_int(plan.inner) || !library())
        return;
    const std::int64_t bytes = info(scalar).bytes();
    const auto factor = [&](const devlib::MatrixView& view, std::int64_t rows, std::int64_t columns, Factor& into) {
        std::int64_t leading = leading_dimension(view.column, view.row, columns, rows, bytes);
        into.operation = kNoTranspose;
        if (leading == 0) {
            leading = leading_dimension(view.row, view.column, rows, columns, bytes);
            into.operation = kTranspose;
        }
        into.data = view.data;
        into.leading = static_cast<int>(leading);
        into.batch = view.batch / bytes;
        return leading > 0 && view.batch % bytes == 0;
    };
    const std::int64_t leading = leading_dimension(plan.d.column, plan.d.row, plan.columns, plan.rows, bytes);
    if (leading == 0 || plan.d.batch % bytes != 0) return;
    if (!factor(plan.a, plan.rows, plan.inner, left_) || !factor(plan.b, plan.inner, plan.columns, right_)) return;
    result_ = plan.d.data;
    result_leading_ = static_cast<int>(leading);
    result_batch_ = plan.d.batch / bytes;
    rows_ = static_cast<int>(plan.rows);
    columns_ = static_cast<int>(plan.columns);
    inner_ = static_cast<int>(plan.inner);
    batches_ = static_cast<int>(plan.batches);
    alpha_ = plan.alpha;
    beta_ = plan.beta;
    is_possible_ = true;
}

void CublasProduct::run(const Workplace& at) const {
    // The size that NVIDIA recommends for sm_90. It is of this call, in the order of the stream: calls in other streams
    // do not share it, and a graph keeps its own.
    constexpr std::int64_t kWorkspace = std::int64_t{32} << 20;
    const CudaMemory workspace = at.memory(kWorkspace);
    const CudaContext::Inside inside(at.device);
    const RelaxedCapture relaxed;  // the first product of a kind loads its code
    // No capture of the stream begins before the product is in it.
    const CudaStream::Handle queue = static_cast<CudaStream&>(at.stream).handle();
    const TimedWork timed(at.stream, kTimedOwnKernel, "cublasGemmStridedBatchedEx");
    const std::lock_guard lock(handles_mutex);
    const Library& calls = *library();
    cublasHandle_t const handle = handle_of(at.device);
    check(calls.cublasSetStream_v2(handle, queue), "cublasSetStream_v2", at.device);
    check(calls.cublasSetWorkspace_v2(handle, workspace.data(), kWorkspace), "cublasSetWorkspace_v2", at.device);
    const auto narrow_alpha = static_cast<float>(alpha_), narrow_beta = static_cast<float>(beta_);
    const bool is_double = type_ == kTypeF64;
    const void* const alpha = is_double ? static_cast<const void*>(&alpha_) : &narrow_alpha;
    const void* const beta = is_double ? static_cast<const void*>(&beta_) : &narrow_beta;
    check(calls.cublasGemmStridedBatchedEx(handle, right_.operation, left_.operation, columns_, rows_, inner_, alpha,
                                           right_.data, type_, right_.leading, right_.batch, left_.data, type_,
                                           left_.leading, left_.batch, beta, result_, type_, result_leading_,
                                           result_batch_, batches_, compute_, kDefaultAlgorithm),
          "cublasGemmStridedBatchedEx", at.device);
}

}  // namespace weft::runtime
