// Launches of adjoints, as python/warp/tape.py asks for them.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "bindings/arguments.h"
#include "bindings/array.h"
#include "bindings/device.h"
#include "bindings/finite.h"
#include "bindings/launch.h"
#include "bindings/nested_arrays.h"
#include "bindings/recording.h"
#include "bindings/records.h"
#include "bindings/structs.h"
#include "bindings/types.h"
#include "bindings/values.h"
#include "ir/typing.h"
#include "program/own_gradients.h"
#include "program/settings.h"
#include "support/error.h"

namespace weft::bindings {
namespace {

using transform::Gradient;

struct Arguments {
    std::vector<PyObject*> values;
    std::size_t block_bytes;
    Block block;
    std::vector<runtime::Array> holders;
    std::vector<Gradient> gradients;

    Arguments(PyKernel& kernel, nb::list given, runtime::Device& device)
        : block_bytes(static_cast<std::size_t>(kernel.block_bytes())), block(block_bytes) {
        const auto& parameters = kernel.parameters();
        check_count(kernel, nb::len(given));
        for (std::size_t i = 0; i < parameters.size(); ++i) {
            values.push_back(nb::handle(given[i]).ptr());
            pack_argument(kernel, parameters[i], i, values.back(), device, block.data(), holders);
        }
    }

    // The block of an adjoint, of which `after` is the block with arrays as they are after the launch, and `records`
    // what the atomics of the launch gave.
    Block with_extras(const program::CompiledKernel& adjoint, const std::vector<std::byte>& after,
                      std::span<const ArrayView> records) {
        Block larger(static_cast<std::size_t>(adjoint.layout.size_bytes));
        std::memcpy(larger.data(), block.data(), block_bytes);
        program::point_extras(adjoint, larger.data(), after.data(), records);
        return larger;
    }

    ArrayView* view(const ParameterPlan& parameter) {
        if (parameter.filler != ParameterPlan::Filler::array) return nullptr;
        return reinterpret_cast<ArrayView*>(block.data() + parameter.offset);
    }

    // An array that is more than None.
    bool is_there(std::size_t i) const { return array_pointer(values[i]) != nullptr; }

    void find_gradients(PyKernel& kernel) {
        const auto& parameters = kernel.parameters();
        for (std::size_t i = 0; i < parameters.size(); ++i) {
            const ArrayView* of = view(parameters[i]);
            gradients.push_back(of && of->grad ? Gradient::used : Gradient::none);
        }
    }
};

// The kernel that a launch with these values runs.
nb::object kernel_for(nb::handle object, nb::list values) {
    PyKernel* kernel = kernel_pointer(object);
    if (!kernel) {
        throw UsageError("launch()",
                         "the kernel is " + describe(object) + ", expected a function decorated with @wp.kernel",
                         ErrorCategory::type);
    }
    if (!kernel->is_generic()) return nb::borrow(object);
    std::vector<PyObject*> given;
    for (nb::handle value : values) given.push_back(value.ptr());
    return kernel->instance_for(given);
}

void check_records(const PyKernel& kernel, const program::CompiledKernel& adjoint, std::span<const ArrayView> records) {
    for (const ir::Extra& extra : adjoint.extras) {
        if (!extra.is_recorded() || extra.of < 0 || !records.empty()) continue;
        throw UsageError("launch()",
                         "the adjoint of kernel '" + kernel.key +
                             "' needs what the atomics of the launch gave, which only a tape keeps. help: launch it in "
                             "'with tape:' and call tape.backward()");
    }
}

// The view of `with`, an array like `view`'s: the same shape and strides.
void* data_like(const ArrayView& view, nb::handle with, int ndim, const std::string& what) {
    const runtime::Array& array = array_pointer(with)->array;
    for (int axis = 0; axis < ndim; ++axis)
        WEFT_CHECK(array.view.shape[axis] == view.shape[axis] && array.view.strides[axis] == view.strides[axis],
                   what + " is laid out in another way than the array");
    return array.view.data;
}

// Those of the arrays in the block that have a copy show it from here on.
void use_copies(const std::vector<ParameterPlan>& parameters, nb::list copies, std::byte* block) {
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        const nb::handle copy = copies[i];
        if (parameters[i].filler != ParameterPlan::Filler::array || copy.is_none()) continue;
        auto* const view = reinterpret_cast<ArrayView*>(block + parameters[i].offset);
        view->data = data_like(*view, copy, parameters[i].ndim, "a copy");
    }
}

// False where it has not been run, because arguments have gradients that were not `expected`.
bool run_adjoint(nb::handle kernel_object, nb::handle dim, nb::list values, nb::list before, nb::list after,
                 nb::list records, nb::list gradients, nb::handle expected, nb::handle device_object) {
    nb::object holder = kernel_for(kernel_object, values);
    PyKernel& kernel = *kernel_pointer(holder);
    runtime::Device& device = device_from_python(device_object, "launch()");
    Arguments arguments(kernel, values, device);
    const auto& parameters = kernel.parameters();
    std::byte* const own = arguments.block.data();
    std::vector<std::byte> block_after(own, own + arguments.block_bytes);
    use_copies(parameters, after, block_after.data());
    use_copies(parameters, before, own);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        ArrayView* view = arguments.view(parameters[i]);
        const nb::handle gradient = gradients[i];
        if (view && !gradient.is_none()) view->grad = data_like(*view, gradient, parameters[i].ndim, "a gradient");
    }
    arguments.find_gradients(kernel);
    for (std::size_t i = 0; !expected.is_none() && i < parameters.size(); ++i) {
        if (arguments.gradients[i] != Gradient::none && !nb::cast<bool>(expected[i])) return false;
        if (!nb::handle(gradients[i]).is_none()) arguments.gradients[i] = Gradient::retained;
    }

    const std::vector<ArrayView> recorded = views_of(records);
    const Dimensions dims = launch_dimensions(kernel, dim.ptr(), arguments.block.data());
    Variant variant = kernel.configured();
    variant.launch_rank = program::launch_rank(dims.span());
    variant.nulls = kernel.has_null(arguments.block.data());
    const program::AdjointReads& reads = kernel.adjoint_reads(variant, arguments.gradients);
    const program::Grid grid = program::make_grid(dims.span(), reads.tid_rank, kernel.key);
    std::vector<program::GradientView> scattered;
    for (const auto& [parameter, additions] : reads.scattered) {
        const ParameterPlan& plan = parameters[static_cast<std::size_t>(parameter)];
        scattered.push_back({arguments.view(plan), plan.type, additions});
    }
    variant.single = grid.count == 1;
    // Which worker adds what to a gradient of its own differs from run to run.
    variant.exclusive = !variant.serial && !variant.finite && !program::settings().deterministic &&
                        program::pays_to_own(scattered, grid.count);
    const program::CompiledKernel* compiled = &kernel.adjoint(variant, arguments.gradients);
    check_records(kernel, *compiled, recorded);
    Block block = arguments.with_extras(*compiled, block_after, recorded);
    variant.strided = program::needs_strided(*compiled, block.data());
    variant.overlapping = program::has_gradient_overlap(*compiled, block.data());
    variant.repeating = program::repeats_elements(*compiled, block.data());
    if (variant.strided || variant.overlapping || variant.repeating) {
        variant.exclusive &= !variant.overlapping;
        compiled = &kernel.adjoint(variant, arguments.gradients);
        block = arguments.with_extras(*compiled, block_after, recorded);
    }
    const std::vector<runtime::BufferPtr> copies = program::make_copies(*compiled, block.data(), device);
    if (!program::settings().verify_fp) {
        execute(*compiled, block.data(), grid);
        return true;
    }
    FiniteCheck check;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        const auto watch = [&](const std::string& name, nb::handle gradient) {
            if (const PyArray* array = array_pointer(gradient)) check.watch(name, array->array);
        };
        if (PyArray* array = array_pointer(values[i]))
            watch(parameters[i].name, nb::handle(gradients[i]).is_none() ? nb::handle(array->grad) : gradients[i]);
        for (const NamedArray& field : named_arrays_in(values[i]))
            watch(parameters[i].name + field.name, field.array->grad);
    }
    Fault not_finite{};
    execute(*compiled, block.data(), grid, &not_finite);
    check.check("launch()", "the adjoint of kernel '" + kernel.key + "'", "the gradient of ",
                culprit_of(*compiled, not_finite));
    return true;
}

// A kernel, or its adjoint, with tangents: `tangents` has one for each value, or None.
class WithTangents {
public:
    WithTangents(nb::handle kernel_object, nb::list values, nb::list tangents, bool of_adjoint, nb::list records,
                 nb::handle device_object)
        : holder_(kernel_for(kernel_object, values)),
          kernel_(*kernel_pointer(holder_)),
          device_(device_from_python(device_object, "jvp()")),
          of_adjoint_(of_adjoint),
          tangents_(tangents),
          records_(records),
          arguments_(kernel_, values, device_) {
        if (of_adjoint) arguments_.find_gradients(kernel_);
        const std::size_t count = kernel_.parameters().size();
        for (std::size_t i = 0; i < count; ++i) active_.push_back(!nb::handle(tangents[i]).is_none());
    }

    // The machine code that these arguments need in a launch of this rank.
    const program::CompiledKernel& compile(int launch_rank = 0) {
        Variant variant = kernel_.configured();
        variant.launch_rank = launch_rank;
        variant.nulls = kernel_.has_null(arguments_.block.data());
        variant.records = !of_adjoint_ && nb::len(records_) > 0;
        const program::CompiledKernel* compiled = &pack(variant);
        variant.strided = program::needs_strided(*compiled, block_.data());
        variant.overlapping = of_adjoint_ ? program::has_gradient_overlap(*compiled, block_.data())
                                          : program::has_overlap(*compiled, block_.data());
        variant.repeating = program::repeats_elements(*compiled, block_.data());
        if (variant.strided || variant.overlapping || variant.repeating) compiled = &pack(variant);
        if (of_adjoint_) check_after(*compiled);
        return *compiled;
    }

    void run(nb::handle dim, nb::list before, nb::list after) {
        const Dimensions dims = launch_dimensions(kernel_, dim.ptr(), arguments_.block.data());
        const program::CompiledKernel& compiled = compile(program::launch_rank(dims.span()));
        check_records(kernel_, compiled, views_of(records_));
        std::vector<std::byte> block_after = block_;
        use_copies(kernel_.parameters(), after, block_after.data());
        use_copies(kernel_.parameters(), before, block_.data());
        program::point_extras(compiled, block_.data(), block_after.data(), views_of(records_));
        const program::Grid grid = program::make_grid(dims.span(), compiled.description.tid_rank, kernel_.key);
        const std::vector<runtime::BufferPtr> copies = program::make_copies(compiled, block_.data(), device_);
        if (of_adjoint_) return execute(compiled, block_.data(), grid);  // on copies, which hvp() makes

        std::vector<PyObject*> moving;
        for (nb::handle tangent : tangents_) moving.push_back(tangent.ptr());
        FiniteCheck check;
        if (program::settings().verify_fp) {
            watch(check, compiled, arguments_.values, "");
            watch(check, compiled, moving, "the tangent of ");
        }
        Fault not_finite{};
        execute(compiled, block_.data(), grid, &not_finite);
        close_records(kernel_, compiled, records_);
        check.check("jvp()", "kernel '" + kernel_.key + "'", "", culprit_of(compiled, not_finite));
        count_writes(compiled, arguments_.values);
        count_writes(compiled, moving);
    }

private:
    const program::CompiledKernel& pack(Variant variant) {
        const auto& parameters = kernel_.parameters();
        const auto& compiled = kernel_.with_tangents(variant, arguments_.gradients, active_);
        block_.assign(static_cast<std::size_t>(compiled.layout.size_bytes), std::byte{0});
        std::memcpy(block_.data(), arguments_.block.data(), arguments_.block_bytes);
        for (std::size_t i = 0; i < parameters.size(); ++i) {
            if (!active_[i]) continue;
            ParameterPlan twin = parameters[i];
            twin.name = "the tangent of " + twin.name;
            twin.offset = compiled.layout.offsets[parameters.size() + i];
            PyObject* const tangent = nb::handle(tangents_[i]).ptr();
            pack_argument(kernel_, twin, i, tangent, device_, block_.data(), arguments_.holders);
        }
        // needs_strided() looks at the others as well; their contents come with the run.
        std::vector<ArrayView> records = views_of(records_);
        if (records.empty()) records.resize(compiled.extras.size());
        program::point_extras(compiled, block_.data(), block_.data(), records);
        return compiled;
    }

    // What extremes look at there has no tangent; what users' derivatives do may have.
    void check_after(const program::CompiledKernel& adjoint) {
        const int own = static_cast<int>(adjoint.effects.size());
        for (const ir::Extra& extra : adjoint.extras) {
            if (extra.kind != ir::Extra::Kind::after || extra.of < own) continue;
            const std::string& name = kernel_.parameters()[static_cast<std::size_t>(extra.of - own)].name;
            throw UsageError("hvp()", "kernel '" + kernel_.key +
                                          "' has no second derivative here: a derivative that was written "
                                          "for a function of it looks at '" +
                                          name +
                                          "' as it is after the launch. help: pass "
                                          "numbers to that function in place of the array");
        }
    }

    void watch(FiniteCheck& check, const program::CompiledKernel& compiled, const std::vector<PyObject*>& values,
               const std::string& of) {
        for (std::size_t i = 0; i < values.size(); ++i) {
            if (!compiled.effects[i].writes) continue;
            const std::string name = of + kernel_.parameters()[i].name;
            if (PyArray* array = array_pointer(values[i])) check.watch(name, array->array);
            for (const NamedArray& field : named_arrays_in(values[i]))
                check.watch(name + field.name, field.array->array);
        }
    }

    nb::object holder_;
    PyKernel& kernel_;
    runtime::Device& device_;
    const bool of_adjoint_;
    nb::list tangents_;
    nb::list records_;
    Arguments arguments_;
    std::vector<bool> active_;
    std::vector<std::byte> block_;
};

// The other lists are those of run_adjoint(); a kernel that is no adjoint fills `records`.
void run_jvp(nb::handle kernel, nb::handle dim, nb::list values, nb::list tangents, bool of_adjoint, nb::list before,
             nb::list after, nb::list records, nb::handle device) {
    WithTangents(kernel, values, tangents, of_adjoint, records, device).run(dim, before, after);
}

bool hessian_needs_launch(nb::handle kernel, nb::list values, nb::list tangents, nb::handle device) {
    const program::CompiledKernel& compiled =
        WithTangents(kernel, values, tangents, /*of_adjoint=*/true, nb::list(), device).compile();
    return std::any_of(compiled.extras.begin(), compiled.extras.end(),
                       [](const ir::Extra& extra) { return extra.of >= 0 && extra.kind != ir::Extra::Kind::copy; });
}

// Whether a grid of this shape (None: it is not known) stores all elements of the array.
bool is_overwritten(const ArrayView& view, const std::vector<int>& axes, nb::handle shape) {
    if (axes.empty() || shape.is_none()) return false;
    const auto extents = nb::cast<std::vector<std::int64_t>>(shape);
    for (std::size_t i = 0; i < axes.size(); ++i)
        if (view.shape[i] != extents[static_cast<std::size_t>(axes[i])]) return false;
    return true;
}

// Gradients that there may be by the time of the way back: those that there are, and of outputs that may get one later,
// where some input has one.
std::vector<Gradient> expected_gradients(const program::CompiledKernel& compiled, const Arguments& arguments,
                                         bool leads_on) {
    std::vector<Gradient> expected = arguments.gradients;
    const bool any = leads_on || std::any_of(expected.begin(), expected.end(),
                                             [](Gradient gradient) { return gradient != Gradient::none; });
    for (std::size_t i = 0; any && i < expected.size(); ++i) {
        const Type type = compiled.parameter_types[i];
        const bool may_get_one = type.is_array() && ir::is_smooth(type.element()) && arguments.is_there(i);
        if (compiled.effects[i].writes_itself && may_get_one && expected[i] == Gradient::none)
            expected[i] = Gradient::used;
    }
    return expected;
}

nb::tuple launch_needs(nb::handle kernel_object, nb::handle dim, nb::list values, nb::handle device_object,
                       nb::object shape) {
    nb::object holder = kernel_for(kernel_object, values);
    PyKernel& kernel = *kernel_pointer(holder);
    runtime::Device& device = device_from_python(device_object, "launch()");
    Arguments arguments(kernel, values, device);
    arguments.find_gradients(kernel);
    Variant variant = kernel.configured();
    variant.launch_rank = program::launch_rank(launch_dimensions(kernel, dim.ptr(), arguments.block.data()).span());
    const program::CompiledKernel& compiled = kernel.compiled(variant);
    const std::size_t count = compiled.effects.size();
    nb::dict nested;
    std::vector<bool> leads_on;
    for (std::size_t i = 0; i < count; ++i) {
        const Type type = compiled.parameter_types[i];
        leads_on.push_back(type.is_array() ? holds_arrays(type.element()) : holds_arrays(type));
        if (leads_on[i]) nested[nb::int_(i)] = nested_arrays(arguments.values[i]);
    }
    const auto writes_gradients = [&](const std::vector<Gradient>& gradients) {
        for (std::size_t i = 0; i < count; ++i)
            if (compiled.effects[i].writes && (leads_on[i] || gradients[i] != Gradient::none)) return true;
        return false;
    };
    variant.overlapping = program::has_gradient_overlap(compiled, arguments.block.data());

    const std::vector<Gradient> expected =
        expected_gradients(compiled, arguments, std::find(leads_on.begin(), leads_on.end(), true) != leads_on.end());
    const program::AdjointReads* reads = nullptr;
    const bool has_adjoint = kernel.options.enable_backward;
    if (has_adjoint && expected != arguments.gradients && writes_gradients(expected)) {
        // Only gradients that are there make an error of what has none, or have atomics recorded.
        try {
            reads = &kernel.adjoint_reads(variant, expected);
            if (!reads->records.empty()) reads = nullptr;
        } catch (const CompileError&) {
        }
    }
    if (reads)
        arguments.gradients = expected;
    else if (has_adjoint && writes_gradients(arguments.gradients))
        reads = &kernel.adjoint_reads(variant, arguments.gradients);
    nb::list records;
    if (reads && !reads->records.empty()) {
        if (shape.is_none()) {
            throw UsageError("Tape.record_launch()",
                             "the gradient of kernel '" + kernel.key +
                                 "' needs what its atomics give, which only a launch that the tape records keeps. "
                                 "help: launch it inside of 'with tape:'");
        }
        records = open_records(reads->records, nb::cast<std::vector<std::int64_t>>(shape), device);
    }
    nb::list before, within, after, writes, writes_within, overwrites, gradients;
    for (std::size_t i = 0; i < count; ++i) {
        const transform::Contents needed = reads ? reads->contents[i] : transform::Contents();
        before.append(needed.before);
        within.append(needed.within);
        after.append(needed.after);
        writes.append(compiled.effects[i].writes_itself);
        writes_within.append(compiled.effects[i].writes_within);
        const ArrayView* view = arguments.view(kernel.parameters()[i]);
        overwrites.append(view && !variant.overlapping && is_overwritten(*view, compiled.overwritten[i], shape));
        gradients.append(arguments.gradients[i] != Gradient::none);
    }
    const bool is_left_out = !has_adjoint && writes_gradients(expected);
    return nb::make_tuple(before, within, after, writes, writes_within, overwrites, gradients, nested, records,
                          reads != nullptr, is_left_out);
}

}  // namespace

void bind_adjoint(nb::module_& m) {
    m.def("run_adjoint", &run_adjoint, nb::arg("kernel"), nb::arg("dim").none(), nb::arg("values"), nb::arg("before"),
          nb::arg("after"), nb::arg("records"), nb::arg("gradients"), nb::arg("expected").none(),
          nb::arg("device").none(),
          "Runs the adjoint of a kernel. `before` and `after` are arrays to be read in place of the values (None: the "
          "value itself) where contents from before or after the launch are needed, `records` what its atomics gave, "
          "`gradients` arrays in place of their gradients (None: array.grad); all laid out as the values. A tape tells "
          "which gradients it `expected` when it recorded: stores leave those that are given as they are, and where an "
          "argument has one that was not expected, nothing is run, and False given back.");
    m.def("run_jvp", &run_jvp, nb::arg("kernel"), nb::arg("dim").none(), nb::arg("values"), nb::arg("tangents"),
          nb::arg("of_adjoint"), nb::arg("before"), nb::arg("after"), nb::arg("records"), nb::arg("device").none(),
          "Runs a kernel, or its adjoint, with tangents: one like each value, or None for zero. The other lists are "
          "those of run_adjoint().");
    m.def("hessian_needs_launch", &hessian_needs_launch, nb::arg("kernel"), nb::arg("values"), nb::arg("tangents"),
          nb::arg("device").none(), "Whether the adjoint with tangents needs what only the launch itself gives.");
    m.def(
        "launch_needs", &launch_needs, nb::arg("kernel"), nb::arg("dim").none(), nb::arg("values"),
        nb::arg("device").none(), nb::arg("shape").none(),
        "What a tape has to know of a launch. Lists by argument: whether the adjoint needs the contents from before "
        "the launch, those of arrays that lie in its elements, and the contents from after it; whether the launch "
        "writes it, and arrays that lie in its elements; whether it overwrites all of it and does nothing else with "
        "it; whether the adjoint is that for a gradient of it. Then the arrays that lie in elements, by the number of "
        "the argument; arrays for what the launch has to keep of its atomics, where its grid has this shape (None: "
        "it is not made here); whether there is an adjoint, as the launch writes something that may have a gradient; "
        "whether there is none only because of enable_backward=False.");
    m.def(
        "field_names",
        [](nb::handle value) {
            std::vector<std::string> names;
            if (const StructValue* of = struct_pointer(value))
                for (const Type::Field& field : of->type().fields()) names.push_back(field.name);
            return names;
        },
        nb::arg("value"), "The fields of a struct instance.");
    m.def(
        "arrays_in", [](nb::handle value) { return array_objects_in(value); }, nb::arg("value").none(),
        "The arrays in the fields of a struct; none in anything else, such as a field that is None.");
}

}  // namespace weft::bindings
