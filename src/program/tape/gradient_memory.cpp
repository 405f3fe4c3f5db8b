#include "program/tape/gradient_memory.h"

#include <algorithm>
#include <cstdint>
#include <span>

#include "program/host/host.h"
#include "runtime/array_copies.h"
#include "runtime/bytes.h"
#include "runtime/recording.h"
#include "support/error.h"

namespace weft::program {
namespace {

bool checks_known_zeros = false;

// The gradient's bytes, as offsets in its buffer.
runtime::ByteRange bytes_of(const Variable& of) {
    const auto [low, high] = of.array.extent();
    // Differences of integers, which wrap: an array without elements may have no address.
    const std::uintptr_t before = of.array.address() - reinterpret_cast<std::uintptr_t>(low);
    const std::uintptr_t first = reinterpret_cast<std::uintptr_t>(of.array.view.grad) - before -
                                 reinterpret_cast<std::uintptr_t>(of.gradient->data);
    return {static_cast<std::int64_t>(first), static_cast<std::int64_t>(first) + (high - low)};
}

bool is_float(Type dtype) {
    return (dtype.is_scalar() || dtype.is_numeric_aggregate()) && info(dtype.scalar()).is_float();
}

bool reads_numbers(const runtime::Array& gradient) {
    if (gradient.size() == 0) return false;
    const runtime::Array packed = runtime::contiguous(runtime::on_host(gradient));
    const std::span bytes(runtime::host_data(packed), static_cast<std::size_t>(packed.size_bytes()));
    const auto is_set = [](std::byte byte) { return byte != std::byte{0}; };
    auto at = std::ranges::find_if(bytes, is_set);
    if (!is_float(gradient.dtype)) return at != bytes.end();
    const Scalar scalar = gradient.dtype.scalar();
    const auto size = static_cast<std::ptrdiff_t>(info(scalar).bytes());
    while (at != bytes.end()) {
        const auto number = bytes.begin() + (at - bytes.begin()) / size * size;
        if (read_scalar(scalar, &*number).f != 0.0) return true;  // true for -0 too
        at = std::find_if(number + size, bytes.end(), is_set);
    }
    return false;
}

}  // namespace

void GradientWrites::begin(const Variable& of, bool clears) {
    Write& made = all_.emplace_back(Write{of.gradient});
    runtime::Zeros& zeros = of.gradient->zeros;
    // A captured graph's writes are not reported: drop the zero range.
    if (runtime::current_recording(*of.array.device)) zeros.forget();
    if (!zeros.is_known()) return;
    made.is_told = true;
    made.clears = clears && of.array.is_contiguous();  // gaps are not cleared
    made.bytes = bytes_of(of);
    zeros.begin(made.bytes, this);
}

GradientWrites::~GradientWrites() {
    for (const Write& one : all_)
        if (one.is_told) one.memory->zeros.end(one.bytes, this, is_done_ && one.clears);
}

bool is_known_zero(const Variable& of) {
    if (runtime::current_recording(*of.array.device)) of.gradient->zeros.forget();
    if (!of.gradient->zeros.is_known() || !of.gradient->zeros.hold(bytes_of(of))) return false;
    WEFT_CHECK(!checks_known_zeros || !reads_numbers(gradient_to_read(of)),
               "a gradient of shape " + runtime::shape_text(of.array.shape()) + " is taken to be zero, and is not");
    return true;
}

// During a capture the values do not exist yet, and may be anything.
bool has_numbers(const Variable& of) {
    if (runtime::current_recording(*of.array.device)) return true;
    return !is_known_zero(of) && reads_numbers(gradient_to_read(of));
}

void clear_gradient(const Variable& of) {
    if (is_known_zero(of)) return;
    GradientWrites write;
    write.begin(of, /*clears=*/true);
    const runtime::Array gradient = gradient_to_read(of);
    without_host(gradient.size_bytes(), [&] { runtime::zero(gradient); });
    write.done();
    runtime::count_write(of.gradient);
}

void check_known_zeros(bool on) { checks_known_zeros = on; }

}  // namespace weft::program
