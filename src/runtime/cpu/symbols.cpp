#include "runtime/cpu/symbols.h"

#include <dlfcn.h>
#include <sleef.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>

#include "runtime/cpu/accesses.h"
#include "runtime/cpu/copy_lanes.h"
#include "runtime/cpu/fault.h"
#include "runtime/cpu/interrupts.h"
#include "runtime/cpu/library.h"
#include "runtime/cpu/stack.h"
#include "runtime/handles.h"
#include "runtime/print.h"
#include "support/error.h"
#include "types/type.h"

// The compiler's helpers, from libgcc; only their addresses are used, so the types do not matter.
#if defined(__x86_64__)
extern "C" {
void __truncsfhf2();
void __truncdfhf2();
void __extendhfsf2();
}
#endif
extern "C" {
void __powisf2();
void __powidf2();
}

namespace weft::runtime {

namespace {

// The ABI passes bfloat16 results in the low half of a vector register, in the low 16 bits of a float. libgcc has these
// functions only from version 13 on, so they are written here: round to nearest, ties to even; a NaN stays one.
float as_bfloat16(std::uint32_t single) {
    return std::bit_cast<float>(small_float::narrow(single, info(Scalar::bf16).format));
}
float truncate_float_to_bfloat16(float value) { return as_bfloat16(std::bit_cast<std::uint32_t>(value)); }
float truncate_double_to_bfloat16(double value) { return as_bfloat16(odd_float_bits(value)); }

// Without a debugger the signal would end the process, so the tracer is checked first.
void stop_in_debugger() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.starts_with("TracerPid:") && std::atol(line.c_str() + 10) != 0) std::raise(SIGTRAP);
}

template <typename Function>
void* address(Function* function) {
    return reinterpret_cast<void*>(function);
}

// The letter of a type in binary/cpu_imports.def.
template <typename T>
constexpr char letter() {
    if constexpr (std::is_void_v<T>)
        return 'v';
    else if constexpr (std::is_pointer_v<T>)
        return 'p';
    else
        return sizeof(T) == 8 ? 'l' : sizeof(T) == 4 ? 'i' : '?';
}

// Whether a function has the signature that binary/cpu_imports.def declares to code generation.
constexpr bool is_signature(std::string_view text, std::initializer_list<char> letters) {
    return std::ranges::equal(text, letters);
}
template <typename Result, typename... Parameters>
constexpr bool has_signature(std::string_view text, Result (*)(Parameters...)) {
    return is_signature(text, {letter<Result>(), '(', letter<Parameters>()..., ')'});
}
template <bool is_as_declared, typename Function>
Function* checked(Function* function) {
    static_assert(is_as_declared, "a function of binary/cpu_imports.def has another signature there");
    return function;
}

std::unordered_map<std::string_view, void*> make_table() {
    using Float1 = float(float);
    using Float2 = float(float, float);
    using Double1 = double(double);
    using Double2 = double(double, double);
    return {
#define WEFT_MATH_1(name) {#name "f", address<Float1>(::name##f)}, {#name, address<Double1>(::name)}
#define WEFT_MATH_2(name) {#name "f", address<Float2>(::name##f)}, {#name, address<Double2>(::name)}
        WEFT_MATH_1(acos),
        WEFT_MATH_1(acosh),
        WEFT_MATH_1(asin),
        WEFT_MATH_1(asinh),
        WEFT_MATH_1(atan),
        WEFT_MATH_1(atanh),
        WEFT_MATH_1(cbrt),
        WEFT_MATH_1(ceil),
        WEFT_MATH_1(cos),
        WEFT_MATH_1(cosh),
        WEFT_MATH_1(erf),
        WEFT_MATH_1(erfc),
        WEFT_MATH_1(exp),
        WEFT_MATH_1(exp2),
        WEFT_MATH_1(expm1),
        WEFT_MATH_1(fabs),
        WEFT_MATH_1(floor),
        WEFT_MATH_1(lgamma),
        WEFT_MATH_1(log),
        WEFT_MATH_1(log10),
        WEFT_MATH_1(log1p),
        WEFT_MATH_1(log2),
        WEFT_MATH_1(nearbyint),
        WEFT_MATH_1(rint),
        WEFT_MATH_1(round),
        WEFT_MATH_1(roundeven),
        WEFT_MATH_1(sin),
        WEFT_MATH_1(sinh),
        WEFT_MATH_1(sqrt),
        WEFT_MATH_1(tan),
        WEFT_MATH_1(tanh),
        WEFT_MATH_1(tgamma),
        WEFT_MATH_1(trunc),
        WEFT_MATH_1(exp10),
        WEFT_MATH_2(atan2),
        WEFT_MATH_2(copysign),
        WEFT_MATH_2(fdim),
        WEFT_MATH_2(fmax),
        WEFT_MATH_2(fmin),
        WEFT_MATH_2(fmod),
        WEFT_MATH_2(hypot),
        WEFT_MATH_2(nextafter),
        WEFT_MATH_2(pow),
        WEFT_MATH_2(remainder),
#undef WEFT_MATH_1
#undef WEFT_MATH_2
        {"fmaf", address<float(float, float, float)>(::fmaf)},
        {"fma", address<double(double, double, double)>(::fma)},
        {"ldexpf", address<float(float, int)>(::ldexpf)},
        {"ldexp", address<double(double, int)>(::ldexp)},
        {"sincosf", address<void(float, float*, float*)>(::sincosf)},
        {"sincos", address<void(double, double*, double*)>(::sincos)},
        {"memcpy", address<void*(void*, const void*, std::size_t)>(::memcpy)},
        {"memmove", address<void*(void*, const void*, std::size_t)>(::memmove)},
        {"memset", address<void*(void*, int, std::size_t)>(::memset)},
        {"memcmp", address<int(const void*, const void*, std::size_t)>(::memcmp)},
        {"__powisf2", address(__powisf2)},
        {"__powidf2", address(__powidf2)},
#if defined(__x86_64__)
        {"__truncsfhf2", address(__truncsfhf2)},
        {"__truncdfhf2", address(__truncdfhf2)},
        {"__extendhfsf2", address(__extendhfsf2)},
#endif
        {"__truncsfbf2", address(truncate_float_to_bfloat16)},
        {"__truncdfbf2", address(truncate_double_to_bfloat16)},
#define WEFT_IMPORT(symbol, signature, effects, function) \
    {#symbol, address(checked<has_signature(signature, function)>(function))},
#include "binary/cpu_imports.def"
#undef WEFT_IMPORT
    };
}

// The SLEEF library that this library is linked with; wheels may give it any name and place.
void* sleef_library() {
    static void* const handle = []() -> void* {
        Dl_info where{};
        if (dladdr(address(Sleef_sinf_u10), &where) == 0 || where.dli_fname == nullptr)
            throw InternalError("cannot tell which SLEEF library this process uses");
        void* const library = dlopen(where.dli_fname, RTLD_NOW | RTLD_NOLOAD);
        if (library == nullptr)
            throw InternalError("cannot open the SLEEF library that is already loaded: " + std::string(dlerror()));
        return library;
    }();
    return handle;
}

}  // namespace

void* find_symbol_of_process(const std::string& name) {
    if (void* const ours = find_symbol(name)) return ours;
    if (void* const found = dlsym(RTLD_DEFAULT, name.c_str())) return found;
    // The C++ library may have been loaded for this library only.
    static void* const self = []() -> void* {
        Dl_info where{};
        const bool is_known = dladdr(address(find_symbol), &where) != 0 && where.dli_fname != nullptr;
        return is_known ? dlopen(where.dli_fname, RTLD_NOW | RTLD_NOLOAD) : nullptr;
    }();
    return self == nullptr ? nullptr : dlsym(self, name.c_str());
}

void* find_symbol(const std::string& name) {
    static const auto& table = *new std::unordered_map<std::string_view, void*>(make_table());
    if (const auto found = table.find(name); found != table.end()) return found->second;
    if (name.starts_with("weft_lib_")) return find_library_function(name);
    if (name.starts_with("Sleef_")) return dlsym(sleef_library(), name.c_str());
    return nullptr;
}

}  // namespace weft::runtime
