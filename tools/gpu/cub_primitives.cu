// CUB's sums, running sums and runs, for compare_primitives.py: as machine code, and as a program of the host that
// prints the elements and the threads of their blocks on sm_90.
#include <cstdio>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_run_length_encode.cuh>
#include <cub/device/device_scan.cuh>

template <typename T>
void scan(const T* from, T* to, int count) {
    size_t bytes = 0;
    cub::DeviceScan::InclusiveSum(nullptr, bytes, from, to, count);
}
template <typename T>
void sum(const T* from, T* to, int count) {
    size_t bytes = 0;
    cub::DeviceReduce::Sum(nullptr, bytes, from, to, count);
}
template <typename T>
void runs(const T* from, T* values, int* lengths, int* found, int count) {
    size_t bytes = 0;
    cub::DeviceRunLengthEncode::Encode(nullptr, bytes, from, values, lengths, found, count);
}
#define WEFT_ALL(T)                           \
    template void scan<T>(const T*, T*, int); \
    template void sum<T>(const T*, T*, int);  \
    template void runs<T>(const T*, T*, int*, int*, int);
WEFT_ALL(float)
WEFT_ALL(double)
WEFT_ALL(int)
WEFT_ALL(long long)

template <typename T>
void print(const char* name) {
    using Plus = ::cuda::std::plus<>;
    using Scan = typename cub::detail::scan::policy_hub<T, T, T, unsigned, Plus>::Policy900::ScanPolicyT;
    using Sum = typename cub::detail::reduce::policy_hub<T, unsigned, Plus>::Policy600::ReducePolicy;
    using Runs = typename cub::detail::rle::encode::policy_hub<int, T>::Policy900::ReduceByKeyPolicyT;
    std::printf("scan %s %d %d\n", name, Scan::ITEMS_PER_THREAD, Scan::BLOCK_THREADS);
    std::printf("sum %s %d %d\n", name, Sum::ITEMS_PER_THREAD, Sum::BLOCK_THREADS);
    std::printf("runs %s %d %d\n", name, Runs::ITEMS_PER_THREAD, Runs::BLOCK_THREADS);
}

int main() {
    print<float>("f32");
    print<double>("f64");
    print<int>("i32");
    print<long long>("i64");
}
