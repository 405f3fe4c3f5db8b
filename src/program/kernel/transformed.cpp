#include "program/kernel/transformed.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "ir/typing.h"
#include "ir/walk.h"
#include "support/error.h"
#include "support/float_environment.h"
#include "transform/analysis/grid_order_conditions.h"

namespace weft::program {

bool is_dumped(std::string_view stage) {
    const char* const list = std::getenv("WEFT_DUMP");
    if (list == nullptr || *list == '\0') return false;
    std::string_view rest = list;
    while (!rest.empty()) {
        const std::size_t comma = rest.find(',');
        const std::string_view word = rest.substr(0, comma);
        if (word == stage || word == "all") return true;
        rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
    }
    return false;
}

void dump(std::string_view stage, const std::string& kernel, const std::string& text) {
    const std::string all = "---- " + std::string(stage) + " of kernel " + kernel + " ----\n" + text + "\n";
    std::fwrite(all.data(), 1, all.size(), stderr);
}

namespace {

void dump_ir(std::string_view stage, const std::string& kernel, const ir::Module& module) {
    if (is_dumped(stage)) dump(stage, kernel, ir::print(module, /*names=*/true));
}

void add_arrays(Type type, std::int64_t offset, int parameter, bool is_parameter, std::vector<BlockArray>& arrays) {
    if (type.is_array()) {
        arrays.push_back({offset, type, parameter, is_parameter, ir::holds_array(type.element()), type.ndim(),
                          type.element().size_bytes()});
    } else if (type.is_struct()) {
        for (const Type::Field& field : type.fields())
            add_arrays(field.type, offset + field.offset, parameter, /*is_parameter=*/false, arrays);
    }
}

std::vector<ir::ImplicitParameter> used_implicit_parameters(const ir::Function& kernel) {
    std::vector<bool> used(static_cast<std::size_t>(kernel.value_count()), false);
    ir::for_each_operation(kernel.body, [&](const ir::Operation& operation) {
        for (const ir::Value* operand : operation.operands) used[static_cast<std::size_t>(operand->id)] = true;
    });
    std::vector<ir::ImplicitParameter> implicit_parameters = kernel.implicit_parameters;
    const std::size_t own = kernel.parameters().size() - implicit_parameters.size();
    for (std::size_t i = 0; i < implicit_parameters.size(); ++i)
        if (!used[static_cast<std::size_t>(kernel.parameters()[own + i]->id)]) implicit_parameters[i].of = -1;
    return implicit_parameters;
}

std::vector<KernelFacts::AtomicResult> atomic_results_of(
    const ir::Function& adjoint, const std::vector<ir::ImplicitParameter>& implicit_parameters) {
    std::vector<KernelFacts::AtomicResult> returned;
    bool any_used = false;
    const std::size_t own = adjoint.parameters().size() - implicit_parameters.size();
    for (std::size_t i = 0; i < implicit_parameters.size(); ++i) {
        if (!implicit_parameters[i].is_returned()) continue;
        returned.push_back({adjoint.parameters()[own + i]->type.element(),
                            implicit_parameters[i].kind == ir::ImplicitParameter::Kind::log});
        any_used |= implicit_parameters[i].of >= 0;
    }
    if (!any_used) returned.clear();
    return returned;
}

// By parameter: whether the adjoint writes to its gradient, or to those of arrays in it.
std::vector<bool> changed_gradients(const ir::Function& adjoint) {
    std::vector<bool> changed(adjoint.parameters().size() - adjoint.implicit_parameters.size(), false);
    const auto mark_all = [&](bool only_holders) {
        for (std::size_t i = 0; i < changed.size(); ++i) {
            const Type type = adjoint.parameters()[i]->type;
            if (!only_holders || ir::holds_array(type.is_array() ? type.element() : type)) changed[i] = true;
        }
    };
    ir::for_each_operation(adjoint.body, [&](const ir::Operation& operation) {
        if (operation.library && !operation.library->writes.empty()) mark_all(/*only_holders=*/false);
        if (!ir::writes(operation.op)) return;
        const ir::Value* const gradient = ir::gradient_holding(operation.operands[0]);
        if (!gradient) return;
        const ir::Value* const origin = ir::origin_of(gradient->definition->operands[0]);
        if (!ir::is_parameter(adjoint, origin)) return mark_all(/*only_holders=*/!origin->type.is_array());
        if (!adjoint.implicit(origin)) changed[static_cast<std::size_t>(origin->index)] = true;
    });
    return changed;
}

// Follows fields: returns the offset in the value, and sets `type` to that of the last.
std::int64_t offset_of(Type& type, std::span<const std::int64_t> fields) {
    std::int64_t offset = 0;
    for (const std::int64_t field : fields) {
        const Type::Field& of = type.fields()[static_cast<std::size_t>(field)];
        offset += of.offset;
        type = of.type;
    }
    return offset;
}

std::vector<GridQuery> placed(const std::vector<transform::OwnQuery>& queries, const KernelFacts& kernel) {
    std::vector<GridQuery> result;
    for (const transform::OwnQuery& query : queries) {
        const auto of_block = [&](const transform::OwnQuery::ParameterField& part, Type& type) {
            const auto parameter = static_cast<std::size_t>(part.parameter);
            type = kernel.parameter_types[parameter];
            return kernel.layout.offsets[parameter] + offset_of(type, part.fields);
        };
        Type id, points;
        GridQuery& to = result.emplace_back();
        to.id = of_block(query.id, id);
        to.points = of_block(query.points, points);
        Type element = points.element();
        to.point = offset_of(element, query.fields);
        to.scalar = query.point_type.scalar();
    }
    return result;
}

// Serial mode, atomic results and NaN reports expose the order of threads.
bool may_have_grid_order(const PassOptions& options) {
    return options.noalias && options.distinct && !options.debug && !options.nan_check &&
           !options.keeps_atomic_results && options.derivation.tangents.empty();
}

// The user's C++ gets arrays with the addresses of their gradients.
bool may_expose_gradients(const ir::Module& module) {
    bool found = false;
    for (const auto& function : module.functions)
        ir::for_each_operation(function->body, [&](const ir::Operation& operation) {
            found |= operation.op == ir::Op::grad_of || (operation.library && operation.library->native);
        });
    return found;
}

transform::PipelineOptions pipeline_options(const PassOptions& options) {
    const auto& [gradients, tangents, numbers] = options.derivation;
    transform::PipelineOptions pipeline{options};
    if (!gradients.empty())
        pipeline.adjoint = {gradients, options.noalias, options.stack_bytes, tangents.empty() ? 0 : 1,
                            options.stack_slots};
    pipeline.numbers = numbers;
    pipeline.stack_slots = options.stack_slots;
    if (!tangents.empty()) pipeline.jvp = {tangents, pipeline.adjoint.has_value()};
    return pipeline;
}

}  // namespace

std::vector<BlockArray> block_arrays(const ArgumentLayout& layout, std::span<const Type> types) {
    std::vector<BlockArray> arrays;
    for (std::size_t i = 0; i < types.size(); ++i)
        add_arrays(types[i], layout.offsets[i], static_cast<int>(i), /*is_parameter=*/true, arrays);
    return arrays;
}

KernelFacts::KernelFacts(std::vector<Type> types, std::vector<ParameterEffects> effects_of)
    : parameter_types(std::move(types)),
      layout(argument_layout(parameter_types)),
      arrays(block_arrays(layout, parameter_types)),
      effects(std::move(effects_of)) {
    for (std::size_t i = 0; i < effects.size(); ++i) {
        const ParameterEffects& effect = effects[i];
        keeps_arrays |= effect.keeps;
        if (effect.writes || effect.writes_itself || effect.writes_within)
            written.push_back(static_cast<std::uint32_t>(i));
    }
    gradients_escape = keeps_arrays;
    reads_views = std::ranges::any_of(arrays, &BlockArray::holds_arrays);
}

TransformedKernel transform_kernel(std::unique_ptr<ir::Module> module, const PassOptions& options) {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point start = Clock::now();
    const DefaultFloats floats;
    WEFT_CHECK(module != nullptr && !module->functions.empty() && module->functions.front()->is_kernel,
               "the first function of a module to compile must be its kernel");
    const std::string name = module->functions.front()->name;
    const Span span = module->functions.front()->span;
    dump_ir("sema", name, *module);

    // Facts of the kernel itself, even if the passes turn it into its adjoint.
    std::vector<ParameterEffects> effects;
    std::vector<std::vector<int>> overwritten;
    std::vector<transform::OwnQuery> queries;
    bool is_known = false, lets_gradients_escape = false;
    transform::PipelineOptions pipeline = pipeline_options(options);
    pipeline.after_pass = [&](std::string_view pass, const ir::Module& after) {
        dump_ir(pass, name, after);
        if (pass != "simplify" || is_known) return;
        is_known = true;
        effects = ir::effects(*after.functions.front());
        overwritten = transform::overwritten(*after.functions.front());
        lets_gradients_escape = may_expose_gradients(after);
        if (may_have_grid_order(options)) queries = transform::own_queries(*after.functions.front());
    };
    transform::run_pipeline(*module, pipeline);

    const ir::Function& kernel = *module->functions.front();
    std::vector<Type> types;
    for (const ir::Value* parameter : kernel.parameters()) types.push_back(parameter->type);
    TransformedKernel transformed{{std::move(types), std::move(effects)}, nullptr, 0.0};
    transformed.gradients_escape |= lets_gradients_escape;
    transformed.tid_rank = kernel.tid_rank;
    if (span) transformed.location = span.location();
    transformed.overwritten = std::move(overwritten);
    transformed.uncontended_parameters = kernel.uncontended_parameters;
    transformed.implicit_parameters = used_implicit_parameters(kernel);
    if (options.huge) transformed.narrow_extents = transform::narrow_extents(*module);
    if (!options.derivation.gradients.empty() && options.derivation.tangents.empty()) {
        transformed.contents = transform::contents_read(kernel);
        transformed.returned = atomic_results_of(kernel, transformed.implicit_parameters);
        transformed.scattered = transform::scattered_gradients(kernel);
        transformed.adds_to_gradient = changed_gradients(kernel);
    }
    if (!queries.empty() && !options.grid_order && transformed.returned.empty()) {
        const transform::OrderShows shows = transform::order_shows(kernel);
        if (shows != transform::OrderShows::in_results) transformed.grid_queries = placed(queries, transformed);
        transformed.grid_order_rounds = shows == transform::OrderShows::in_rounding;
    }
    transformed.module = std::move(module);
    transformed.passes_ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
    return transformed;
}

}  // namespace weft::program
