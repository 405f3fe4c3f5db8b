// The module: the kernel first, then each function in the order in which calls meet it.
#include "sema/sema.h"

#include <algorithm>

#include "sema/analyzer.h"
#include "support/float_environment.h"

namespace weft::sema {

void ModuleState::keep_source(const SourcePtr& source) {
    if (source && std::find(module.sources.begin(), module.sources.end(), source) == module.sources.end()) {
        module.sources.push_back(source);
    }
}

std::string ModuleState::unique_name(const std::string& wanted) const {
    std::string name = wanted;
    for (int n = 2; module.find(name); ++n) name = wanted + "_" + std::to_string(n);
    return name;
}

FunctionAnalyzer::FunctionAnalyzer(ModuleState& module, const FunctionSource& source, ir::Function& function)
    : module_(module),
      source_(source),
      tree_(*source.tree),
      function_(function),
      builder_(function, function.body),
      values_(builder_),
      parts_(builder_),
      constructors_(builder_),
      sequences_(builder_),
      locals_(source, module.options, builder_),
      names_(source, locals_),
      branches_(function_, builder_, locals_) {}

void FunctionAnalyzer::analyze(const std::vector<Value>& parameters) {
    reject_unusual_parameters(tree_);
    WEFT_CHECK(parameters.size() == tree_.parameters.size(), "one value per parameter");
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        if (parameters[i].type.is_tile()) {
            take_tile(i, parameters[i]);
            continue;
        }
        locals_.assign(tree_.parameters[i].name, parameters[i], tree_.parameters[i].span);
        if (locals_.is_reference(tree_.parameters[i].name))
            reference_starts_[tree_.parameters[i].name] = parameters[i].ir;
    }
    if (gradient_) gradient_->begin();
    if (source_.result) {
        if (function_.is_kernel && !source_.result->is_none()) {
            fail(tree_.result_span,
                 "kernels return nothing, and this one is annotated with " + source_.result->python_name(),
                 {help("write results to an array that is an argument of the kernel, and '-> None' or nothing here")});
        }
        locals_.result.type = source_.result;
        locals_.result.place = tree_.result_span;
    }
    run({Work{&tree_.body}});
    finish_function();
}

void FunctionAnalyzer::analyze_gradient(const std::vector<Value>& parameters, std::size_t own) {
    gradient_.emplace(tree_, own, function_, builder_, locals_);
    analyze(parameters);
}

std::unique_ptr<ir::Module> analyze(const FunctionSource& kernel, const Options& options,
                                    std::vector<Type> parameter_types) {
    const DefaultFloats floats;
    const syntax::Function& tree = *kernel.tree;
    auto module = std::make_unique<ir::Module>();
    ModuleState state{*module, options, {}, {}, {}, {}, {}, 0};
    state.keep_source(tree.source);
    ir::Function* function = module->add(tree.name);
    function->is_kernel = true;
    function->span = tree.span;
    std::vector<Value> parameters;
    for (std::size_t i = 0; i < tree.parameters.size(); ++i) {
        const syntax::Parameter& p = tree.parameters[i];
        if (kernel.references.contains(p.name)) {
            fail(p.span, "parameter '" + p.name + "' of kernel '" + tree.name + "' cannot be passed by reference",
                 {help("take an array, and write its elements")});
        }
        Type type = i < parameter_types.size() ? parameter_types[i] : Type::none();
        if (type.is_none() && i < kernel.annotations.size()) type = kernel.annotations[i].type;
        if (type.is_none()) {
            fail(p.span, "parameter '" + p.name + "' of kernel '" + tree.name + "' has no type annotation",
                 {help("write " + p.name + ": float, or " + p.name + ": wp.array(dtype=float)")});
        }
        parameters.push_back(Value::runtime(function->add_argument(&function->body, type, p.name)));
    }
    state.active.push_back({kernel.key, tree.name});
    try {
        FunctionAnalyzer(state, kernel, *function).analyze(parameters);
    } catch (const CompileError& error) {
        std::vector<Note> notes = error.notes;
        notes.push_back(note("in kernel '" + tree.name + "'"));
        fail(error.span, error.message, std::move(notes), error.category);
    }
    function->tid_rank = state.tid_rank;
    return module;
}

}  // namespace weft::sema
