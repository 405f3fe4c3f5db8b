// The machine code reports the number of a check. KernelEntry::sites gives the operation of that check. The IR of the
// debug build has the rest: line, names, and the calls through which the operation was inlined.
#include "program/launch/fault.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "ir/walk.h"
#include "runtime/handles.h"
#include "support/error.h"
#include "types/objects.h"

namespace weft::program {
namespace {

using ir::CallLocation;
using ir::Operation;
using ir::Value;

// The name of a value in the function that was inlined at `place` (null: in the kernel); "" if it has none.
const std::string& name_in(const Value& value, const CallLocation* place) {
    if (!place) return value.name;
    static const std::string nothing;
    for (const auto& [argument, name] : place->arguments)
        if (argument == &value) return name;
    // A local of the function; a value from outside that is no argument has another function's name.
    return value.definition && value.definition->inlined == place ? value.name : nothing;
}

// A value as the user wrote it, without the indices: "points", "args.points", "grid[...].cells"; "" if it has no name
// to start with.
std::string path_of(const Value& value, const CallLocation* place) {
    if (const std::string& name = name_in(value, place); !name.empty()) return name;
    if (!value.definition || value.definition->operands.empty()) return {};
    const Operation& operation = *value.definition;
    const Value& whole = *operation.operands[0];
    if (operation.op == ir::Op::load || operation.op == ir::Op::view || operation.op == ir::Op::slice) {
        const std::string path = path_of(whole, place);
        return path.empty() ? path : path + "[...]";
    }
    if (operation.op == ir::Op::components) return path_of(whole, place);
    if (operation.op != ir::Op::extract && operation.op != ir::Op::member) return {};
    std::string text = path_of(whole, place);
    Type type = operation.op == ir::Op::member ? whole.type.element() : whole.type;
    for (const std::int64_t field : operation.ints) {
        if (text.empty() || !type.is_struct()) return text;
        const Type::Field& found = type.fields()[static_cast<std::size_t>(field)];
        text += "." + found.name;
        type = found.type;
    }
    return text;
}

struct Argument {
    const ArrayView* view = nullptr;
    Type type;
};

// The array argument of the launch that this array is, or is a part of; null for one that was loaded from memory.
Argument argument_of(const CompiledKernel& kernel, const Value& array, const std::byte* block) {
    const auto& parameters = kernel.module->functions.front()->parameters();
    std::vector<std::int64_t> path;  // of fields, the outermost last
    const Value* value = &array;
    while (const Operation* definition = value->definition) {
        const bool same_memory = definition->op == ir::Op::view || definition->op == ir::Op::slice ||
                                 definition->op == ir::Op::components || definition->op == ir::Op::member;
        if (!same_memory && definition->op != ir::Op::extract) return {};
        if (definition->op == ir::Op::extract)
            path.insert(path.end(), definition->ints.rbegin(), definition->ints.rend());
        value = definition->operands[0];
    }
    const auto at = std::find(parameters.begin(), parameters.end(), value);
    if (at == parameters.end()) return {};
    std::int64_t offset = kernel.layout.offsets[static_cast<std::size_t>(at - parameters.begin())];
    Type type = value->type;
    for (; !path.empty(); path.pop_back()) {
        if (!type.is_struct()) return {};
        const Type::Field& field = type.fields()[static_cast<std::size_t>(path.back())];
        offset += field.offset;
        type = field.type;
    }
    if (!type.is_array()) return {};
    return {reinterpret_cast<const ArrayView*>(block + offset), type};
}

// An array without elements still has strides; None has nothing.
bool is_none(const ArrayView* view) {
    const auto zero = [](std::int64_t n) { return n == 0; };
    return view && !view->data && std::ranges::all_of(view->shape, zero) && std::ranges::all_of(view->strides, zero);
}

std::string thread_text(const std::int64_t (&thread)[kMaxDims], int tid_rank) {
    std::string text = "(";
    const int rank = std::max(tid_rank, 1);
    for (int axis = 0; axis < rank; ++axis) text += (axis ? ", " : "") + std::to_string(thread[axis]);
    return text + (rank == 1 ? ",)" : ")");
}
std::string thread_text(const Fault& fault, int tid_rank) { return thread_text(fault.thread, tid_rank); }

// Which element of an array, or of its gradient, lies at an address: "[3, 0]"; "" if none does.
std::string element_text(const ArrayView& view, Type array, bool of_gradient, std::int64_t address) {
    std::int64_t offset =
        address - static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(of_gradient ? view.grad : view.data));
    std::vector<int> axes;
    for (int axis = 0; axis < array.ndim(); ++axis) {
        axes.push_back(axis);
        if (view.strides[axis] < 0) offset -= (view.shape[axis] - 1) * view.strides[axis];
    }
    std::ranges::stable_sort(axes, [&](int a, int b) { return std::abs(view.strides[a]) > std::abs(view.strides[b]); });
    std::vector<std::int64_t> indices(axes.size(), 0);
    for (const int axis : axes) {
        const std::int64_t stride = std::abs(view.strides[axis]);
        if (stride == 0) continue;
        const std::int64_t at = std::clamp<std::int64_t>(offset / stride, 0, view.shape[axis] - 1);
        offset -= at * stride;
        indices[static_cast<std::size_t>(axis)] = view.strides[axis] < 0 ? view.shape[axis] - 1 - at : at;
    }
    if (offset < 0 || offset >= array.element().size_bytes()) return {};
    std::string text;
    for (const std::int64_t index : indices) text += (text.empty() ? "[" : ", ") + std::to_string(index);
    return text + "]";
}

// The element of an argument that a noted access touches, as the user wrote it: "'x'[3]", "the gradient of 'x'[3]".
std::string accessed_text(const CompiledKernel& kernel, const Operation& access, std::int64_t address,
                          const std::byte* block) {
    const Value* array = access.operands[0];
    const Value* const gradient = ir::gradient_holding(array);
    if (gradient) array = gradient->definition->operands[0];
    const std::string path = path_of(*array, access.inlined);
    std::string text = gradient ? "the gradient of " : "";
    text += path.empty() ? "an array" : "'" + path + "'";
    const Argument argument = argument_of(kernel, *array, block);
    return argument.view ? text + element_text(*argument.view, argument.type, gradient != nullptr, address) : text;
}

// Text for an operation that reads or writes memory.
const char* access_text(const Operation& access) { return access.op == ir::Op::store ? "written" : "read"; }

// One note for each call on the way from the kernel to the operation, the innermost first.
std::vector<Note> notes_of(const Operation& operation, const Value* array) {
    std::vector<Note> notes;
    for (const CallLocation* place = operation.inlined; place; place = place->outer) {
        std::string text = "'" + place->function + "' is called here";
        if (array) {
            const std::string inside = path_of(*array, place), outside = path_of(*array, place->outer);
            if (!inside.empty() && !outside.empty()) text += ", with '" + outside + "' as '" + inside + "'";
        }
        notes.push_back({Note::Kind::note, std::move(text), place->span});
    }
    return notes;
}

std::string quoted_or(const std::string& name, const std::string& otherwise) {
    return name.empty() ? otherwise : "'" + name + "'";
}

// The function in whose text the operation stands; empty for the kernel itself.
std::string function_of(const ir::Module& module, const Operation& operation) {
    if (operation.inlined) return operation.inlined->function;
    const ir::Region* region = operation.parent;
    while (region->owner) region = region->owner->parent;
    for (const auto& function : module.functions)
        if (&function->body == region && !function->is_kernel) return function->name;
    return {};
}

// The operation that a check belongs to.
const Operation& operation_at(const CompiledKernel& kernel, std::int32_t site) {
    const std::vector<std::int32_t>& sites = kernel.description.sites;
    WEFT_CHECK(kernel.module && site >= 0 && site < static_cast<std::int32_t>(sites.size()),
               "a kernel reported a fault at an unknown place");
    const auto number = static_cast<std::size_t>(sites[static_cast<std::size_t>(site)]);
    return *ir::numbered_operations(*kernel.module, *kernel.module->functions.front()).at(number);
}
const Operation& faulty_operation(const CompiledKernel& kernel, const Fault& fault) {
    return operation_at(kernel, fault.site);
}

// Two threads that access the same bytes: the line of each.
[[noreturn]] void throw_race(const CompiledKernel& kernel, const Fault& fault, const std::byte* block,
                             const std::string& where) {
    const Operation &second = operation_at(kernel, fault.site), &first = operation_at(kernel, fault.axis);
    std::int64_t coordinates[kMaxDims];
    std::memcpy(coordinates, fault.message, sizeof coordinates);
    const std::string other = "thread " + thread_text(coordinates, kernel.description.tid_rank);
    std::vector<Note> notes = notes_of(second, second.operands[0]);
    notes.push_back({Note::Kind::note, std::string(access_text(first)) + " by " + other + " here", first.span});
    for (Note& note : notes_of(first, first.operands[0])) notes.push_back(std::move(note));
    throw UsageError("launch()", second.span,
                     "race: " + accessed_text(kernel, second, fault.index, block) + " is " + access_text(second) +
                         " here, and " + access_text(first) + " by " + other + where,
                     notes, ErrorCategory::runtime);
}

}  // namespace

std::string no_object_text(const Fault& fault, const std::string& name) {
    const auto kind = static_cast<ObjectKind>(fault.size);
    const auto id = static_cast<std::uint64_t>(fault.index);
    const std::string expected = object_name(kind);
    const std::string what =
        "the id " + (name.empty() ? std::string() : "'" + name + "' ") + "(" + std::to_string(id) + ") names ";
    for (int other = 1; other <= kObjectKinds; ++other) {
        if (!runtime::spatial::is_object(id, static_cast<ObjectKind>(other))) continue;
        return what + "a " + object_name(static_cast<ObjectKind>(other)) + ", where that of a " + expected +
               " is expected";
    }
    return what + "no " + expected + ". help: a " + expected +
           " has to live as long as kernels use its id; pass the `id` of one that is there";
}

std::string indexed_name(const CompiledKernel& kernel, const Fault& fault) {
    const Operation& operation = faulty_operation(kernel, fault);
    return path_of(*operation.operands[0], operation.inlined);
}

Writer writer(const CompiledKernel& kernel, const Fault& not_finite) {
    const Operation& operation = faulty_operation(kernel, not_finite);
    return {operation.span, thread_text(not_finite, kernel.description.tid_rank), notes_of(operation, nullptr)};
}

void throw_fault(const CompiledKernel& kernel, const Fault& fault, const std::byte* block) {
    const KernelEntry& entry = kernel.description;
    if (!kernel.module && static_cast<FaultKind>(fault.kind) == FaultKind::null_array)  // compiled ahead of time
        throw UsageError("launch()",
                         "an array that kernel '" + entry.name + "' indexes is None or empty, in thread " +
                             thread_text(fault, entry.tid_rank),
                         ErrorCategory::value);
    if (!kernel.module && static_cast<FaultKind>(fault.kind) == FaultKind::raised)
        throw UsageError("launch()", std::string(fault.message) + ", in kernel '" + entry.name + "', in thread " +
                                         thread_text(fault, entry.tid_rank));
    const Operation& operation = faulty_operation(kernel, fault);
    const std::string function = function_of(*kernel.module, operation);
    const std::string where = (function.empty() ? std::string() : ", in '" + function + "'") + ", in kernel '" +
                              entry.name + "', thread " + thread_text(fault, entry.tid_rank);
    const auto raise = [&](const std::string& message, const Value* indexed, ErrorCategory category) {
        std::vector<Note> notes = notes_of(operation, indexed);
        throw UsageError("launch()", operation.span, message + where, notes, category);
    };
    switch (static_cast<FaultKind>(fault.kind)) {
        case FaultKind::bounds:
        case FaultKind::null_array: {
            const Value* const indexed = operation.operands[0];
            const std::string name = path_of(*indexed, operation.inlined);
            const bool is_array = indexed->type.is_array();
            if (const Value* gradient = is_array ? ir::gradient_holding(indexed) : nullptr;
                gradient && static_cast<FaultKind>(fault.kind) == FaultKind::null_array) {
                const std::string of = path_of(*gradient->definition->operands[0], operation.inlined);
                raise("the array " + quoted_or(of, "whose gradient is indexed here") +
                          " has no gradient. help: make it with requires_grad=True",
                      indexed, ErrorCategory::value);
            }
            if (is_array && (is_none(argument_of(kernel, *indexed, block).view) ||
                             static_cast<FaultKind>(fault.kind) == FaultKind::null_array)) {
                const ArrayView* const argument = argument_of(kernel, *indexed, block).view;
                const bool is_argument = argument != nullptr;
                if (is_argument && !is_none(argument)) {
                    raise("the array " + quoted_or(name, "indexed here") + " is empty: it has no elements to index",
                          indexed, ErrorCategory::index);
                }
                raise("the array " + quoted_or(name, "indexed here") +
                          (is_argument ? " is None: it was not passed to the launch"
                                       : " is None: nothing was assigned to it, or it is empty"),
                      indexed, ErrorCategory::value);
            }
            const std::string subject = is_array
                                            ? quoted_or(name, "an array")
                                            : quoted_or(name, "a value") + " (" + indexed->type.python_name() + ")";
            raise("index " + std::to_string(fault.index) + " is out of bounds for axis " + std::to_string(fault.axis) +
                      " of " + subject + ", which has size " + std::to_string(fault.size),
                  indexed, ErrorCategory::index);
            break;
        }
        case FaultKind::division:
            raise("integer division by zero", nullptr, ErrorCategory::zero_division);
            break;
        case FaultKind::requirement:
            raise(operation.text, nullptr, ErrorCategory::memory);
            break;
        case FaultKind::raised: {
            const std::string name = operation.text.substr(0, operation.text.find(':'));
            raise(fault.message, nullptr, category_named(name).value_or(ErrorCategory::runtime));
            break;
        }
        case FaultKind::assertion:
            raise("assertion failed" + (operation.text.empty() ? "" : ": " + operation.text), nullptr,
                  ErrorCategory::assertion);
            break;
        case FaultKind::no_object:
            raise(no_object_text(fault, path_of(*operation.operands[0], operation.inlined)), nullptr,
                  ErrorCategory::value);
            break;
        case FaultKind::race:
            throw_race(kernel, fault, block, where);
        case FaultKind::unwritten:
            raise(accessed_text(kernel, operation, fault.index, block) + " is read, and was never written",
                  operation.operands[0], ErrorCategory::value);
            break;
        case FaultKind::none:
        case FaultKind::not_finite:
            break;
    }
    throw InternalError("a kernel reported a fault of unknown kind " + std::to_string(fault.kind));
}

}  // namespace weft::program
