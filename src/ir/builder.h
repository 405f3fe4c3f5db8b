// Appends operations to a region. The types of results follow from the operands; misuse throws InternalError.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "ir/ir.h"
#include "types/objects.h"

namespace weft::ir {

class Builder {
public:
    Builder(Function& function, Region& region) : function_(&function), region_(&region) {}

    Function& function() const { return *function_; }
    Region& region() const { return *region_; }
    Span span;  // of the operations made from now on

    // Points the builder at another region; restores it on destruction.
    class Inside {
    public:
        Inside(Builder& b, Region& r) : builder_(b), saved_(b.region_) { b.region_ = &r; }
        ~Inside() { builder_.region_ = saved_; }
        Inside(const Inside&) = delete;
        Inside& operator=(const Inside&) = delete;

    private:
        Builder& builder_;
        Region* saved_;
    };

    // ---- constants ----
    Value* constant(Type type, std::vector<Number> numbers);  // one number per leaf
    Value* integer(std::int64_t value, Type type = i32_type());
    Value* real(double value, Type type = f32_type());
    Value* boolean(bool value);
    Value* zero(Type type);  // all components 0; arrays are null
    Value* one(Type scalar_type);

    // ---- component by component ----
    Value* unary(Op op, Value* a);
    Value* binary(Op op, Value* a, Value* b);
    Value* compare(Op op, Value* a, Value* b);
    Value* classify(Op op, Value* a);
    Value* fma(Value* a, Value* b, Value* c);
    Value* select(Value* condition, Value* a, Value* b);
    Value* cast(Value* a, Scalar to);
    Value* bitcast(Value* a, Scalar to);
    Value* bit_count(Value* a);

    // ---- parts ----
    Value* make(Type type, std::vector<Value*> parts);
    Value* splat(Type type, Value* scalar);
    Value* extract(Value* aggregate, std::initializer_list<std::int64_t> path);
    Value* extract(Value* aggregate, std::vector<std::int64_t> path);
    Value* insert(Value* aggregate, Value* part, std::vector<std::int64_t> path);
    Value* extract_at(Value* aggregate, std::vector<Value*> indices);
    Value* insert_at(Value* aggregate, Value* part, std::vector<Value*> indices);
    Value* reduce_add(Value* aggregate);
    Value* matmul(Value* a, Value* b);
    Value* transpose(Value* a);

    // ---- arrays ----
    Value* load(Value* array, std::vector<Value*> indices);
    void store(Value* array, std::vector<Value*> indices, Value* value);
    Value* view(Value* array, std::vector<Value*> indices);
    Value* components(Value* array);
    Value* member(Value* array, int field);
    Value* dim(Value* array, int axis);
    Value* is_null(Value* array);
    Value* grad_of(Value* array);
    Value* slice(Value* array, int axis, Value* start, Value* count = nullptr);  // without a count the axis is dropped
    Value* null(Type array);
    Value* local_array(Type array, std::vector<std::int64_t> shape);
    Value* stack(Type array, Value* count);
    Value* loaded(Value* array, std::vector<Value*> indices, Value* value);
    Value* address(Value* array);
    Value* argument(Value* parameter);
    Value* array_at(Type array, Value* address, std::vector<Value*> extents);
    Value* object(ObjectKind kind, Value* id);
    Value* atomic(Op op, Value* array, std::vector<Value*> indices, std::vector<Value*> values);

    // ---- tiles: ir/tile_builder.h fills the regions ----
    Operation* tile_indices(Op op, std::vector<std::int64_t> extents);  // the caller adds the result
    Operation* tile_reduce(Value* tile);
    Value* tile_matmul(Value* a, Value* b);
    Value* lane();
    Value* tile_of_lanes(Value* value, std::int64_t lanes);

    // ---- control. The caller fills the regions (with Inside) and ends each with yield(). ----
    Operation* if_(Value* condition, std::vector<Type> results);
    Operation* for_(Value* lo, Value* hi, Value* step, std::vector<Value*> inits, bool guarded = false);
    Operation* while_(std::vector<Value*> inits);
    void yield(std::vector<Value*> values);
    void return_(std::vector<Value*> values);
    Value* call(Function* callee, std::vector<Value*> arguments);  // null if the callee returns nothing
    Value* call_library(std::shared_ptr<const LibraryFunction> callee, Type result, std::vector<Value*> arguments);

    // ---- outside world ----
    Value* tid(int axis);
    Value* block_dim();
    void print(std::string format, std::vector<Value*> scalars);
    void raise(std::string text, std::vector<Value*> scalars);  // text: "Class: format"
    void require(Value* condition, std::string message);
    void assert_(Value* condition, std::string message);
    void note_finite(Value* condition);

    Operation* append(Op op, std::vector<Value*> operands, std::vector<Type> results);

private:
    Function* function_;
    Region* region_;
};

}  // namespace weft::ir
