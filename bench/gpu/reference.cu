// The kernels of bandwidth.py in CUDA C++ as one writes them: one element for each thread, numbers of 32 bits for
// indices, a grid of as many axes as the array.

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
