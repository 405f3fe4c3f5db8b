// Large vectors that are indexed at run time go to memory of the thread (memory_slots.h):
//
//     before:  %s = for %k = %0 to %n step %1 carry (%v = %zeros) {
//                  %x = load %a[%k]; %w = insert_at %v[%k], %x; yield %w
//              }
//     after:   fill %m with 0; for %k = %0 to %n step %1 { %x = load %a[%k]; store %m[%k], %x }
//
// Reads give the same component as before the pass: the first one if the index is out of range. Writes out of range go
// to an extra element behind the others, which is never read. Operands and results of operations that are loops over
// components (large_operations.h) go to memory too.
#include "transform/vectors_in_memory/large_values.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <unordered_map>
#include <utility>

#include "ir/typing.h"
#include "support/error.h"
#include "transform/simplify/constants.h"
#include "transform/simplify/simplify.h"
#include "transform/vectors_in_memory/large_fields.h"
#include "transform/vectors_in_memory/vectors_in_memory.h"

namespace weft::transform {

using ir::Op;
using ir::Operation;
using ir::Region;
using ir::Value;

namespace {

// The limit for all memory of one thread: it lies on the stack of the worker.
constexpr std::int64_t kMostBytes = 2 * 1024 * 1024;

// The number of components of the largest value of a function.
int most_components(const ir::Function& function) {
    int most = 0;
    const auto look = [&](const std::vector<Value*>& values) {
        for (const Value* value : values) most = std::max(most, ir::most_components(value->type));
    };
    look(function.parameters());
    ir::for_each_operation(function.body, [&](const Operation& operation) {
        look(operation.results);
        for (const Region* region : operation.regions) look(region->arguments);
    });
    return most;
}

}  // namespace

VectorsInMemory::VectorsInMemory(ir::Function& function, MemorySlots storage, const LargeOperations& operations,
                                 bool checks_parts)
    : function_(function),
      storage_(std::move(storage)),
      large_(operations),
      checks_parts_(checks_parts),
      counter_(operations.any() ? i64_type() : i32_type()),
      b_(function, function.body),
      map_(function) {}

void VectorsInMemory::run() {
    Region& body = function_.body;
    std::vector<Operation*> rest = std::exchange(body.operations, {});
    if (!rest.empty()) b_.span = rest.front()->span;
    std::int64_t bytes = 0;
    for (const Type type : storage_.types) bytes += type.size_bytes();
    if (bytes > kMostBytes)
        throw CompileError(function_.span,
                           "the large vectors and matrices of '" + function_.name + "' need " + std::to_string(bytes) +
                               " bytes for each thread, and there are " + std::to_string(kMostBytes),
                           {{Note::Kind::help, "make them smaller, or keep them in arrays", {}}}, ErrorCategory::value);
    for (const Type type : storage_.types) memories_.push_back(make_memory(type));
    for (Value* parameter : function_.parameters())
        if (is_placed(parameter)) store_whole(memory(parameter), parameter);
    lower_all(body, rest);
    ir::replace_uses(body, map_);
}

// ---- memory ----

Value* VectorsInMemory::make_memory(Type type) {
    const int behind = type.is_matrix() ? type.cols() : 1;
    Value* made = b_.local_array(Type::array(type.scalar_type(), 1), {type.components() + behind});
    made->definition->unset = true;
    return made;
}

// Stores a value in registers to memory.
void VectorsInMemory::store_whole(Value* to, Value* value) {
    const Type type = value->type;
    Value* same = nullptr;  // the scalar in all components, if they are equal
    if (value->definition && value->definition->op == Op::splat) same = map_[value->definition->operands[0]];
    if (const Number* number = uniform_constant(value)) same = b_.constant(type.scalar_type(), {*number});
    if (same) return for_each(type.components(), [&](Value* k) { b_.store(to, {k}, same); });
    for (int i = 0; i < type.components(); ++i) {
        Value* component =
            type.is_matrix() ? b_.extract(value, {i / type.cols(), i % type.cols()}) : b_.extract(value, {i});
        b_.store(to, {number(i)}, component);
    }
}

// Fills `to` with the most frequent number, and then stores the others.
void VectorsInMemory::store_numbers(Value* to, Type type, const std::vector<Number>& numbers) {
    const auto bits = [](const Number& number) {
        return number.is_float ? std::bit_cast<std::int64_t>(number.f) : number.i;
    };
    std::unordered_map<std::int64_t, int> counts;
    std::int64_t most = bits(numbers[0]);
    for (const Number& number : numbers)
        if (++counts[bits(number)] > counts[most]) most = bits(number);
    const auto is_most = [&](const Number& number) { return bits(number) == most; };
    Value* filled = b_.constant(type.scalar_type(), {*std::find_if(numbers.begin(), numbers.end(), is_most)});
    for_each(type.components(), [&](Value* k) { b_.store(to, {k}, filled); });
    for (std::size_t i = 0; i < numbers.size(); ++i)
        if (!is_most(numbers[i]))
            b_.store(to, {number(static_cast<std::int64_t>(i))}, b_.constant(type.scalar_type(), {numbers[i]}));
}

// The value in registers, loaded if necessary.
Value* VectorsInMemory::whole(Value* value) {
    if (is_in_registers(value)) return map_[value];
    std::vector<Value*> parts;
    for (int i = 0; i < value->type.components(); ++i) parts.push_back(component(value, position_of(value->type, i)));
    return b_.make(value->type, std::move(parts));
}

// Stores `from` in the memory of `to`, if `to` has any.
void VectorsInMemory::move(const Value* to, Value* from) {
    if (!is_placed(to)) return;
    if (is_in_registers(from)) return store_whole(memory(to), map_[from]);
    if (is_placed(from) && storage_.slot(to) == storage_.slot(from)) return;
    copy(memory(to), from);
}

void VectorsInMemory::copy(Value* to, Value* from) {
    for_each_position(from->type, large_.needs_rows(from), [&](const Position& at) {
        Value* read = component(from, at);
        b_.store(to, {flat(from->type, at)}, read);
    });
}

// Does the moves one after the other. Sources that an earlier move would overwrite are copied first.
void VectorsInMemory::move_all(const std::vector<Move>& moves) {
    const auto sources = [&](Value* from) {
        std::vector<int> slots;
        if (is_placed(from)) slots.push_back(storage_.slot(from));
        for (const LargeOperations::Source& source : large_.sources(from)) slots.push_back(storage_.slot(source.value));
        return slots;
    };
    std::unordered_map<std::size_t, Value*> copies;
    for (std::size_t i = 0; i < moves.size(); ++i) {
        const int written = storage_.slot(moves[i].to);
        if (written < 0 || (is_placed(moves[i].from) && storage_.slot(moves[i].from) == written)) continue;
        for (std::size_t later = i + 1; later < moves.size(); ++later) {
            const int to = storage_.slot(moves[later].to);
            if (to < 0 || copies.contains(later) || is_in_registers(moves[later].from)) continue;
            const std::vector<int> read = sources(moves[later].from);
            if (std::find(read.begin(), read.end(), written) == read.end()) continue;
            Value* saved = make_memory(moves[later].to->type);
            copy(saved, moves[later].from);
            copies.emplace(later, saved);
        }
    }
    for (std::size_t i = 0; i < moves.size(); ++i) {
        const auto saved = copies.find(i);
        if (saved == copies.end()) {
            move(moves[i].to, moves[i].from);
            continue;
        }
        for_each(moves[i].to->type.components(),
                 [&](Value* k) { b_.store(memory(moves[i].to), {k}, b_.load(saved->second, {k})); });
    }
}

// The number of the first component that the indices from operand `first` on name, for a part of `width` components.
// Gives that of part `outside` if the indices are out of range.
Value* VectorsInMemory::position(const Operation& operation, Type type, std::size_t first, int width,
                                 std::int64_t outside) {
    const std::vector<Value*> indices(operation.operands.begin() + static_cast<std::ptrdiff_t>(first),
                                      operation.operands.end());
    Value* at = b_.cast(map_[indices[0]], Scalar::i32);
    if (indices.size() > 1)
        at =
            b_.binary(Op::add, b_.binary(Op::mul, at, b_.integer(type.cols())), b_.cast(map_[indices[1]], Scalar::i32));
    const int count = type.components() / width;
    Value* limit = b_.constant(Type::scalar(Scalar::u32), {Number::integer(count)});
    Value* inside = b_.compare(Op::cmp_lt, b_.bitcast(at, Scalar::u32), limit);
    at = b_.select(inside, at, b_.integer(outside));
    if (checks_parts_) {
        // An index into zeros is checked like any other, and gives a zero.
        std::vector<Value*> mapped;
        for (Value* index : indices) mapped.push_back(map_[index]);
        Value* zero = b_.extract_at(b_.zero(type), mapped);
        if (!zero->type.is_scalar()) zero = b_.extract(zero, {0});
        at = b_.binary(Op::add, at, b_.cast(zero, Scalar::i32));
    }
    return width == 1 ? at : b_.binary(Op::mul, at, b_.integer(width));
}

Value* VectorsInMemory::position(Type type, const std::vector<std::int64_t>& path) {
    const std::int64_t cols = type.is_matrix() ? type.cols() : 1;
    return b_.integer(path[0] * cols + (path.size() > 1 ? path[1] : 0));
}

// ---- operations ----

void VectorsInMemory::lower_all(Region& region, const std::vector<Operation*>& operations) {
    ir::Builder::Inside inside(b_, region);
    for (Operation* operation : operations) {
        b_.span = operation->span;
        const std::size_t first = region.operations.size();
        lower(*operation);
        for (std::size_t i = first; i < region.operations.size(); ++i) {
            if (region.operations[i] == operation) continue;
            region.operations[i]->inlined = operation->inlined;
            for (Region* inner : region.operations[i]->regions)
                ir::for_each_operation(*inner, [&](Operation& made) { made.inlined = operation->inlined; });
        }
    }
}

void VectorsInMemory::lower(Operation& operation) {
    switch (operation.op) {
        case Op::if_:
            return lower_if(operation);
        case Op::for_:
        case Op::while_:
            return lower_loop(operation);
        case Op::yield:
            return lower_yield(operation);
        case Op::extract:
        case Op::extract_at:
            if (!is_in_registers(operation.operands[0])) return lower_extract(operation);
            break;
        case Op::insert:
        case Op::insert_at:
            if (is_placed(operation.result())) return lower_insert(operation);
            break;
        case Op::select:
            if (is_placed(operation.result())) return lower_select(operation);
            break;
        case Op::argument:
            return append(operation);
        default:
            break;
    }
    if (lower_in_loops(operation)) return;
    for (Value*& operand : operation.operands)
        if (!is_in_registers(operand)) operand = whole(operand);
    append(operation);
    for (Value* result : operation.results)
        if (is_placed(result)) store_whole(memory(result), result);
}

VectorsInMemory::Value* VectorsInMemory::behind(Value* first, Value* next) {
    if (first->type != next->type) first = b_.cast(first, next->type.scalar());
    return b_.binary(Op::add, first, next);
}

void VectorsInMemory::lower_extract(Operation& operation) {
    Value* from = operation.operands[0];
    const Type type = from->type, part = operation.result()->type;
    Value* first = operation.op == Op::extract ? position(type, operation.ints)
                                               : position(operation, type, 1, part.components(), 0);
    // The component `next` places behind the first one.
    const auto read = [&](Value* next) -> Value* {
        Value* at = next ? behind(first, next) : first;
        if (!large_.needs_rows(from)) return component(from, {at});
        Value* cols = b_.integer(type.cols(), at->type);
        return component(from, {at, b_.binary(Op::div, at, cols), b_.binary(Op::rem, at, cols)});
    };
    if (part.is_scalar()) return map_.set(operation.result(), read(nullptr));
    if (is_placed(operation.result())) {
        Value* to = memory(operation.result());
        return for_each(part.components(), [&](Value* k) { b_.store(to, {k}, read(k)); });
    }
    std::vector<Value*> parts;
    for (int i = 0; i < part.components(); ++i) parts.push_back(read(b_.integer(i)));
    map_.set(operation.result(), b_.make(part, std::move(parts)));
}

void VectorsInMemory::lower_insert(Operation& operation) {
    const Type type = operation.result()->type;
    Value* part = operation.operands[1];
    const bool in_registers = is_in_registers(part);
    if (in_registers) part = map_[part];
    const int width = part->type.components();
    Value* first = operation.op == Op::insert ? position(type, operation.ints)
                                              : position(operation, type, 2, width, type.components() / width);
    move(operation.result(), operation.operands[0]);
    Value* to = memory(operation.result());
    if (part->type.is_scalar()) return b_.store(to, {first}, part);
    if (!in_registers) {
        return for_each(width, [&](Value* k) {
            Value* read = component(part, {k});
            b_.store(to, {behind(first, k)}, read);
        });
    }
    for (int i = 0; i < width; ++i) b_.store(to, {b_.binary(Op::add, first, b_.integer(i))}, b_.extract(part, {i}));
}

void VectorsInMemory::lower_select(Operation& operation) {
    const Value* result = operation.result();
    Operation* branch = b_.if_(map_[operation.operands[0]], {});
    for (const std::size_t arm : {1, 2}) {
        ir::Builder::Inside inside(b_, *branch->regions[arm - 1]);
        move(result, operation.operands[arm]);
        b_.yield({});
    }
}

// Moves the operands of a yield to the results of the branch, or to the arguments of the next iteration.
void VectorsInMemory::lower_yield(Operation& yield) {
    const Operation& owner = *b_.region().owner;
    const bool tests = owner.op == Op::while_ && &b_.region() == owner.regions[0];
    if (!tests) {
        const std::vector<Value*>& targets = owner.op == Op::if_ ? owner.results : owner.body(0).arguments;
        const std::size_t skipped = owner.op == Op::if_ ? 0 : ir::carried_arguments(owner);
        for (std::size_t i = 0; i < yield.operands.size(); ++i)
            if (!is_placed(targets[skipped + i])) yield.operands[i] = whole(yield.operands[i]);
        std::vector<Move> moves;
        for (std::size_t i = 0; i < yield.operands.size(); ++i)
            if (is_placed(targets[skipped + i])) moves.push_back({targets[skipped + i], yield.operands[i]});
        move_all(moves);
        std::size_t i = 0;
        std::erase_if(yield.operands, [&](const Value*) { return is_placed(targets[skipped + i++]); });
    }
    append(yield);
}

void VectorsInMemory::lower_if(Operation& operation) {
    append(operation);
    for (Region* arm : operation.regions) lower_all(*arm, std::exchange(arm->operations, {}));
    forget_placed(operation.results);
}

void VectorsInMemory::lower_loop(Operation& loop) {
    const std::size_t operands = ir::carried_operands(loop), arguments = ir::carried_arguments(loop);
    std::vector<Value*>& carried = loop.body(0).arguments;
    for (std::size_t i = 0; i < loop.results.size(); ++i)
        if (!is_placed(carried[arguments + i])) loop.operands[operands + i] = whole(loop.operands[operands + i]);
    for (std::size_t i = 0; i < loop.results.size(); ++i) move(carried[arguments + i], loop.operands[operands + i]);
    append(loop);
    for (Region* region : loop.regions) {
        std::vector<Operation*> before = std::exchange(region->operations, {});
        ir::Builder::Inside inside(b_, *region);
        if (region != loop.regions[0])
            for (std::size_t i = 0; i < carried.size(); ++i) move(region->arguments[i], carried[i]);
        lower_all(*region, before);
    }
    for (std::size_t i = 0; i < loop.results.size(); ++i) move(loop.results[i], carried[arguments + i]);

    std::size_t i = 0;
    const std::vector<Value*> all = carried;
    std::erase_if(loop.operands, [&](const Value*) {
        const std::size_t at = i++;
        return at >= operands && is_placed(all[arguments + at - operands]);
    });
    for (Region* region : loop.regions) forget_placed(region->arguments);
    forget_placed(loop.results);
}

void VectorsInMemory::forget_placed(std::vector<Value*>& values) {
    std::erase_if(values, [&](const Value* value) { return is_placed(value); });
    for (std::size_t i = 0; i < values.size(); ++i) values[i]->index = static_cast<int>(i);
}

bool keep_vectors_in_memory(ir::Function& function, const VectorsInMemoryOptions& options) {
    const int most = most_components(function);
    if (most <= std::min(options.most_unrolled, options.most_in_registers)) return false;
    if (most > options.most_unrolled) {
        const bool reads = read_large_parameters(function, options.most_unrolled);
        if (split_large_structs(function, options.most_unrolled) || reads) simplify(function);
    }
    const LargeOperations operations(function, options);
    const int most_in_registers = options.checks_parts ? std::numeric_limits<int>::max() : options.most_in_registers;
    MemorySlots storage = assign_memory_slots(function, most_in_registers, operations);
    if (storage.types.empty() && !operations.any()) return false;
    VectorsInMemory(function, std::move(storage), operations, options.checks_parts).run();
    return true;
}

}  // namespace weft::transform
