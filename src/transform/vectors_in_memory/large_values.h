// The inside of keep_vectors_in_memory(), cut by subject. Reading order: large_values.cpp (memory, branches, loops,
// parts), component_loops.cpp (operations on whole values).
#pragma once

#include <functional>
#include <vector>

#include "ir/builder.h"
#include "ir/walk.h"
#include "transform/vectors_in_memory/memory_slots.h"

namespace weft::transform {

class VectorsInMemory {
public:
    VectorsInMemory(ir::Function& function, MemorySlots storage, const LargeOperations& operations, bool checks_parts);

    void run();

private:
    using Operation = ir::Operation;
    using Region = ir::Region;
    using Value = ir::Value;

    // The position of a component: its number, or row and column; for a vector always the number.
    struct Position {
        Value* flat = nullptr;
        Value *row = nullptr, *col = nullptr;
    };
    struct Move {
        const Value* to;
        Value* from;
    };

    // ---- large_values.cpp: memory ----
    Value* memory(const Value* value) const { return memories_[static_cast<std::size_t>(storage_.slot(value))]; }
    Value* make_memory(Type type);
    bool is_placed(const Value* value) const { return storage_.slot(value) >= 0; }
    bool is_in_registers(const Value* value) const { return !is_placed(value) && !large_.in_loops(value); }
    void store_whole(Value* to, Value* value);
    void store_numbers(Value* to, Type type, const std::vector<Number>& numbers);
    Value* whole(Value* value);
    void move(const Value* to, Value* from);
    void move_all(const std::vector<Move>& moves);
    void copy(Value* to, Value* from);
    Value* position(const Operation& operation, Type type, std::size_t first, int width, std::int64_t outside);
    Value* position(Type type, const std::vector<std::int64_t>& path);

    // ---- large_values.cpp: parts, branches and loops ----
    void lower_all(Region& region, const std::vector<Operation*>& operations);
    void lower(Operation& operation);
    void append(Operation& operation) { b_.region().operations.push_back(&operation); }
    Value* behind(Value* first, Value* next);
    void lower_extract(Operation& operation);
    void lower_insert(Operation& operation);
    void lower_select(Operation& operation);
    void lower_yield(Operation& yield);
    void lower_if(Operation& operation);
    void lower_loop(Operation& loop);
    void forget_placed(std::vector<Value*>& values);

    // ---- component_loops.cpp ----
    using AtPosition = std::function<void(const Position&)>;
    Value* number(std::int64_t value) { return b_.integer(value, counter_); }
    using LoopBody = std::function<std::vector<Value*>(Value* k, const std::vector<Value*>& carried)>;
    // Returns the last carried values (ir/loop_builder.h).
    std::vector<Value*> counted(std::int64_t first, std::int64_t end, std::int64_t step, std::vector<Value*> starts,
                                const LoopBody& body);
    void for_each(std::int64_t count, const std::function<void(Value*)>& body, std::int64_t step = 1);
    // Runs `body` for each position of a value of this type, in order.
    void for_each_position(Type type, bool by_rows, const AtPosition& body);
    Position position_of(Type type, std::int64_t flat);
    Value* flat(Type type, const Position& at);
    // A component of a value that lies in memory or is computed.
    Value* component(Value* value, const Position& at);
    Value* component_of(const Operation& operation, const Position& at);
    std::vector<Value*> indices_of(const Operation& access, const Position& at);
    void store_parts(Value* to, const std::vector<Value*>& parts);
    bool lower_in_loops(Operation& operation);
    void lower_product(const Operation& operation);
    void store_products(const Operation& operation, Value* row, Value* col, int count);
    void lower_sum(const Operation& operation);
    void lower_atomic(const Operation& operation);
    void lower_print(Operation& operation);

    ir::Function& function_;
    const MemorySlots storage_;
    const LargeOperations& large_;
    const bool checks_parts_;
    const Type counter_;  // the type of positions
    ir::Builder b_;
    ir::ValueMap map_;
    std::vector<Value*> memories_;
};

}  // namespace weft::transform
