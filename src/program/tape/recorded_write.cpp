#include "program/tape/recorded_write.h"

#include "program/host/host.h"
#include "program/host/settings.h"
#include "program/launch/gradient_claim.h"
#include "program/launch/nan_check.h"
#include "program/tape/gradient_memory.h"
#include "runtime/array_copies.h"
#include "runtime/copy_plan.h"
#include "runtime/primitives.h"
#include "runtime/recording.h"
#include "support/error.h"

namespace weft::program {

namespace {

Extent extent_of(const runtime::Array& array) {
    const auto [begin, end] = array.extent();
    return {begin, end};
}

// Adds now, or in a capture when the graph runs.
void add(const runtime::Array& into, const runtime::Array& what) {
    if (runtime::Recording* const recording = runtime::current_recording(*into.device))
        recording->add("add", [into, what] { into.device->primitives().add(into, what); }, {});
    else
        into.device->primitives().add(into, what);
}

// `into` and `gradient` have the same shape and dtype.
void carry_back(const runtime::Array& into, const runtime::Array& gradient) {
    const bool same_device = into.device == gradient.device;
    if (same_device && !runtime::overlap(into, gradient)) {
        add(into, gradient);
        runtime::zero(gradient);
        return;
    }
    const runtime::Array taken = runtime::clone(gradient, *into.device);
    runtime::zero(gradient);
    add(into, taken);
}

}  // namespace

void reverse_copy(const Variable& to, const Variable* from) {
    if (!to.gradient) return;
    const runtime::Array gradient = gradient_to_read(to);
    if (!from || !from->gradient) {
        const GradientClaim claim({extent_of(gradient)});
        clear_gradient(to);
        return;
    }
    if (!runtime::plan_copy(to.array, to.array).writes_once())
        throw UsageError("Tape.backward()",
                         "a copy to an array of shape " + runtime::shape_text(to.array.shape()) +
                             " that shows some elements several times: which of those copied is left there is not "
                             "known, and so is its gradient. help: copy to an array of its own");
    runtime::Array into = gradient_to_read(*from);
    into.dtype = gradient.dtype;  // such as a matrix with as many numbers as the vector
    NanCheck check;
    const bool checks = settings().verify_fp;
    if (checks) check.watch("source", into);
    {
        const GradientClaim claim({extent_of(into), extent_of(gradient)});
        GradientWrites writes(2);
        writes.begin(*from, /*clears=*/false);
        writes.begin(to, /*clears=*/!runtime::overlap(into, gradient));
        without_host(gradient.size_bytes(), [&] { carry_back(into, gradient); });
        writes.done();
    }
    runtime::count_write(to.gradient);
    runtime::count_write(from->gradient);
    if (checks) check.check("Tape.backward()", "the backward pass of a copy", "the gradient of ");
}

void RecordedWrite::for_each_array(const Visit& visit) const {
    visit(*to_, true);
    if (from_) visit(*from_, false);
}

std::vector<TapeEntry::Use> RecordedWrite::uses() const {
    std::vector<Use> found{{to_, 0, false, true, true}};
    if (from_) found.push_back({from_, 1, true, false, false});
    return found;
}

std::string RecordedWrite::use_text(const Use& use) const {
    return use.index == 0 ? "the destination of a copy" : "the source of a copy";
}

std::string RecordedWrite::text() const {
    return (from_ ? "<copy of " : "<write of ") + runtime::shape_text(to_->array.shape()) + ">";
}

}  // namespace weft::program
