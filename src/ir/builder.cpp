#include "ir/builder.h"

#include "ir/typing.h"
#include "support/error.h"

namespace weft::ir {
namespace {

[[noreturn]] void report(const Operation& operation, const std::string& mistake) {
    std::string text = std::string("building '") + op_name(operation.op) + "': " + mistake;
    if (operation.span) text += " (at " + operation.span.location() + ")";
    throw InternalError(text);
}

// Computes the type of the operation's result, adds it and appends the operation to the region.
Value* finish(Function& function, Region& region, Operation* operation, Type stated = {}) {
    Type type;
    try {
        type = result_type(*operation, stated);
    } catch (const TypeMistake& mistake) {
        report(*operation, mistake.what());
    }
    operation->parent = &region;
    region.operations.push_back(operation);
    return type.is_none() ? nullptr : function.add_result(operation, type);
}

std::vector<Value*> joined(Value* first, const std::vector<Value*>& rest, const std::vector<Value*>& more = {}) {
    std::vector<Value*> all{first};
    all.insert(all.end(), rest.begin(), rest.end());
    all.insert(all.end(), more.begin(), more.end());
    return all;
}

// The value that a constant of that scalar type holds for the number.
Number fitted(Number number, Scalar scalar) {
    const ScalarInfo& row = info(scalar);
    if (number.is_float) {
        WEFT_CHECK(row.is_float(), std::string("an integer constant of type ") + row.ir + " got a float");
        return convert(number, Scalar::f64, scalar);
    }
    return convert(number, scalar == Scalar::u64 ? Scalar::u64 : Scalar::i64, scalar);
}

void append_zeros(Type type, std::vector<Number>& numbers) {
    std::vector<Scalar> scalars;
    append_leaves(type, scalars);
    for (const Scalar s : scalars) numbers.push_back(info(s).is_float() ? Number::real(0.0) : Number::integer(0));
}

}  // namespace

Operation* Builder::append(Op op, std::vector<Value*> operands, std::vector<Type> results) {
    Operation* operation = function_->new_operation(op, span);
    operation->operands = std::move(operands);
    operation->parent = region_;
    for (Type type : results) function_->add_result(operation, type);
    region_->operations.push_back(operation);
    return operation;
}

// ---- constants ----

Value* Builder::constant(Type type, std::vector<Number> numbers) {
    Operation* operation = function_->new_operation(Op::constant, span);
    std::vector<Scalar> scalars;
    try {
        append_leaves(type, scalars);
    } catch (const TypeMistake& mistake) {
        report(*operation, mistake.what());
    }
    for (std::size_t i = 0; i < numbers.size() && i < scalars.size(); ++i) numbers[i] = fitted(numbers[i], scalars[i]);
    operation->numbers = std::move(numbers);
    return finish(*function_, *region_, operation, type);
}

Value* Builder::integer(std::int64_t value, Type type) { return constant(type, {Number::integer(value)}); }
Value* Builder::real(double value, Type type) { return constant(type, {Number::real(value)}); }
Value* Builder::boolean(bool value) { return constant(bool_type(), {Number::integer(value)}); }

Value* Builder::zero(Type type) {
    if (type.is_array()) return null(type);
    if (type.is_tile()) {
        Operation* made = tile_indices(Op::tile_generate, {type.size()});
        const Inside inside(*this, made->body());
        yield({zero(type.element())});
        return function_->add_result(made, type);
    }
    if (type.is(Kind::tuple) || (type.is_struct() && holds_array(type))) {
        std::vector<Value*> parts;
        if (type.is_struct())
            for (const Type::Field& field : type.fields()) parts.push_back(zero(field.type));
        else
            for (const Type element : type.elements()) parts.push_back(zero(element));
        return make(type, std::move(parts));
    }
    std::vector<Number> numbers;
    try {
        append_zeros(type, numbers);
    } catch (const TypeMistake& mistake) {
        throw InternalError(std::string("building 'constant': ") + mistake.what());
    }
    return constant(type, std::move(numbers));
}

Value* Builder::one(Type scalar_type) { return constant(scalar_type, {Number::integer(1)}); }

// ---- component by component ----

namespace {

Value* simple(Builder& builder, Op op, std::vector<Value*> operands, Type stated = {},
              std::vector<std::int64_t> ints = {}) {
    Operation* operation = builder.function().new_operation(op, builder.span);
    operation->operands = std::move(operands);
    operation->ints = std::move(ints);
    return finish(builder.function(), builder.region(), operation, stated);
}

void expect_class(Op op, OpClass cls) {
    WEFT_CHECK(op_class(op) == cls, std::string("operation '") + op_name(op) + "' is of another class");
}

}  // namespace

Value* Builder::unary(Op op, Value* a) {
    expect_class(op, OpClass::unary);
    return simple(*this, op, {a});
}

Value* Builder::binary(Op op, Value* a, Value* b) {
    expect_class(op, OpClass::binary);
    return simple(*this, op, {a, b});
}

Value* Builder::compare(Op op, Value* a, Value* b) {
    expect_class(op, OpClass::compare);
    return simple(*this, op, {a, b});
}

Value* Builder::classify(Op op, Value* a) {
    expect_class(op, OpClass::classify);
    return simple(*this, op, {a});
}

Value* Builder::fma(Value* a, Value* b, Value* c) { return simple(*this, Op::fma, {a, b, c}); }
Value* Builder::select(Value* condition, Value* a, Value* b) { return simple(*this, Op::select, {condition, a, b}); }

Value* Builder::cast(Value* a, Scalar to) {
    WEFT_CHECK(a->type.is_scalar() || a->type.is_numeric_aggregate(), "cast of " + a->type.ir_name());
    return simple(*this, Op::cast, {a}, a->type.with_scalar(to));
}

Value* Builder::bitcast(Value* a, Scalar to) { return simple(*this, Op::bitcast, {a}, Type::scalar(to)); }
Value* Builder::bit_count(Value* a) { return simple(*this, Op::bit_count, {a}); }

// ---- parts ----

Value* Builder::make(Type type, std::vector<Value*> parts) { return simple(*this, Op::make, std::move(parts), type); }
Value* Builder::splat(Type type, Value* scalar) { return simple(*this, Op::splat, {scalar}, type); }

Value* Builder::extract(Value* aggregate, std::initializer_list<std::int64_t> path) {
    return extract(aggregate, std::vector<std::int64_t>(path));
}

Value* Builder::extract(Value* aggregate, std::vector<std::int64_t> path) {
    return simple(*this, Op::extract, {aggregate}, {}, std::move(path));
}

Value* Builder::insert(Value* aggregate, Value* part, std::vector<std::int64_t> path) {
    return simple(*this, Op::insert, {aggregate, part}, {}, std::move(path));
}

Value* Builder::extract_at(Value* aggregate, std::vector<Value*> indices) {
    return simple(*this, Op::extract_at, joined(aggregate, indices));
}

Value* Builder::insert_at(Value* aggregate, Value* part, std::vector<Value*> indices) {
    return simple(*this, Op::insert_at, joined(aggregate, {part}, indices));
}

Value* Builder::reduce_add(Value* aggregate) { return simple(*this, Op::reduce_add, {aggregate}); }
Value* Builder::matmul(Value* a, Value* b) { return simple(*this, Op::matmul, {a, b}); }
Value* Builder::transpose(Value* a) { return simple(*this, Op::transpose, {a}); }

// ---- arrays ----

Value* Builder::load(Value* array, std::vector<Value*> indices) {
    return simple(*this, Op::load, joined(array, indices));
}

void Builder::store(Value* array, std::vector<Value*> indices, Value* value) {
    simple(*this, Op::store, joined(array, indices, {value}));
}

Value* Builder::view(Value* array, std::vector<Value*> indices) {
    return simple(*this, Op::view, joined(array, indices));
}
Value* Builder::components(Value* array) { return simple(*this, Op::components, {array}); }
Value* Builder::member(Value* array, int field) { return simple(*this, Op::member, {array}, {}, {field}); }
Value* Builder::dim(Value* array, int axis) { return simple(*this, Op::dim, {array}, {}, {axis}); }
Value* Builder::is_null(Value* array) { return simple(*this, Op::is_null, {array}); }
Value* Builder::grad_of(Value* array) { return simple(*this, Op::grad_of, {array}); }

Value* Builder::slice(Value* array, int axis, Value* start, Value* count) {
    std::vector<Value*> operands{array, start};
    if (count) operands.push_back(count);
    return simple(*this, Op::slice, std::move(operands), {}, {axis});
}

Value* Builder::null(Type array) { return simple(*this, Op::null, {}, array); }

Value* Builder::local_array(Type array, std::vector<std::int64_t> shape) {
    return simple(*this, Op::local_array, {}, array, std::move(shape));
}

Value* Builder::stack(Type array, Value* count) { return simple(*this, Op::stack, {count}, array); }

Value* Builder::loaded(Value* array, std::vector<Value*> indices, Value* value) {
    return simple(*this, Op::loaded, joined(array, indices, {value}));
}

Value* Builder::address(Value* array) { return simple(*this, Op::address, {array}); }
Value* Builder::argument(Value* parameter) { return simple(*this, Op::argument, {parameter}); }

Value* Builder::array_at(Type array, Value* address, std::vector<Value*> extents) {
    return simple(*this, Op::array_at, joined(address, extents), array);
}

Value* Builder::object(ObjectKind kind, Value* id) {
    return simple(*this, Op::object, {id}, {}, {static_cast<std::int64_t>(kind)});
}

Value* Builder::atomic(Op op, Value* array, std::vector<Value*> indices, std::vector<Value*> values) {
    WEFT_CHECK(is_atomic(op), std::string("operation '") + op_name(op) + "' is no atomic");
    return simple(*this, op, joined(array, indices, values));
}

// ---- tiles ----

Operation* Builder::tile_indices(Op op, std::vector<std::int64_t> extents) {
    Operation* operation = append(op, {}, {});
    Region* body = function_->new_region(operation);
    for (std::size_t i = 0; i < extents.size(); ++i) function_->add_argument(body, i32_type());
    operation->ints = std::move(extents);
    return operation;
}

Operation* Builder::tile_reduce(Value* tile) {
    const Type element = tile->type.element();
    Operation* operation = append(Op::tile_reduce, {tile}, {element});
    Region* body = function_->new_region(operation);
    for (int i = 0; i < 2; ++i) function_->add_argument(body, element);
    return operation;
}

Value* Builder::tile_matmul(Value* a, Value* b) { return simple(*this, Op::tile_matmul, {a, b}); }

Value* Builder::lane() { return simple(*this, Op::lane, {}); }

Value* Builder::tile_of_lanes(Value* value, std::int64_t lanes) {
    return simple(*this, Op::tile_of_lanes, {value}, {}, {lanes});
}

bool is_of_lanes(const Value* tile) {
    const Operation* made = tile->definition;
    if (!made || made->op == Op::tile_of_lanes) return made != nullptr;
    if (made->op != Op::tile_generate || made->ints.size() != 1) return false;
    const Value* const at = made->body().arguments[0];
    for (const Operation* operation : made->body().operations)
        if (operation->op == Op::extract_at && operation->operands[0]->type.is_tile() && operation->operands[1] == at &&
            operation->operands[0]->type.shape() == tile->type.shape() && is_of_lanes(operation->operands[0]))
            return true;
    return false;
}

Value* flat_index(Builder& builder, const std::vector<std::int64_t>& extents, const std::vector<Value*>& indices) {
    Value* flat = nullptr;
    for (std::size_t i = 0; i < indices.size(); ++i) {
        if (!flat) {
            flat = indices[i];
            continue;
        }
        flat = builder.binary(Op::mul, flat, builder.integer(extents[i], flat->type));
        flat = builder.binary(Op::add, flat, indices[i]);
    }
    return flat;
}

// ---- control ----

Operation* Builder::if_(Value* condition, std::vector<Type> results) {
    WEFT_CHECK(condition->type.is_bool(), "condition of an if is " + condition->type.ir_name());
    Operation* operation = append(Op::if_, {condition}, std::move(results));
    function_->new_region(operation);
    function_->new_region(operation);
    return operation;
}

Operation* Builder::for_(Value* lo, Value* hi, Value* step, std::vector<Value*> inits, bool guarded) {
    WEFT_CHECK(lo->type.is_int() && hi->type == lo->type && step->type == lo->type,
               "bounds of a for are " + lo->type.ir_name() + ", " + hi->type.ir_name() + ", " + step->type.ir_name() +
                   ", expected one integer type");
    WEFT_CHECK(!guarded || (!inits.empty() && inits.back()->type.is_bool()), "a guarded for carries a bool last");
    std::vector<Type> types;
    for (const Value* init : inits) types.push_back(init->type);
    std::vector<Value*> operands = joined(lo, {hi, step}, inits);
    Operation* operation = append(Op::for_, std::move(operands), types);
    operation->guarded = guarded;
    Region* body = function_->new_region(operation);
    function_->add_argument(body, lo->type);
    for (Type type : types) function_->add_argument(body, type);
    return operation;
}

Operation* Builder::while_(std::vector<Value*> inits) {
    std::vector<Type> types;
    for (const Value* init : inits) types.push_back(init->type);
    Operation* operation = append(Op::while_, std::move(inits), types);
    for (int i = 0; i < 2; ++i) {
        Region* region = function_->new_region(operation);
        for (Type type : types) function_->add_argument(region, type);
    }
    return operation;
}

void Builder::yield(std::vector<Value*> values) { append(Op::yield, std::move(values), {}); }
void Builder::return_(std::vector<Value*> values) { append(Op::return_, std::move(values), {}); }

Value* Builder::call(Function* callee, std::vector<Value*> arguments) {
    Operation* operation = function_->new_operation(Op::call, span);
    operation->operands = std::move(arguments);
    operation->function = callee;
    return finish(*function_, *region_, operation);
}

Value* Builder::call_library(std::shared_ptr<const LibraryFunction> callee, Type result,
                             std::vector<Value*> arguments) {
    Operation* operation = function_->new_operation(Op::call_library, span);
    operation->operands = std::move(arguments);
    operation->library = std::move(callee);
    return finish(*function_, *region_, operation, result);
}

// ---- outside world ----

Value* Builder::tid(int axis) { return simple(*this, Op::tid, {}, {}, {axis}); }
Value* Builder::block_dim() { return simple(*this, Op::block_dim, {}); }

void Builder::print(std::string format, std::vector<Value*> scalars) {
    Operation* operation = function_->new_operation(Op::print, span);
    operation->operands = std::move(scalars);
    operation->text = std::move(format);
    finish(*function_, *region_, operation);
}

void Builder::raise(std::string text, std::vector<Value*> scalars) {
    Operation* operation = function_->new_operation(Op::raise, span);
    operation->operands = std::move(scalars);
    operation->text = std::move(text);
    finish(*function_, *region_, operation);
}

void Builder::require(Value* condition, std::string message) {
    Operation* operation = function_->new_operation(Op::require, span);
    operation->operands = {condition};
    operation->text = std::move(message);
    finish(*function_, *region_, operation);
}

void Builder::note_finite(Value* condition) { append(Op::note_finite, {condition}, {}); }

void Builder::assert_(Value* condition, std::string message) {
    Operation* operation = function_->new_operation(Op::assert_, span);
    operation->operands = {condition};
    operation->text = std::move(message);
    finish(*function_, *region_, operation);
}

}  // namespace weft::ir
