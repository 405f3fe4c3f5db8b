// A library in cuBLAS's place, for tests: it multiplies on the host, by copies through the driver that
// $WARP_CUDA_DRIVER names, and writes a line for each call to $STAND_IN_LOG. FAILS names a function that fails.
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#ifndef FAILS
#define FAILS ""
#endif

namespace {

template <typename... T>
void note(const char* format, T... values) {
    if (std::FILE* const file = std::fopen(std::getenv("STAND_IN_LOG"), "a")) {
        std::fprintf(file, format, values...);
        std::fclose(file);
    }
}

int status_of(const char* function) { return std::strcmp(function, FAILS) == 0 ? 13 : 0; }

template <typename Function>
Function of_driver(const char* name) {
    static void* const library = dlopen(std::getenv("STAND_IN_DRIVER"), RTLD_NOW | RTLD_NOLOAD);
    return reinterpret_cast<Function>(dlsym(library, name));
}

struct Handle {
    void* stream;
};

double number(const char* data, std::size_t index, int type) {
    if (type == 0) return reinterpret_cast<const float*>(data)[index];
    if (type == 1) return reinterpret_cast<const double*>(data)[index];
    if (type == 2) return static_cast<double>(reinterpret_cast<const _Float16*>(data)[index]);
    const std::uint32_t bits = std::uint32_t{reinterpret_cast<const std::uint16_t*>(data)[index]} << 16;
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
}

void set_number(char* data, std::size_t index, int type, double value) {
    if (type == 0) reinterpret_cast<float*>(data)[index] = static_cast<float>(value);
    if (type == 1) reinterpret_cast<double*>(data)[index] = value;
    if (type == 2) reinterpret_cast<_Float16*>(data)[index] = static_cast<_Float16>(value);
    if (type != 14) return;
    const auto narrow = static_cast<float>(value);
    std::uint32_t bits;
    std::memcpy(&bits, &narrow, 4);
    reinterpret_cast<std::uint16_t*>(data)[index] =
        static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

}  // namespace

extern "C" {

int cublasCreate_v2(Handle** handle) {
    *handle = new Handle{};
    note("create\n");
    return status_of("cublasCreate_v2");
}
int cublasSetMathMode(Handle*, int mode) {
    note("mode %d\n", mode);
    return status_of("cublasSetMathMode");
}
int cublasSetStream_v2(Handle* handle, void* stream) {
    handle->stream = stream;
    return status_of("cublasSetStream_v2");
}
int cublasSetWorkspace_v2(Handle*, void* data, std::size_t size) {
    note("workspace %zu aligned %d\n", size, int(reinterpret_cast<std::uintptr_t>(data) % 256 == 0));
    return status_of("cublasSetWorkspace_v2");
}
const char* cublasGetStatusString(int) { return "the GPU program failed to execute"; }

int cublasGemmStridedBatchedEx(Handle* handle, int op_a, int op_b, int m, int n, int k, const void* alpha,
                               const void* a, int a_type, int lda, long long a_stride, const void* b, int, int ldb,
                               long long b_stride, const void* beta, void* c, int, int ldc, long long c_stride,
                               int batches, int compute, int algorithm) {
    note("gemm %d%d %d %d %d type %d batches %d compute %d algorithm %d\n", op_a, op_b, m, n, k, a_type, batches,
         compute, algorithm);
    if (const int status = status_of("cublasGemmStridedBatchedEx")) return status;
    const auto to_host = of_driver<int (*)(void*, std::uint64_t, std::size_t, void*)>("cuMemcpyDtoHAsync_v2");
    const auto to_device = of_driver<int (*)(std::uint64_t, const void*, std::size_t, void*)>("cuMemcpyHtoDAsync_v2");
    const auto wait = of_driver<int (*)(void*)>("cuStreamSynchronize");
    const std::size_t bytes = a_type == 0 ? 4 : a_type == 1 ? 8 : 2;
    const double scale = a_type == 1 ? *static_cast<const double*>(alpha) : *static_cast<const float*>(alpha);
    const double old = a_type == 1 ? *static_cast<const double*>(beta) : *static_cast<const float*>(beta);
    const auto fetch = [&](const void* from, int lines, int leading, int length) {
        std::vector<char> data((static_cast<std::size_t>(lines - 1) * leading + length) * bytes);
        to_host(data.data(), reinterpret_cast<std::uint64_t>(from), data.size(), handle->stream);
        wait(handle->stream);
        return data;
    };
    for (int batch = 0; batch < batches; ++batch) {
        const auto at = [&](const void* data, long long stride) {
            return static_cast<const char*>(data) + batch * stride * static_cast<long long>(bytes);
        };
        const std::vector<char> left = op_a ? fetch(at(a, a_stride), m, lda, k) : fetch(at(a, a_stride), k, lda, m);
        const std::vector<char> right = op_b ? fetch(at(b, b_stride), k, ldb, n) : fetch(at(b, b_stride), n, ldb, k);
        std::vector<char> result = fetch(at(c, c_stride), n, ldc, m);
        for (int i = 0; i < m; ++i) {
            for (int j = 0; j < n; ++j) {
                double sum = 0;
                for (int l = 0; l < k; ++l)
                    sum += number(left.data(), op_a ? std::size_t(i) * lda + l : std::size_t(l) * lda + i, a_type) *
                           number(right.data(), op_b ? std::size_t(l) * ldb + j : std::size_t(j) * ldb + l, a_type);
                const std::size_t place = std::size_t(j) * ldc + i;
                set_number(result.data(), place, a_type,
                           scale * sum + (old != 0 ? old * number(result.data(), place, a_type) : 0));
            }
        }
        to_device(reinterpret_cast<std::uint64_t>(at(c, c_stride)), result.data(), result.size(), handle->stream);
        wait(handle->stream);
    }
    return 0;
}

}  // extern "C"
