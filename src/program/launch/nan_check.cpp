#include "program/launch/nan_check.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "runtime/bytes.h"
#include "support/error.h"

namespace weft::program {
namespace {

using runtime::Array;

// A float inside an element: its offset, its type, and its name in messages (".position[1]").
struct FloatField {
    std::int64_t offset;
    Scalar scalar;
    std::string name;
};

void add_parts(Type type, std::int64_t offset, const std::string& name, std::vector<FloatField>& parts) {
    if (type.is_struct()) {
        for (const Type::Field& field : type.fields())
            add_parts(field.type, offset + field.offset, name + "." + field.name, parts);
    } else if ((type.is_scalar() || type.is_numeric_aggregate()) && info(type.scalar()).is_float()) {
        for (int i = 0; i < type.components(); ++i) {
            std::string component;
            if (type.is_matrix()) {
                component = "[" + std::to_string(i / type.cols()) + ", " + std::to_string(i % type.cols()) + "]";
            } else if (!type.is_scalar()) {
                component = "[" + std::to_string(i) + "]";
            }
            parts.push_back({offset + i * info(type.scalar()).bytes(), type.scalar(), name + component});
        }
    }
}

double read(const FloatField& part, const std::byte* element) {
    return read_scalar(part.scalar, element + part.offset).f;
}

// Calls visit(element, index) for all elements in C order.
template <typename Visit>
void for_each(const Array& array, Visit&& visit) {
    if (array.size() == 0) return;
    const Array readable = runtime::on_host(array);
    const std::byte* const begin = runtime::host_data(readable);
    std::vector<std::int64_t> index(static_cast<std::size_t>(array.ndim), 0);
    while (true) {
        const std::byte* at = begin;
        for (std::size_t axis = 0; axis < index.size(); ++axis) at += index[axis] * readable.view.strides[axis];
        visit(at, index);
        std::size_t axis = index.size();
        while (axis > 0 && ++index[axis - 1] == array.view.shape[axis - 1]) index[--axis] = 0;
        if (axis == 0) return;
    }
}

}  // namespace

void NanCheck::watch(std::string name, const Array& array) {
    std::vector<FloatField> parts;
    add_parts(array.dtype, 0, "", parts);
    if (parts.empty()) return;
    Watched watched{std::move(name), array, {}};
    const auto bytes = static_cast<std::size_t>(array.dtype.size_bytes());
    watched.before.reserve(bytes * static_cast<std::size_t>(array.size()));
    for_each(array, [&](const std::byte* element, const auto&) {
        watched.before.insert(watched.before.end(), element, element + bytes);
    });
    watched_.push_back(std::move(watched));
}

void NanCheck::check(const std::string& api, const std::string& subject, const std::string& what,
                     const std::optional<Writer>& first) const {
    for (const Watched& watched : watched_) {
        std::vector<FloatField> parts;
        add_parts(watched.array.dtype, 0, "", parts);
        const std::byte* before = watched.before.data();
        for_each(watched.array, [&](const std::byte* element, const std::vector<std::int64_t>& index) {
            for (const FloatField& part : parts) {
                const double now = read(part, element);
                if (std::isfinite(now) || !std::isfinite(read(part, before))) continue;
                std::string at;
                for (const std::int64_t i : index) at += (at.empty() ? "" : ", ") + std::to_string(i);
                const std::string found = std::isnan(now) ? "NaN" : now > 0 ? "inf" : "-inf";
                const std::string message = subject + " has made " + what + "'" + watched.name + "'[" + at + "]" +
                                            part.name + " " + found + " (wp.config.verify_fp is on); it was " +
                                            std::to_string(read(part, before));
                if (!first) throw UsageError(api, message);
                throw UsageError(api, first->span,
                                 message + ". Thread " + first->thread +
                                     " was the first to turn a finite number into one that is not, here",
                                 first->notes, ErrorCategory::runtime);
            }
            before += watched.array.dtype.size_bytes();
        });
    }
}

std::optional<Writer> writer_of(const CompiledKernel& compiled, const Fault& not_finite) {
    if (!not_finite.claimed) return std::nullopt;
    return writer(compiled, not_finite);
}

}  // namespace weft::program
