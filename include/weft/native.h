// The environment of the C++ in a @wp.func_native: the types of its parameters, laid out as kernels have them in
// memory, and some mathematics. The text of this header is compiled before each snippet. It needs a C++17 compiler. It
// includes nothing, as that would dominate compile time; a snippet may have lines with #include.
//
//   float32, int32, uint8, ...      numbers; floats of 8 and 16 bits compute as float
//   vec3, vec2d, vec_t<N, T>        v[i]; + - * / by components and with numbers, dot, cross, length, normalize
//   mat33, mat_t<R, C, T>           m[i][j]
//   quat, quat_t<T>                 q[i], or q.x, q.y, q.z, q.w; quat_inverse, quat_to_matrix
//   transform, transform_t<T>       t.p, t.q; transform_get_translation, transform_get_rotation
//   add, sub, mul                   of numbers and vectors; mul of matrices too
//   array_t<T, N>                   a[i], a[i][j] or a(i, j); a.shape[0], a.strides[0] in bytes, a.data
//
//   sqrt, sin, pow, min, clamp, ... of float and double; sqrtf, sinf, ...; INFINITY, NAN, M_PI, FLT_MAX; printf
//   address(a, i, j)                the address of an element
//   atomic_add(&a[i], x)            and atomicAdd, atomicMin, atomicCAS, ... as CUDA has them
//   __popc, __clz, __ffs, ...       of 32 bits, and __popcll, ... of 64
//   WP_TILE_SYNC()                  waits for the other threads of the block, of which a CPU has none;
//                                   WP_TILE_THREAD_IDX and WP_TILE_BLOCK_DIM are a thread's number and their count
//
// Parameters that are passed by reference are references. Structs have the names and fields of their Python classes.
// Indices are not checked. Other threads run at the same time: memory that several of them change needs atomics.
//
// On CUDA devices the C++ is compiled as CUDA (__CUDA_ARCH__), and native_cuda.h goes before this header.
#pragma once

// As the standard headers have them, which may follow.
typedef __INT8_TYPE__ int8_t;
typedef __INT16_TYPE__ int16_t;
typedef __INT32_TYPE__ int32_t;
typedef __INT64_TYPE__ int64_t;
typedef __UINT8_TYPE__ uint8_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __UINT64_TYPE__ uint64_t;
typedef __SIZE_TYPE__ size_t;
#if !defined(__CUDACC_RTC__)
extern "C" int printf(const char*, ...);
#endif
// As <math.h> and <float.h> have them.
#define INFINITY (__builtin_inff())
#define NAN (__builtin_nanf(""))
#define M_PI 3.14159265358979323846
#define FLT_MAX __FLT_MAX__
#define FLT_EPSILON __FLT_EPSILON__

// The lanes of a block of threads, which share its memory. On the CPU a block is one thread.
#if defined(__CUDA__)
#define WP_TILE_SYNC() __syncthreads()
#define WP_TILE_THREAD_IDX threadIdx.x
#define WP_TILE_BLOCK_DIM blockDim.x
#else
#define WP_TILE_SYNC() static_cast<void>(0)
#define WP_TILE_THREAD_IDX 0
#define WP_TILE_BLOCK_DIM 1
#endif
#define WP_PRAGMA_UNROLL _Pragma("unroll")

// The loop of a call over its lanes; on CUDA devices a call has one (codegen/native.h).
#if defined(__CUDA__)
#define WEFT_EACH_LANE(lanes) if constexpr (constexpr long lane = 0; true)
#else
#define WEFT_EACH_LANE(lanes) \
    for (long lane = 0; (lanes) != 0 && (lane = __builtin_ctzl(lanes), true); (lanes) &= (lanes) - 1)
#endif

namespace wp {

using int8 = __INT8_TYPE__;
using int16 = __INT16_TYPE__;
using int32 = __INT32_TYPE__;
using int64 = __INT64_TYPE__;
using uint8 = __UINT8_TYPE__;
using uint16 = __UINT16_TYPE__;
using uint32 = __UINT32_TYPE__;
using uint64 = __UINT64_TYPE__;
using float32 = float;
using float64 = double;

namespace detail {

inline uint32 bits_of(float value) {
    uint32 bits;
    __builtin_memcpy(&bits, &value, 4);
    return bits;
}
inline float float_of(uint32 bits) {
    float value;
    __builtin_memcpy(&value, &bits, 4);
    return value;
}

// The upper `32 - drop` bits of a float, rounded to nearest, ties to even.
inline uint32 rounded(uint32 bits, int drop) { return (bits + (1u << (drop - 1)) - 1u + (bits >> drop & 1u)) >> drop; }

}  // namespace detail

// A float of 8 or 16 bits: a sign, an exponent and a fraction. Arithmetic is done in float. Without an infinity, the
// largest exponent is also used for numbers, and only all ones are NaN.
template <typename Bits, int exponent_bits, int fraction_bits, bool has_infinity>
struct small_float {
    Bits bits = 0;
    small_float() = default;
    small_float(float value) : bits(Bits(narrowed(detail::bits_of(value)))) {}
    operator float() const { return detail::float_of(widened()); }

private:
    static constexpr int bias = (1 << (exponent_bits - 1)) - 1, drop = 23 - fraction_bits;
    static constexpr int above = 31 - exponent_bits - fraction_bits;  // unused bits of a float
    static constexpr uint32 all_ones = (1u << (exponent_bits + fraction_bits)) - 1u;
    static constexpr uint32 top_exponent = all_ones >> fraction_bits << fraction_bits;
    static constexpr uint32 largest = (has_infinity ? top_exponent : all_ones) - 1u;

    static uint32 narrowed(uint32 whole) {
        const uint32 magnitude = whole & 0x7fffffffu, sign = (whole ^ magnitude) >> above;
        if (magnitude > 0x7f800000u) {
            const uint32 payload = exponent_bits == 8 ? magnitude >> above : 0u;
            return sign | payload | (has_infinity ? top_exponent | 1u << (fraction_bits - 1) : all_ones);
        }
        uint32 kept;
        if (exponent_bits < 8 && magnitude < uint32(128 - bias) << 23) {  // subnormal: the sum rounds at its last bit
            constexpr uint32 magic = uint32(128 - bias + drop) << 23;
            kept = detail::bits_of(detail::float_of(magnitude) + detail::float_of(magic)) - magic;
        } else {
            kept = detail::rounded(magnitude - (uint32(127 - bias) << 23), drop);
        }
        return sign | (kept > largest ? largest + 1u : kept);  // infinity or, without one, NaN
    }
    uint32 widened() const {
        const uint32 magnitude = bits & all_ones, sign = uint32(bits ^ magnitude) << above;
        if (magnitude > largest) return sign | 0x7f800000u | magnitude << drop;
        const uint32 scale = uint32(254 - bias) << 23;  // 2^(127 - bias)
        return sign | detail::bits_of(detail::float_of(magnitude << drop) * detail::float_of(scale));
    }
};
using float16 = small_float<uint16, 5, 10, true>;
using bfloat16 = small_float<uint16, 8, 7, true>;
using float8_e4m3fn = small_float<uint8, 4, 3, false>;
using float8_e5m2 = small_float<uint8, 5, 2, true>;

// ---- mathematics: templates, and variadic ones, so that overloads of <cmath> win if a snippet includes it ----

namespace detail {
// The type in which mathematics of T is computed.
template <typename T>
struct real {
    using type = double;
};
template <>
struct real<float> {
    using type = float;
};
template <typename Bits, int exponent_bits, int fraction_bits, bool has_infinity>
struct real<small_float<Bits, exponent_bits, fraction_bits, has_infinity>> {
    using type = float;
};
template <typename T>
using real_t = typename real<T>::type;
template <typename T>
inline constexpr bool is_double = false;
template <>
inline constexpr bool is_double<double> = true;
}  // namespace detail

#define WEFT_MATH_1(name)                                             \
    template <typename T, typename... Rest>                           \
    detail::real_t<T> name(T x, Rest...) {                            \
        static_assert(sizeof...(Rest) == 0, "this takes one number"); \
        if constexpr (sizeof(detail::real_t<T>) == 4)                 \
            return __builtin_##name##f(float(x));                     \
        else                                                          \
            return __builtin_##name(double(x));                       \
    }                                                                 \
    template <typename... Rest>                                       \
    float name##f(float x, Rest...) {                                 \
        static_assert(sizeof...(Rest) == 0, "this takes one number"); \
        return __builtin_##name##f(x);                                \
    }
WEFT_MATH_1(acos)
WEFT_MATH_1(asin)
WEFT_MATH_1(atan)
WEFT_MATH_1(cbrt)
WEFT_MATH_1(ceil)
WEFT_MATH_1(cos)
WEFT_MATH_1(cosh)
WEFT_MATH_1(erf)
WEFT_MATH_1(erfc)
WEFT_MATH_1(exp)
WEFT_MATH_1(exp2)
WEFT_MATH_1(fabs)
WEFT_MATH_1(floor)
WEFT_MATH_1(log)
WEFT_MATH_1(log10)
WEFT_MATH_1(log2)
WEFT_MATH_1(rint)
WEFT_MATH_1(round)
WEFT_MATH_1(sin)
WEFT_MATH_1(sinh)
WEFT_MATH_1(sqrt)
WEFT_MATH_1(tan)
WEFT_MATH_1(tanh)
WEFT_MATH_1(trunc)
#undef WEFT_MATH_1
#define WEFT_MATH_2(name)                                              \
    template <typename T, typename... Rest>                            \
    detail::real_t<T> name(T x, T y, Rest...) {                        \
        static_assert(sizeof...(Rest) == 0, "this takes two numbers"); \
        if constexpr (sizeof(detail::real_t<T>) == 4)                  \
            return __builtin_##name##f(float(x), float(y));            \
        else                                                           \
            return __builtin_##name(double(x), double(y));             \
    }                                                                  \
    template <typename... Rest>                                        \
    float name##f(float x, float y, Rest...) {                         \
        static_assert(sizeof...(Rest) == 0, "this takes two numbers"); \
        return __builtin_##name##f(x, y);                              \
    }
WEFT_MATH_2(atan2)
WEFT_MATH_2(copysign)
WEFT_MATH_2(fmax)
WEFT_MATH_2(fmin)
WEFT_MATH_2(fmod)
WEFT_MATH_2(hypot)
WEFT_MATH_2(pow)
#undef WEFT_MATH_2
template <typename T, typename... Rest>
detail::real_t<T> rsqrt(T x, Rest... rest) {
    return detail::real_t<T>(1) / sqrt(x, rest...);
}
template <typename... Rest>
float rsqrtf(float x, Rest... rest) {
    return 1.0f / sqrtf(x, rest...);
}
template <typename... Rest>
float fmaf(float x, float y, float z, Rest...) {
    static_assert(sizeof...(Rest) == 0, "this takes three numbers");
    return __builtin_fmaf(x, y, z);
}
template <typename T, typename... Rest>
detail::real_t<T> fma(T x, T y, T z, Rest...) {
    static_assert(sizeof...(Rest) == 0, "this takes three numbers");
    if constexpr (sizeof(detail::real_t<T>) == 4)
        return __builtin_fmaf(float(x), float(y), float(z));
    else
        return __builtin_fma(double(x), double(y), double(z));
}
template <typename T, typename... Rest>
bool isnan(T x, Rest...) {
    return x != x;
}
template <typename T, typename... Rest>
bool isfinite(T x, Rest...) {
    return x - x == x - x;
}
template <typename T, typename... Rest>
bool isinf(T x, Rest...) {
    return x == x && x - x != x - x;
}
template <typename T, typename... Rest>
T abs(T x, Rest...) {
    if constexpr (sizeof(detail::real_t<T>) == 4 || detail::is_double<T>)
        return T(fabs(x));  // of -0 too
    else
        return x < T(0) ? T(-x) : x;
}
template <typename T>
T min(T a, T b) {
    return b < a ? b : a;
}
template <typename T>
T max(T a, T b) {
    return a < b ? b : a;
}
template <typename T>
T clamp(T x, T low, T high) {
    return min(max(low, x), high);
}

// ---- values ----

template <int N, typename T>
struct vec_t {
    T c[N] = {};
    vec_t() = default;
    template <typename... Rest>
    vec_t(T first, Rest... rest) : c{first, T(rest)...} {
        static_assert(sizeof...(Rest) + 1 == N, "a vector is made of all its components");
    }
    T& operator[](int64 i) { return c[i]; }
    const T& operator[](int64 i) const { return c[i]; }

#define WEFT_COMPONENTWISE(op)                                      \
    friend vec_t operator op(const vec_t& a, const vec_t& b) {      \
        vec_t result;                                               \
        for (int i = 0; i < N; ++i) result.c[i] = a.c[i] op b.c[i]; \
        return result;                                              \
    }                                                               \
    vec_t& operator op## = (const vec_t& b) { return *this = *this op b; }
    WEFT_COMPONENTWISE(+)
    WEFT_COMPONENTWISE(-)
#undef WEFT_COMPONENTWISE
    friend vec_t operator*(const vec_t& a, T s) {
        vec_t result;
        for (int i = 0; i < N; ++i) result.c[i] = a.c[i] * s;
        return result;
    }
    friend vec_t operator*(T s, const vec_t& a) { return a * s; }
    friend vec_t operator/(const vec_t& a, T s) {
        vec_t result;
        for (int i = 0; i < N; ++i) result.c[i] = a.c[i] / s;
        return result;
    }
    friend vec_t operator-(const vec_t& a) { return a * T(-1); }
    vec_t& operator*=(T s) { return *this = *this * s; }
    vec_t& operator/=(T s) { return *this = *this / s; }
};

template <int N, typename T>
T dot(const vec_t<N, T>& a, const vec_t<N, T>& b) {
    T sum = a.c[0] * b.c[0];
    for (int i = 1; i < N; ++i) sum = sum + a.c[i] * b.c[i];
    return sum;
}
template <int N, typename T>
T length_sq(const vec_t<N, T>& a) {
    return dot(a, a);
}
template <typename T>
vec_t<3, T> cross(const vec_t<3, T>& a, const vec_t<3, T>& b) {
    return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}
template <int N, typename T>
T length(const vec_t<N, T>& a) {
    return T(sqrt(dot(a, a)));
}
// Zero of a vector without a length.
template <int N, typename T>
vec_t<N, T> normalize(const vec_t<N, T>& a) {
    const T size = length(a);
    return size > T(0) ? a / size : vec_t<N, T>();
}

// Row by row; m[i] is row i.
template <int Rows, int Cols, typename T>
struct mat_t {
    T data[Rows][Cols] = {};
    T* operator[](int64 row) { return data[row]; }
    const T* operator[](int64 row) const { return data[row]; }
};

template <typename T>
struct quat_t {
    T x{}, y{}, z{}, w{};
    T& operator[](int64 i) { return i == 0 ? x : i == 1 ? y : i == 2 ? z : w; }
    const T& operator[](int64 i) const { return i == 0 ? x : i == 1 ? y : i == 2 ? z : w; }
};

template <typename T>
struct transform_t {
    vec_t<3, T> p;
    quat_t<T> q;
};

// ---- operators as functions ----

template <typename T>
T add(const T& a, const T& b) {
    return T(a + b);
}
template <typename T>
T sub(const T& a, const T& b) {
    return T(a - b);
}
template <typename T>
auto mul(const T& a, const T& b) -> decltype(T(a * b)) {  // of numbers: vectors have no such operator
    return T(a * b);
}
template <int N, typename T>
vec_t<N, T> mul(const vec_t<N, T>& a, T s) {
    return a * s;
}
template <int N, typename T>
vec_t<N, T> mul(T s, const vec_t<N, T>& a) {
    return a * s;
}
template <int Rows, int Cols, typename T>
vec_t<Rows, T> mul(const mat_t<Rows, Cols, T>& a, const vec_t<Cols, T>& x) {
    vec_t<Rows, T> result;
    for (int i = 0; i < Rows; ++i)
        for (int k = 0; k < Cols; ++k) result[i] = result[i] + a[i][k] * x[k];
    return result;
}
template <int Rows, int Inner, int Cols, typename T>
mat_t<Rows, Cols, T> mul(const mat_t<Rows, Inner, T>& a, const mat_t<Inner, Cols, T>& b) {
    mat_t<Rows, Cols, T> result;
    for (int i = 0; i < Rows; ++i)
        for (int k = 0; k < Inner; ++k)
            for (int j = 0; j < Cols; ++j) result[i][j] = result[i][j] + a[i][k] * b[k][j];
    return result;
}

// ---- rotations ----

// The inverse of a unit quaternion.
template <typename T>
quat_t<T> quat_inverse(const quat_t<T>& q) {
    return {T(-q.x), T(-q.y), T(-q.z), q.w};
}
// The columns are the rotated axes, as those of wp.quat_to_matrix in kernels.
template <typename T>
mat_t<3, 3, T> quat_to_matrix(const quat_t<T>& q) {
    const T two(2);
    const T diagonal = two * q.w * q.w - T(1);
    mat_t<3, 3, T> m;
    m[0][0] = diagonal + two * q.x * q.x;
    m[0][1] = two * (q.x * q.y - q.z * q.w);
    m[0][2] = two * (q.x * q.z + q.y * q.w);
    m[1][0] = two * (q.x * q.y + q.z * q.w);
    m[1][1] = diagonal + two * q.y * q.y;
    m[1][2] = two * (q.y * q.z - q.x * q.w);
    m[2][0] = two * (q.x * q.z - q.y * q.w);
    m[2][1] = two * (q.y * q.z + q.x * q.w);
    m[2][2] = diagonal + two * q.z * q.z;
    return m;
}
template <typename T>
vec_t<3, T> transform_get_translation(const transform_t<T>& t) {
    return t.p;
}
template <typename T>
quat_t<T> transform_get_rotation(const transform_t<T>& t) {
    return t.q;
}

// A view of memory with N dimensions; strides in bytes. The data of one that was passed as None is null. As a pointer
// it is its data, which knows no strides.
template <typename T, int N = 1>
struct array_t {
    T* data = nullptr;
    T* grad = nullptr;
    int64 shape[4] = {};
    int64 strides[4] = {};

    explicit operator bool() const { return data != nullptr; }
    operator T*() const { return data; }
    template <typename Index>  // an exact match, so that the pointer's own operator is none
    decltype(auto) operator[](Index i) const {
        T* const part = at(data, i);
        if constexpr (N == 1) {
            return *part;
        } else {
            array_t<T, N - 1> rest;
            rest.data = part;
            rest.grad = grad ? at(grad, i) : nullptr;
            for (int axis = 1; axis < N; ++axis) {
                rest.shape[axis - 1] = shape[axis];
                rest.strides[axis - 1] = strides[axis];
            }
            return rest;
        }
    }
    template <typename... Indices>
    T& operator()(Indices... indices) const {
        static_assert(sizeof...(Indices) == N, "one index for each dimension");
        int64 offset = 0;
        int axis = 0;
        ((offset += int64(indices) * strides[axis++]), ...);
        return *reinterpret_cast<T*>(reinterpret_cast<char*>(data) + offset);
    }

private:
    template <typename P>
    P* at(P* from, int64 i) const {
        return reinterpret_cast<P*>(reinterpret_cast<char*>(from) + i * strides[0]);
    }
};

// The address of an element.
template <typename T, int N, typename... Indices>
T* address(const array_t<T, N>& array, Indices... indices) {
    return &array(indices...);
}

// ---- atomics: each returns the old value ----

namespace detail {

#if defined(__CUDA__) && defined(WEFT_ADJOINT)
// Memory of the thread stands for gradients that are not there (detail::Gradient). GPUs have no atomics on it.
inline bool is_own(const void* place) { return __nvvm_isspacep_local(place); }
#else
inline bool is_own(const void*) { return false; }
#endif

// Replaces the value by combine(value).
template <typename T, typename Combine>
T atomic_update(T* place, Combine combine) {
    T old, made;
    if (is_own(place)) {
        old = *place;
        *place = combine(old);
        return old;
    }
    __atomic_load(place, &old, __ATOMIC_RELAXED);
    do {
        made = combine(old);
    } while (!__atomic_compare_exchange(place, &old, &made, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return old;
}

template <typename T>
inline constexpr bool is_integer = false;
template <typename T>
inline constexpr bool adds_atomically = is_integer<T>;  // by an instruction
#define WEFT_INTEGER(T) \
    template <>         \
    inline constexpr bool is_integer<T> = true;
WEFT_INTEGER(int)
WEFT_INTEGER(unsigned)
WEFT_INTEGER(long)
WEFT_INTEGER(unsigned long)
WEFT_INTEGER(long long)
WEFT_INTEGER(unsigned long long)
#undef WEFT_INTEGER
#if defined(__CUDACC_RTC__) || (defined(__CUDA__) && __clang_major__ >= 16)
template <>
inline constexpr bool adds_atomically<float> = true;
template <>
inline constexpr bool adds_atomically<double> = true;
#endif

}  // namespace detail

template <typename T>
T atomic_add(T* place, T value) {
    if constexpr (detail::adds_atomically<T>)
        if (!detail::is_own(place)) return __atomic_fetch_add(place, value, __ATOMIC_RELAXED);
    return detail::atomic_update(place, [=](T old) { return T(old + value); });
}
template <typename T>
T atomic_sub(T* place, T value) {
    return atomic_add(place, T(-value));
}
template <typename T>
T atomic_min(T* place, T value) {
    if constexpr (detail::is_integer<T>)
        if (!detail::is_own(place)) return __atomic_fetch_min(place, value, __ATOMIC_RELAXED);
    return detail::atomic_update(place, [=](T old) { return min(old, value); });
}
template <typename T>
T atomic_max(T* place, T value) {
    if constexpr (detail::is_integer<T>)
        if (!detail::is_own(place)) return __atomic_fetch_max(place, value, __ATOMIC_RELAXED);
    return detail::atomic_update(place, [=](T old) { return max(old, value); });
}
template <typename T>
T atomic_exch(T* place, T value) {
    T old;
    if (detail::is_own(place)) return detail::atomic_update(place, [=](T) { return value; });
    __atomic_exchange(place, &value, &old, __ATOMIC_RELAXED);
    return old;
}
template <typename T>
T atomic_cas(T* place, T compared, T value) {
    if (detail::is_own(place))
        return detail::atomic_update(place, [=](T old) { return old == compared ? value : old; });
    __atomic_compare_exchange(place, &compared, &value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return compared;  // now the old value
}

// With CUDA's names and types: overloads, so that arguments convert as they do there.
#define WEFT_ATOMIC(name, ours, T) \
    inline T name(T* place, T value) { return ours(place, value); }
#define WEFT_ATOMIC_BITS(name, builtin, T) \
    inline T name(T* place, T value) { return __atomic_fetch_##builtin(place, value, __ATOMIC_RELAXED); }
#define WEFT_ATOMICS(T)                   \
    WEFT_ATOMIC(atomicAdd, atomic_add, T) \
    WEFT_ATOMIC(atomicSub, atomic_sub, T) \
    WEFT_ATOMIC(atomicExch, atomic_exch, T)
#define WEFT_ATOMICS_OF_INTEGERS(T)       \
    WEFT_ATOMICS(T)                       \
    WEFT_ATOMIC(atomicMin, atomic_min, T) \
    WEFT_ATOMIC(atomicMax, atomic_max, T) \
    WEFT_ATOMIC_BITS(atomicAnd, and, T)   \
    WEFT_ATOMIC_BITS(atomicOr, or, T)     \
    WEFT_ATOMIC_BITS(atomicXor, xor, T)   \
    inline T atomicCAS(T* place, T compared, T value) { return atomic_cas(place, compared, value); }
#if defined(__CUDACC_RTC__)  // NVRTC has the others
WEFT_ATOMIC(atomicSub, atomic_sub, float)
WEFT_ATOMIC(atomicSub, atomic_sub, double)
WEFT_ATOMIC(atomicExch, atomic_exch, double)
WEFT_ATOMICS_OF_INTEGERS(long)
WEFT_ATOMICS_OF_INTEGERS(unsigned long)
WEFT_ATOMICS(long long)
WEFT_ATOMIC(atomicSub, atomic_sub, unsigned long long)
inline long long atomicCAS(long long* place, long long compared, long long value) {
    return atomic_cas(place, compared, value);
}
#else
WEFT_ATOMICS(float)
WEFT_ATOMICS(double)
WEFT_ATOMICS_OF_INTEGERS(int)
WEFT_ATOMICS_OF_INTEGERS(unsigned)
WEFT_ATOMICS_OF_INTEGERS(long)
WEFT_ATOMICS_OF_INTEGERS(unsigned long)
WEFT_ATOMICS_OF_INTEGERS(long long)
WEFT_ATOMICS_OF_INTEGERS(unsigned long long)
#endif
#undef WEFT_ATOMIC
#undef WEFT_ATOMIC_BITS
#undef WEFT_ATOMICS
#undef WEFT_ATOMICS_OF_INTEGERS

#if !defined(__CUDACC_RTC__)
// Counts up to `last`, and down from it; both go round.
inline unsigned atomicInc(unsigned* place, unsigned last) {
    return detail::atomic_update(place, [=](unsigned old) { return old >= last ? 0u : old + 1u; });
}
inline unsigned atomicDec(unsigned* place, unsigned last) {
    return detail::atomic_update(place, [=](unsigned old) { return old == 0u || old > last ? last : old - 1u; });
}

// ---- bits, with CUDA's names ----

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x ? __builtin_clz(unsigned(x)) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)(x)) : 64; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __brev(unsigned x) { return __builtin_bitreverse32(x); }
inline unsigned long long __brevll(unsigned long long x) { return __builtin_bitreverse64(x); }
inline int __float_as_int(float x) { return int(detail::bits_of(x)); }
inline unsigned __float_as_uint(float x) { return detail::bits_of(x); }
inline float __int_as_float(int x) { return detail::float_of(uint32(x)); }
inline float __uint_as_float(unsigned x) { return detail::float_of(x); }
#endif

// ---- gradients ----

namespace detail {

// An adjoint snippet's gradient of an array. If the array has none, all elements are one number of the thread, so that
// the snippet may read zero from it and add to it.
template <typename T, int N>
struct Gradient {
    T nothing{};
    array_t<T, N> of(array_t<T, N> gradient) {
        if (gradient.data) return gradient;
        gradient.data = &nothing;
        for (int axis = 0; axis < N; ++axis) gradient.strides[axis] = 0;
        return gradient;
    }
};

}  // namespace detail

#define WEFT_NAMED(suffix, T)         \
    using vec2##suffix = vec_t<2, T>; \
    using vec3##suffix = vec_t<3, T>; \
    using vec4##suffix = vec_t<4, T>;
WEFT_NAMED(b, int8)
WEFT_NAMED(ub, uint8)
WEFT_NAMED(s, int16)
WEFT_NAMED(us, uint16)
WEFT_NAMED(i, int32)
WEFT_NAMED(ui, uint32)
WEFT_NAMED(l, int64)
WEFT_NAMED(ul, uint64)
WEFT_NAMED(h, float16)
WEFT_NAMED(f, float32)
WEFT_NAMED(d, float64)
WEFT_NAMED(, float32)
#undef WEFT_NAMED
#define WEFT_NAMED(suffix, T)                   \
    using mat22##suffix = mat_t<2, 2, T>;       \
    using mat33##suffix = mat_t<3, 3, T>;       \
    using mat44##suffix = mat_t<4, 4, T>;       \
    using quat##suffix = quat_t<T>;             \
    using transform##suffix = transform_t<T>;   \
    using spatial_vector##suffix = vec_t<6, T>; \
    using spatial_matrix##suffix = mat_t<6, 6, T>;
WEFT_NAMED(h, float16)
WEFT_NAMED(f, float32)
WEFT_NAMED(d, float64)
WEFT_NAMED(, float32)
#undef WEFT_NAMED

}  // namespace wp
