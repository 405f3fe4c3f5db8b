#include "program/launch/launch_names.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>

#include "ir/indices.h"
#include "ir/walk.h"
#include "program/host/host.h"
#include "program/host/settings.h"
#include "runtime/array.h"
#include "support/error.h"

namespace weft::program {

namespace {

using ir::Op;
using ir::Operation;
using ir::Value;

// The axis of tid() that this value is the coordinate of; empty if it is none.
std::optional<std::size_t> coordinate(const Value* value) {
    if (const Value* const written = ir::as_written(value)) value = written;
    if (!value->definition || value->definition->op != Op::tid) return {};
    return static_cast<std::size_t>(value->definition->ints[0]);
}

// The line at which the kernel, or a function that it calls, asks for this coordinate.
Span location_of(const ir::Module& module, std::size_t axis) {
    Span found;
    for (const auto& function : module.functions)
        ir::for_each_operation(function->body, [&](const Operation& operation) {
            if (operation.op == Op::tid && static_cast<std::size_t>(operation.ints[0]) == axis && !found)
                found = operation.span;
        });
    return found;
}

std::string counted(std::size_t number, const std::string& what) {
    return std::to_string(number) + " " + what + (number == 1 ? "" : "s");
}

// "dim (4,) has 1 extent, and kernel 'k' unpacks wp.tid() to 2 names"
std::string mismatch(const Kernel& kernel, std::span<const std::int64_t> dims) {
    return "dim " + runtime::shape_text(dims) + " has " + counted(dims.size(), "extent") + ", and kernel '" +
           kernel.name() + "' unpacks wp.tid() to " + counted(static_cast<std::size_t>(kernel.tid_names()), "name");
}

// `dims` followed by further extents.
std::string completed(std::span<const std::int64_t> dims, const std::vector<std::int64_t>& rest) {
    std::vector<std::int64_t> whole(dims.begin(), dims.end());
    whole.insert(whole.end(), rest.begin(), rest.end());
    return "dim=" + runtime::shape_text(whole);
}

// An axis of a parameter along which the kernel writes at index 0 alone.
struct LeftOut {
    std::size_t parameter, axis;
    ArrayView view;
};

std::optional<LeftOut> left_out(Kernel& kernel, const ir::Function& function, std::size_t extents,
                                const std::byte* block) {
    std::optional<LeftOut> found;
    const auto& parameters = function.parameters();
    ir::for_each_operation(function.body, [&](const Operation& operation) {
        if (found || (operation.op != Op::store && !ir::is_atomic(operation.op))) return;
        const auto array = std::find(parameters.begin(), parameters.end(), operation.operands[0]);
        if (array == parameters.end()) return;
        const auto parameter = static_cast<std::size_t>(array - parameters.begin());
        ArrayView view;
        std::memcpy(&view, block + kernel.layout().offsets[parameter], sizeof view);
        const auto ndim = static_cast<std::size_t>((*array)->type.ndim());
        for (std::size_t axis = 0; axis < ndim && axis + 1 < operation.operands.size(); ++axis) {
            const std::optional<std::size_t> name = coordinate(operation.operands[axis + 1]);
            if (!name || *name < extents || view.shape[axis] <= 1) continue;
            found = {parameter, axis, view};
            return;
        }
    });
    return found;
}

}  // namespace

void check_names(Kernel& kernel, bool debug, std::span<const std::int64_t> dims, const std::byte* block) {
    const std::vector<std::int64_t> ones(static_cast<std::size_t>(kernel.tid_names()) - dims.size(), 1);
    if (debug)
        throw UsageError("launch()", location_of(kernel.code(debug).analysed(), dims.size()),
                         mismatch(kernel, dims) + ": the last would be 0 in each thread",
                         {Note{Note::Kind::help,
                               "give dim an extent for each name; " + completed(dims, ones) + " says that 0 is meant",
                               {}}},
                         ErrorCategory::value);
    if (!kernel.is_first_with_few_dimensions()) return;
    if (!host().log || settings().log_level > static_cast<int>(LogLevel::warning)) return;
    const ir::Module& module = kernel.code(debug).analysed();
    const std::optional<LeftOut> found = left_out(kernel, *module.functions.front(), dims.size(), block);
    if (!found) return;
    const Span span = location_of(module, dims.size());
    const std::span shape(found->view.shape, static_cast<std::size_t>(kernel.types()[found->parameter].ndim()));
    host().log(LogLevel::warning,
               mismatch(kernel, dims) + (span ? " (" + span.location() + ")" : "") +
                   ": the last is 0 in each thread, and of '" + kernel.parameter_name(found->parameter) +
                   "', which has shape " + runtime::shape_text(shape) + ", only index 0 along axis " +
                   std::to_string(found->axis) + " is written. help: give dim an extent for each name; " +
                   completed(dims, ones) + " says that 0 is meant");
}

}  // namespace weft::program
