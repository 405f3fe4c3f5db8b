#include "program/launch/host_call.h"

#include <algorithm>
#include <cstring>

#include "builtins/resolve.h"
#include "ir/builder.h"
#include "ir/walk.h"
#include "program/launch/fault.h"
#include "sema/sema.h"
#include "support/error.h"
#include "support/float_environment.h"

namespace weft::program {

namespace {

[[noreturn]] void throw_fault_of_builtin(const CompiledKernel& kernel, const Fault& fault, const std::string& name) {
    switch (static_cast<FaultKind>(fault.kind)) {
        case FaultKind::bounds: {
            const std::string indexed = indexed_name(kernel, fault);
            const std::string array = indexed.empty() ? "" : " of '" + indexed + "'";
            throw UsageError(name + "()",
                             "index " + std::to_string(fault.index) + " is out of bounds for axis " +
                                 std::to_string(fault.axis) + array + ", which has size " + std::to_string(fault.size),
                             ErrorCategory::index);
        }
        case FaultKind::division:
            throw UsageError(name + "()", "integer division by zero, or the one quotient that overflows",
                             ErrorCategory::value);
        case FaultKind::null_array:
            throw UsageError(name + "()", "the array has no memory", ErrorCategory::value);
        case FaultKind::no_object:
            throw UsageError(name + "()", no_object_text(fault, indexed_name(kernel, fault)), ErrorCategory::value);
        default:
            throw InternalError("the builtin " + name + " reported a fault of kind " + std::to_string(fault.kind));
    }
}

// The names that sema may look up: the builtin table.
class BuiltinsOnly : public sema::Environment {
public:
    sema::Binding lookup(std::string_view name) override {
        sema::Binding binding{.kind = sema::Binding::Kind::builtin};
        binding.text = name;
        return binding;
    }
    sema::Binding attribute(const sema::Binding&, std::string_view) override { return {}; }
    sema::Binding evaluate(int, const std::vector<Local>&) override { return {}; }
    std::vector<std::string> names() override { return {}; }
    std::vector<std::string> attribute_names(const sema::Binding&) override { return {}; }
};

std::int64_t components_of(Type type) {
    if (type.is_numeric_aggregate()) return type.components();
    std::int64_t sum = type.is_scalar() ? 1 : 0;
    if (type.is_struct())
        for (const Type::Field& field : type.fields()) sum += components_of(field.type);
    return sum;
}

// Operations on single numbers that this one stands for.
std::int64_t operations_of(const ir::Operation& operation) {
    const std::int64_t results = operation.results.empty() ? 1 : components_of(operation.result()->type);
    if (operation.op != ir::Op::matmul) return std::max<std::int64_t>(results, 1);
    const Type left = operation.operands[0]->type;
    return results * (left.is_matrix() ? left.cols() : left.rows());
}

void check_size(const std::string& name, const char* what, std::int64_t count, std::int64_t most) {
    if (count <= most) return;
    throw UsageError("wp." + name + "()",
                     "a call from Python may have " + std::to_string(most) + " " + what + ", this one has " +
                         std::to_string(count) +
                         ": its code would take long to compile. help: compute with NumPy, which takes typed values "
                         "(numpy.array(value)), or call it in a kernel",
                     ErrorCategory::value);
}

bool can_be_stored(Type type) { return type.is_scalar() || type.is_numeric_aggregate() || type.is_struct(); }

}  // namespace

HostFunction::HostFunction(const builtins::Match& match, const std::vector<bool>& is_given, bool cache)
    : name_(match.entry->name) {
    const DefaultFloats floats;
    auto module = std::make_unique<ir::Module>();
    ir::Function& function = *module->add(name_);
    function.is_kernel = true;
    ir::Builder builder(function, function.body);

    // Parameters: the arguments as they are, then an array of one element for each result.
    const builtins::Signature& signature = builtins::signature(*match.entry);
    std::vector<Type> types;
    const auto add_parameter = [&](Type type, const std::string& name) {
        types.push_back(type);
        return function.add_argument(&function.body, type, name);
    };
    std::vector<ir::Value*> values;
    std::vector<std::size_t> inout;
    for (std::size_t i = 0; i < match.parameter_types.size(); ++i) {
        const builtins::Parameter& parameter = builtins::parameter_at(signature, i);
        const Type type = match.parameter_types[i];
        const bool is_passed = !parameter.is_static && is_given[i];
        arguments_.push_back({is_passed ? type : Type::none(), 0});
        values.push_back(is_passed ? add_parameter(type, parameter.name) : nullptr);
        if (parameter.is_inout) inout.push_back(i);
    }
    gives_tuple_ = match.result.is_tuple();
    std::vector<Type> results = gives_tuple_ ? match.result.elements() : std::vector<Type>{match.result};
    if (match.result.is_none()) results.clear();
    std::vector<ir::Value*> targets;
    const auto add_target = [&](Type type) {
        if (!can_be_stored(type)) {
            throw UsageError("wp." + name_ + "()",
                             "gives " + type.python_name() + ", which only kernels can have as a value",
                             ErrorCategory::type);
        }
        targets.push_back(add_parameter(Type::array(type, 1), "result"));
    };
    for (const Type type : results) add_target(type);
    for (const std::size_t i : inout) add_target(match.parameter_types[i]);
    std::int64_t components = 0;
    for (const ArgumentSlot& slot : arguments_)
        if (!slot.type.is_none()) components += components_of(slot.type);
    for (const Type type : results) components += components_of(type);
    check_size(name_, "components in arguments and results", components, kMostHostComponents);

    for (std::size_t i = 0; i < values.size(); ++i) {
        const builtins::Parameter& parameter = builtins::parameter_at(signature, i);
        if (values[i] || parameter.is_static) continue;
        const std::optional<Number> number = builtins::default_number(parameter);
        const Type type = match.parameter_types[i];
        WEFT_CHECK(number && type.is_scalar(), "a builtin's parameter has no usable default");
        const Scalar from = number->is_float ? Scalar::f64 : Scalar::i64;
        values[i] = builder.constant(type, {convert(*number, from, type.scalar())});
    }
    builtins::Call call{builder, values, match.types, match.sizes, {}};
    ir::Value* result = match.entry->expand(call);
    std::vector<ir::Value*> outcomes;
    for (std::size_t i = 0; i < results.size(); ++i)
        outcomes.push_back(gives_tuple_ ? builder.extract(result, {static_cast<std::int64_t>(i)}) : result);
    WEFT_CHECK(call.inout.size() == inout.size(), "builtin " + name_ + " did not assign its inout arguments");
    outcomes.insert(outcomes.end(), call.inout.begin(), call.inout.end());
    for (std::size_t i = 0; i < outcomes.size(); ++i) builder.store(targets[i], {builder.integer(0)}, outcomes[i]);
    builder.return_({});
    std::int64_t operations = 0;
    ir::for_each_operation(function.body, [&](const ir::Operation& one) { operations += operations_of(one); });
    check_size(name_, "operations", operations, kMostHostOperations);

    for (const Type type : results) results_.push_back({type, 0});
    for (const std::size_t i : inout) changed_.push_back({i, {match.parameter_types[i], 0}});
    lay_out(types);
    compile_for_host(std::move(module), cache);
}

HostFunction::HostFunction(std::vector<Printed> arguments, bool cache) : name_("printf") {
    auto tree = std::make_shared<syntax::Function>();
    tree->name = name_;
    sema::FunctionSource source;
    const auto expression = [](auto node) {
        auto made = std::make_unique<syntax::Expression>();
        made->node = std::move(node);
        return made;
    };
    syntax::Call call;
    call.function = expression(syntax::Name{name_});
    std::vector<Type> types;
    for (Printed& argument : arguments) {
        if (std::string* text = std::get_if<std::string>(&argument)) {
            call.arguments.push_back(expression(syntax::StringLiteral{std::move(*text)}));
            arguments_.push_back({});
            continue;
        }
        types.push_back(std::get<Type>(argument));
        arguments_.push_back({types.back(), 0});
        const std::string name = "value" + std::to_string(types.size());
        tree->parameters.push_back({.name = name});
        call.arguments.push_back(expression(syntax::Name{name}));
    }
    auto statement = std::make_unique<syntax::Statement>();
    statement->node = syntax::ExpressionStatement{expression(std::move(call))};
    tree->body.push_back(std::move(statement));
    source.tree = tree;
    source.environment = std::make_shared<BuiltinsOnly>();
    for (const Type type : types) source.annotations.push_back(TypePattern::exactly(type));
    source.key = name_;
    lay_out(types);
    compile_for_host(sema::analyze(source), cache);
}

// The parameters of the block in order: the arguments that are passed, then the views of the results.
void HostFunction::lay_out(const std::vector<Type>& parameters) {
    const ArgumentLayout layout = argument_layout(parameters);
    block_.resize(static_cast<std::size_t>(layout.size_bytes));
    std::size_t next = 0;
    for (ArgumentSlot& slot : arguments_) {
        if (!slot.type.is_none()) slot.offset = layout.offsets[next++];
    }
    const auto fill_view = [&](ArgumentSlot& slot) {
        slot.offset = layout.offsets[next++];
        ArrayView view;
        view.shape[0] = 1;
        view.strides[0] = slot.type.size_bytes();
        std::memcpy(block_.data() + slot.offset, &view, sizeof view);
    };
    for (ArgumentSlot& slot : results_) fill_view(slot);
    for (Changed& changed : changed_) fill_view(changed.slot);
}

void HostFunction::compile_for_host(std::unique_ptr<ir::Module> module, bool cache) {
    CompileOptions options;
    options.debug = true;
    options.dense = options.noalias = options.distinct = false;
    options.keeps_calls = true;
    options.lanes = 1;
    options.cache = cache;
    kernel_ = compile(std::move(module), options);
}

void HostFunction::prepare(std::byte* block) const { std::memcpy(block, block_.data(), block_.size()); }

void HostFunction::set_target(std::byte* block, const ArgumentSlot& slot, void* memory) {
    std::memcpy(block + slot.offset + offsetof(ArrayView, data), &memory, sizeof memory);
}

void HostFunction::run(const std::byte* block) const {
    Fault fault{};
    kernel_->loaded->call(block, fault);
    if (fault.claimed) throw_fault_of_builtin(*kernel_, fault, "wp." + name_);
}

}  // namespace weft::program
