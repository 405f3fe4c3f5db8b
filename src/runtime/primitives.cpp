#include "runtime/primitives.h"

#include <string>

#include "runtime/bytes.h"
#include "support/error.h"

namespace weft::runtime {

namespace {

void add_floats(Type type, std::int64_t offset, std::vector<FloatsOfElement>& found) {
    if (type.is_struct()) {
        for (const Type::Field& field : type.fields()) add_floats(field.type, offset + field.offset, found);
    } else if ((type.is_scalar() || type.is_numeric_aggregate()) && info(type.scalar()).is_float()) {
        found.push_back({offset, type.scalar(), type.components()});
    }
}

}  // namespace

std::vector<FloatsOfElement> floats_of(Type dtype) {
    std::vector<FloatsOfElement> found;
    add_floats(dtype, 0, found);
    return found;
}

void check_segment(std::int64_t number, Segment segment, std::int64_t count) {
    if (segment.begin >= 0 && segment.begin <= segment.end && segment.end <= count) return;
    throw UsageError("segmented_sort_pairs()",
                     "segment " + std::to_string(number) + " goes from " + std::to_string(segment.begin) + " to " +
                         std::to_string(segment.end) + ", expected 0 <= start <= end <= " + std::to_string(count),
                     ErrorCategory::value);
}

void Primitives::encode_and_count_runs(const Array& values, std::int64_t count, const Array& run_values,
                                       const Array& run_lengths, const Array& run_count) {
    const auto runs = static_cast<std::int32_t>(encode_runs(values, count, run_values, run_lengths));
    fill(run_count, &runs);
}

void check_room_for_runs(std::int64_t room, std::int64_t runs, const char* name) {
    if (room >= runs) return;
    throw UsageError("runlength_encode()",
                     "'" + std::string(name) + "' has " + std::to_string(room) + " elements, and there are " +
                         std::to_string(runs) + " runs",
                     ErrorCategory::value);
}

void throw_long_run(std::int64_t start, std::int64_t length) {
    throw UsageError("runlength_encode()",
                     "the run that begins at " + std::to_string(start) + " has " + std::to_string(length) +
                         " elements, which does not fit the int32 of 'run_lengths'",
                     ErrorCategory::value);
}

}  // namespace weft::runtime
