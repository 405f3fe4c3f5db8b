// Kernels in CUDA C++ as one writes them: one element for each thread, numbers of 32 bits for indices, a grid of as many
// axes as the array. bandwidth.py measures those that memory bounds.

template <typename Real>
__device__ void saxpy(int n, Real a, const Real* __restrict__ x, Real* __restrict__ y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}

extern "C" {

__global__ void saxpy_f32(int n, float a, const float* __restrict__ x, float* __restrict__ y) { saxpy(n, a, x, y); }
__global__ void saxpy_f64(int n, double a, const double* __restrict__ x, double* __restrict__ y) { saxpy(n, a, x, y); }

// Of the inside of n x n points.
__global__ void stencil_2d(int n, const float* __restrict__ u, float* __restrict__ result) {
    const int i = blockIdx.y * blockDim.y + threadIdx.y + 1, j = blockIdx.x * blockDim.x + threadIdx.x + 1;
    if (i >= n - 1 || j >= n - 1) return;
    const float* at = u + i * n + j;
    result[i * n + j] = at[-n] + at[n] + at[-1] + at[1] - 4.0f * at[0];
}

__global__ void stencil_3d(int n, const float* __restrict__ u, float* __restrict__ result) {
    const int i = blockIdx.z, j = blockIdx.y, k = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < 1 || j < 1 || k < 1 || i >= n - 1 || j >= n - 1 || k >= n - 1) return;
    const int plane = n * n, number = (i * n + j) * n + k;
    const float* at = u + number;
    result[number] = at[-plane] + at[plane] + at[-n] + at[n] + at[-1] + at[1] - 6.0f * at[0];
}

__global__ void particles(int n, float dt, float gravity, float* __restrict__ x, float* __restrict__ v) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float vx = v[3 * i], vy = v[3 * i + 1] + gravity * dt, vz = v[3 * i + 2];
    v[3 * i] = vx, v[3 * i + 1] = vy, v[3 * i + 2] = vz;
    x[3 * i] += vx * dt, x[3 * i + 1] += vy * dt, x[3 * i + 2] += vz * dt;
}

}  // extern "C"

// ---- bound by arithmetic or by latency: tools/gpu/compare_machine_code.py ----

namespace {

constexpr unsigned kAllLanes = ~0u;

__device__ int index_of_thread() { return blockIdx.x * blockDim.x + threadIdx.x; }

__device__ unsigned pcg(unsigned v) {
    const unsigned state = v * 747796405u + 2891336453u;
    const unsigned word = ((state >> ((state >> 28) + 4)) ^ state) * 277803737u;
    return (word >> 22) ^ word;
}

// The linear function of one corner of gradient noise.
__device__ float corner(unsigned hash, float x, float y, float z) {
    constexpr float kUnit = 4.0f / 3.0f / 1024.0f, kMiddle = 0.5f * kUnit - 2.0f / 3.0f;
    const float gx = static_cast<int>(hash & 1023u) * kUnit + kMiddle;
    const float gy = static_cast<int>(hash >> 10 & 1023u) * kUnit + kMiddle;
    const float gz = static_cast<int>(hash >> 20 & 1023u) * kUnit + kMiddle;
    return gx * x + gy * y + gz * z;
}

__device__ float blend(float t) { return t * t * t * (t * (t * 6.0f - 15.0f) + 10.0f); }
__device__ float mix(float a, float b, float t) { return a + t * (b - a); }

__device__ float noise_at(unsigned state, float x, float y, float z) {
    const float bx = floorf(x), by = floorf(y), bz = floorf(z);
    const unsigned ix = static_cast<int>(bx), iy = static_cast<int>(by), iz = static_cast<int>(bz);
    const float tx = x - bx, ty = y - by, tz = z - bz;
    const unsigned start = pcg(state);
    float planes[2];
    for (unsigned i = 0; i < 2; ++i) {
        const unsigned of_x = pcg(start + (ix + i));
        float rows[2];
        for (unsigned j = 0; j < 2; ++j) {
            const unsigned of_y = pcg(of_x + (iy + j));
            const float dx = tx - i, dy = ty - j;
            rows[j] =
                mix(corner(pcg(of_y + iz), dx, dy, tz), corner(pcg(of_y + (iz + 1)), dx, dy, tz - 1.0f), blend(tz));
        }
        planes[i] = mix(rows[0], rows[1], blend(ty));
    }
    return mix(planes[0], planes[1], blend(tx));
}

__device__ float3 vector_at(const float* x, int i) { return {x[3 * i], x[3 * i + 1], x[3 * i + 2]}; }
__device__ float dot(float3 a, float3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }

// One step of bench/gradients/rollout.py.
__device__ void advance(float3& p, float3& v) {
    const float pull = -1.0f / (dot(p, p) + 0.1f);
    v.x += (p.x * pull - v.x * 0.1f) * 0.02f, v.y += (p.y * pull - v.y * 0.1f) * 0.02f,
        v.z += (p.z * pull - v.z * 0.1f) * 0.02f;
    p.x += v.x * 0.02f, p.y += v.y * 0.02f, p.z += v.z * 0.02f;
}

}  // namespace

extern "C" {

__global__ void chain(int n, const float* __restrict__ x, float* __restrict__ y) {
    const int i = index_of_thread();
    if (i < n) y[i] = logf(2.0f + cosf(sqrtf(expf(sinf(x[i])))));
}

__global__ void nbody(int n, float softening, const float* __restrict__ x, float* __restrict__ force) {
    const int i = index_of_thread();
    if (i >= n) return;
    const float3 p = vector_at(x, i);
    float3 total = {0.0f, 0.0f, 0.0f};
    for (int j = 0; j < n; ++j) {
        const float3 q = vector_at(x, j), d = {q.x - p.x, q.y - p.y, q.z - p.z};
        const float inverse = 1.0f / sqrtf(dot(d, d) + softening), cube = inverse * inverse * inverse;
        total.x += d.x * cube, total.y += d.y * cube, total.z += d.z * cube;
    }
    force[3 * i] = total.x, force[3 * i + 1] = total.y, force[3 * i + 2] = total.z;
}

__global__ void mandelbrot(int n, float left, float bottom, float pixel, int iterations, int* __restrict__ counts) {
    const int row = blockIdx.y, column = index_of_thread();
    if (column >= n) return;
    const float cx = left + column * pixel, cy = bottom + row * pixel;
    float x = 0.0f, y = 0.0f;
    int count = 0;
    while (count < iterations && x * x + y * y <= 4.0f) {
        const float next = x * x - y * y + cx;
        y = 2.0f * x * y + cy;
        x = next;
        ++count;
    }
    counts[row * n + column] = count;
}

__global__ void inverse(int n, const float* __restrict__ a, float* __restrict__ result) {
    const int i = index_of_thread();
    if (i >= n) return;
    float m[9], adjugate[9];
    for (int k = 0; k < 9; ++k) m[k] = a[9 * i + k];
    adjugate[0] = m[4] * m[8] - m[5] * m[7];
    adjugate[1] = m[2] * m[7] - m[1] * m[8];
    adjugate[2] = m[1] * m[5] - m[2] * m[4];
    adjugate[3] = m[5] * m[6] - m[3] * m[8];
    adjugate[4] = m[0] * m[8] - m[2] * m[6];
    adjugate[5] = m[2] * m[3] - m[0] * m[5];
    adjugate[6] = m[3] * m[7] - m[4] * m[6];
    adjugate[7] = m[1] * m[6] - m[0] * m[7];
    adjugate[8] = m[0] * m[4] - m[1] * m[3];
    const float determinant = m[0] * adjugate[0] + m[1] * adjugate[3] + m[2] * adjugate[6];
    for (int k = 0; k < 9; ++k) result[9 * i + k] = determinant != 0.0f ? adjugate[k] / determinant : 0.0f;
}

__global__ void noise(int n, unsigned state, const float* __restrict__ x, float* __restrict__ y) {
    const int i = index_of_thread();
    if (i >= n) return;
    const float3 p = vector_at(x, i);
    y[i] = noise_at(state, p.x, p.y, p.z);
}

__global__ void random_numbers(int n, unsigned seed, float* __restrict__ y) {
    const int i = index_of_thread();
    if (i < n) y[i] = (pcg(pcg(seed + pcg(i))) >> 8) * 0x1p-24f;
}

__global__ void spmv(int rows, const int* __restrict__ offsets, const int* __restrict__ columns,
                     const float* __restrict__ values, const float* __restrict__ x, float* __restrict__ y) {
    const int row = index_of_thread();
    if (row >= rows) return;
    float total = 0.0f;
    for (int i = offsets[row]; i < offsets[row + 1]; ++i) total += values[i] * x[columns[i]];
    y[row] = total;
}

// Two levels: the threads of a grid of fixed size, warps, blocks; one atomic for each block.
__global__ void sum_of_all(int n, const float* __restrict__ x, float* __restrict__ total) {
    __shared__ float of_warps[32];
    float sum = 0.0f;
    for (int i = index_of_thread(); i < n; i += gridDim.x * blockDim.x) sum += x[i];
    for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(kAllLanes, sum, distance);
    const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (lane == 0) of_warps[warp] = sum;
    __syncthreads();
    if (warp != 0) return;
    sum = lane < blockDim.x / 32 ? of_warps[lane] : 0.0f;
    for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(kAllLanes, sum, distance);
    if (lane == 0) atomicAdd(total, sum);
}

__global__ void histogram(int n, float bins, const float* __restrict__ x, int* __restrict__ counts) {
    __shared__ int of_block[256];
    for (int bin = threadIdx.x; bin < 256; bin += blockDim.x) of_block[bin] = 0;
    __syncthreads();
    for (int i = index_of_thread(); i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&of_block[static_cast<int>(x[i] * bins)], 1);
    __syncthreads();
    for (int bin = threadIdx.x; bin < 256; bin += blockDim.x)
        if (of_block[bin] != 0) atomicAdd(&counts[bin], of_block[bin]);
}

// The adjoint of y = sqrt(b + 1) cos(b), b = exp(-a a), a = x sin(x): bench/gradients/elementwise.py.
__global__ void chain_adjoint(int n, const float* __restrict__ x, const float* __restrict__ by_y,
                              float* __restrict__ by_x) {
    const int i = index_of_thread();
    if (i >= n) return;
    const float v = x[i];
    float sine, cosine, sine_b, cosine_b;
    sincosf(v, &sine, &cosine);
    const float a = sine * v, b = expf(-a * a), root = sqrtf(b + 1.0f);
    sincosf(b, &sine_b, &cosine_b);
    const float by_b = by_y[i] * (cosine_b * 0.5f / root - root * sine_b);
    by_x[i] += by_b * b * -2.0f * a * (cosine * v + sine);
}

// 100 steps and the gradient by the start; the positions of all steps are kept in local memory.
__global__ void rollout_adjoint(int n, const float* __restrict__ x, const float* __restrict__ v,
                                const float* __restrict__ by_end, float* __restrict__ by_x, float* __restrict__ by_v) {
    constexpr int kSteps = 100;
    const int i = index_of_thread();
    if (i >= n) return;
    float3 kept[kSteps], p = vector_at(x, i), speed = vector_at(v, i);
    for (int t = 0; t < kSteps; ++t) {
        kept[t] = p;
        advance(p, speed);
    }
    float3 gx = vector_at(by_end, i), gv = {0.0f, 0.0f, 0.0f};
    for (int t = kSteps - 1; t >= 0; --t) {
        const float3 q = kept[t];
        const float inverse = 1.0f / (dot(q, q) + 0.1f);
        gv.x += 0.02f * gx.x, gv.y += 0.02f * gx.y, gv.z += 0.02f * gx.z;
        const float along = 2.0f * inverse * dot(gv, q), scale = 0.02f * inverse;
        gx.x -= scale * (gv.x - q.x * along), gx.y -= scale * (gv.y - q.y * along),
            gx.z -= scale * (gv.z - q.z * along);
        gv.x *= 0.998f, gv.y *= 0.998f, gv.z *= 0.998f;
    }
    by_x[3 * i] += gx.x, by_x[3 * i + 1] += gx.y, by_x[3 * i + 2] += gx.z;
    by_v[3 * i] += gv.x, by_v[3 * i + 1] += gv.y, by_v[3 * i + 2] += gv.z;
}

// y = s[0] x: the gradient of s[0] is a sum over all threads.
__global__ void scale_adjoint(int n, const float* __restrict__ x, const float* __restrict__ s,
                              const float* __restrict__ by_y, float* __restrict__ by_x, float* __restrict__ by_s) {
    __shared__ float of_warps[32];
    float sum = 0.0f;
    const float factor = s[0];
    for (int i = index_of_thread(); i < n; i += gridDim.x * blockDim.x) {
        const float seed = by_y[i];
        sum += seed * x[i];
        by_x[i] += seed * factor;
    }
    for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(kAllLanes, sum, distance);
    const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (lane == 0) of_warps[warp] = sum;
    __syncthreads();
    if (warp != 0) return;
    sum = lane < blockDim.x / 32 ? of_warps[lane] : 0.0f;
    for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(kAllLanes, sum, distance);
    if (lane == 0) atomicAdd(by_s, sum);
}

}  // extern "C"
