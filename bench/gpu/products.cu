// A product of f32 by hand, for tools/gpu/compare_products.py: tiles of 128x128x8, 8x8 sums a thread, both operands
// row-major, sizes that are multiples of the tile.
extern "C" __global__ __launch_bounds__(256, 2) void product_f32(int m, int n, int k, const float* __restrict__ a,
                                                                 const float* __restrict__ b, float* __restrict__ c) {
    __shared__ __align__(16) float left[2][8][132], right[2][8][128];
    const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
    const int row = (warp / 2 * 4 + lane / 8) * 4, column = (warp % 2 * 8 + lane % 8) * 4;
    const float* from_a = a + (blockIdx.y * 128 + thread / 2) * (size_t)k + thread % 2 * 4;
    const float* from_b = b + thread / 32 * (size_t)n + blockIdx.x * 128 + thread % 32 * 4;
    float sums[8][8] = {};
    float4 next_a = *(const float4*)from_a, next_b = *(const float4*)from_b;
    int now = 0;
    for (int at = 0;; at += 8) {
        left[now][thread % 2 * 4][thread / 2] = next_a.x;
        left[now][thread % 2 * 4 + 1][thread / 2] = next_a.y;
        left[now][thread % 2 * 4 + 2][thread / 2] = next_a.z;
        left[now][thread % 2 * 4 + 3][thread / 2] = next_a.w;
        *(float4*)&right[now][thread / 32][thread % 32 * 4] = next_b;
        __syncthreads();
        const bool is_last = at + 8 >= k;
        if (!is_last) {
            from_a += 8;
            from_b += 8 * (size_t)n;
            next_a = *(const float4*)from_a;
            next_b = *(const float4*)from_b;
        }
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            float x[8], y[8];
            *(float4*)x = *(const float4*)&left[now][i][row];
            *(float4*)(x + 4) = *(const float4*)&left[now][i][row + 64];
            *(float4*)y = *(const float4*)&right[now][i][column];
            *(float4*)(y + 4) = *(const float4*)&right[now][i][column + 64];
#pragma unroll
            for (int p = 0; p < 8; ++p)
#pragma unroll
                for (int q = 0; q < 8; ++q) sums[p][q] = fmaf(x[p], y[q], sums[p][q]);
        }
        if (is_last) break;
        now ^= 1;
    }
#pragma unroll
    for (int p = 0; p < 8; ++p)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            float* const to = c + (blockIdx.y * 128 + row + p / 4 * 64 + p % 4) * (size_t)n + blockIdx.x * 128 + column;
            *(float4*)(to + half * 64) =
                make_float4(sums[p][half * 4], sums[p][half * 4 + 1], sums[p][half * 4 + 2], sums[p][half * 4 + 3]);
        }
}
