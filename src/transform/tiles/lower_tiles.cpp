#include "transform/tiles/lower_tiles.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ir/builder.h"
#include "ir/loop_builder.h"
#include "ir/tile_builder.h"
#include "ir/walk.h"
#include "support/error.h"
#include "transform/tiles/fuse_tiles.h"
#include "transform/tiles/tile_parts.h"

namespace weft::transform {

namespace {

using ir::Op;
using ir::Operation;
using ir::Region;
using ir::Value;

constexpr std::int64_t kMostUnrolled = 16;    // elements
constexpr std::int64_t kMostProducts = 64;    // of a matmul without loops
constexpr std::int64_t kPartialResults = 16;  // of a reduction
constexpr std::int64_t kRegisterTile = 4;     // rows and columns of a matmul that are summed at once

class Lowering {
public:
    explicit Lowering(ir::Function& function) : function_(function), b_(function, function.body), replaced_(function) {}

    void run() {
        inlined_ = fuse_tiles(function_);
        take_arguments(function_.body);
        function_.result = lowered(function_.result);
        region(function_.body);
    }

private:
    using Values = std::vector<Value*>;

    // ---- walking ----

    void region(Region& region) {
        std::vector<Operation*> operations = std::move(region.operations);
        region.operations.clear();
        ir::Builder::Inside inside(b_, region);
        for (Operation* operation : operations) lower(*operation);
    }

    void append(Operation& operation) {
        operation.parent = &b_.region();
        b_.region().operations.push_back(&operation);
    }

    void lower(Operation& operation) {
        for (Value*& operand : operation.operands) operand = replaced_[operand];
        b_.span = operation.span;
        switch (operation.op) {
            case Op::tile_generate:
                if (!inlined_.contains(&operation)) tiles_[operation.result()] = generated(operation);
                return;
            case Op::tile_each:
                return for_each(operation);
            case Op::tile_reduce:
                return replaced_.set(operation.result(), reduced(operation));
            case Op::tile_matmul:
                tiles_[operation.result()] = product(operation);
                return;
            case Op::extract_at:
                if (!is_tile(operation.operands[0])) break;
                return replaced_.set(operation.result(), element(operation.operands[0], operation.operands[1]));
            case Op::insert_at:
                if (!is_tile(operation.operands[0])) break;
                tiles_[operation.result()] =
                    with_element(operation.operands[0], operation.operands[1], operation.operands[2]);
                return;
            case Op::select:
                if (is_tile(operation.operands[1])) return lower_select(operation);
                break;
            case Op::make:
                if (operation.result()->type.is_tuple()) return lower_make(operation);
                break;
            case Op::extract:
                if (operation.result()->type.is_tile()) {
                    Value* const tile = operation.result();
                    pack(tile);
                    append(operation);
                    tiles_[tile] = parts_of(tile);
                    return;
                }
                break;
            case Op::call:
                return lower_call(operation);
            default:
                break;
        }
        expand_operands(operation);
        for (Region* inner : operation.regions) {
            take_arguments(*inner);
            region(*inner);
        }
        expand_results(operation);
        append(operation);
    }

    // ---- types ----

    // A tile is one vector, matrix or element for each of its parts; more than one in one value are a tuple.
    static Type lowered(Type type) {
        if (type.is_tile()) {
            std::vector<Type> types;
            for (const TilePart& part : tile_parts(type)) types.push_back(part.stored);
            return types.size() == 1 ? types[0] : Type::tuple(std::move(types));
        }
        if (!type.is_tuple()) return type;
        std::vector<Type> elements;
        for (const Type element : type.elements()) elements.push_back(lowered(element));
        return Type::tuple(std::move(elements));
    }

    // The parts of a tile that is one value.
    Values parts_of(Value* value) {
        if (!value->type.is_tuple()) return {value};
        Values parts;
        for (std::size_t i = 0; i < value->type.elements().size(); ++i)
            parts.push_back(b_.extract(value, {static_cast<std::int64_t>(i)}));
        return parts;
    }
    Value* whole(const Values& parts) {
        if (parts.size() == 1) return parts[0];
        std::vector<Type> types;
        for (const Value* part : parts) types.push_back(part->type);
        return b_.make(Type::tuple(std::move(types)), parts);
    }
    // The type of a tile; a parameter or result of a call has another one by now.
    Type type_of(const Value* value) const {
        const auto found = types_.find(value);
        return found == types_.end() ? value->type : found->second;
    }
    bool is_tile(const Value* value) const { return type_of(value).is_tile(); }
    // Gives a value that is a tile its type in one value.
    void pack(Value* value) {
        types_[value] = value->type;
        value->type = lowered(value->type);
    }
    const Values& tile(const Value* value) const {
        const auto found = tiles_.find(value);
        WEFT_CHECK(found != tiles_.end(), "a tile is used before it is made");
        return found->second;
    }

    // ---- structured operations, calls ----

    void expand_operands(Operation& operation) {
        const bool in_one = operation.op == Op::return_;
        Values operands;
        for (Value* operand : operation.operands) {
            if (!is_tile(operand))
                operands.push_back(operand);
            else if (in_one)
                operands.push_back(whole(tile(operand)));
            else
                operands.insert(operands.end(), tile(operand).begin(), tile(operand).end());
        }
        operation.operands = std::move(operands);
    }

    void take_arguments(Region& region) {
        Values arguments = std::move(region.arguments);
        region.arguments.clear();
        const bool in_one = &region == &function_.body;
        Values unpacked;
        for (Value* argument : arguments) {
            if (!argument->type.is_tile() || in_one) {
                if (argument->type.is_tile()) unpacked.push_back(argument);
                argument->index = static_cast<int>(region.arguments.size());
                region.arguments.push_back(argument);
                continue;
            }
            Values& parts = tiles_[argument];
            for (const TilePart& part : tile_parts(argument->type))
                parts.push_back(function_.add_argument(&region, part.stored, argument->name));
        }
        // Parameters are unpacked at the begin of the body.
        std::vector<Operation*> body = std::move(region.operations);
        region.operations.clear();
        {
            ir::Builder::Inside inside(b_, region);
            for (Value* argument : unpacked) {
                pack(argument);
                unpacked_.push_back({argument, parts_of(argument)});
            }
        }
        for (auto& [argument, parts] : unpacked_) tiles_[argument] = parts;
        unpacked_.clear();
        region.operations.insert(region.operations.end(), body.begin(), body.end());
    }

    void expand_results(Operation& operation) {
        Values results = std::move(operation.results);
        operation.results.clear();
        for (Value* result : results) {
            if (!result->type.is_tile()) {
                result->index = static_cast<int>(operation.results.size());
                operation.results.push_back(result);
                continue;
            }
            Values& parts = tiles_[result];
            for (const TilePart& part : tile_parts(result->type))
                parts.push_back(function_.add_result(&operation, part.stored, result->name));
        }
    }

    void lower_call(Operation& operation) {
        for (Value*& operand : operation.operands)
            if (is_tile(operand)) operand = whole(tile(operand));
        append(operation);
        if (operation.results.empty()) return;
        Value* const result = operation.result();
        if (!result->type.is_tile()) {
            result->type = lowered(result->type);
            return;
        }
        pack(result);
        tiles_[result] = parts_of(result);
    }

    void lower_make(Operation& operation) {
        for (Value*& operand : operation.operands)
            if (is_tile(operand)) operand = whole(tile(operand));
        operation.result()->type = lowered(operation.result()->type);
        append(operation);
    }

    void lower_select(const Operation& operation) {
        const Values &yes = tile(operation.operands[1]), &no = tile(operation.operands[2]);
        Values& chosen = tiles_[operation.result()];
        for (std::size_t i = 0; i < yes.size(); ++i) chosen.push_back(b_.select(operation.operands[0], yes[i], no[i]));
    }

    // ---- elements ----

    Value* element(const Value* from, Value* at) {
        const std::vector<TilePart> parts = tile_parts(type_of(from));
        Values elements;
        for (std::size_t i = 0; i < parts.size(); ++i) elements.push_back(read_part(b_, parts[i], tile(from)[i], at));
        return join_parts(b_, type_of(from).element(), elements);
    }

    Values with_element(const Value* from, Value* element, Value* at) {
        return written(type_of(from), tile(from), element, at);
    }
    Values written(Type type, Values values, Value* element, Value* at) {
        const std::vector<TilePart> parts = tile_parts(type);
        for (std::size_t i = 0; i < parts.size(); ++i) values[i] = write_part(b_, parts[i], values[i], element, at);
        return values;
    }

    Values zeros(Type type) {
        Values values;
        for (const TilePart& part : tile_parts(type)) values.push_back(b_.zero(part.stored));
        return values;
    }

    // Writes a copy of the body for these arguments. Returns the values that it yields.
    Values emit(const Region& body, const Values& arguments) {
        ir::ValueMap map(function_);
        for (std::size_t i = 0; i < arguments.size(); ++i) map.set(body.arguments[i], arguments[i]);
        return emit(body, map);
    }
    Values emit(const Region& body, ir::ValueMap& map) {
        for (const Operation* operation : body.operations) {
            if (operation == body.terminator()) break;
            lower(*ir::clone(function_, *operation, map));
        }
        Values yields;
        for (Value* value : body.terminator()->operands) yields.push_back(replaced_[map[value]]);
        return yields;
    }

    // Loops over the indices from number `axis` on, carrying values.
    template <typename Body>
    Values loops(const std::vector<std::int64_t>& extents, std::size_t axis, Values indices, Values carried,
                 const Body& body) {
        if (axis == extents.size()) return body(indices, carried);
        if (extents[axis] == 1) {
            indices.push_back(b_.integer(0));
            return loops(extents, axis + 1, std::move(indices), std::move(carried), body);
        }
        return ir::build_for(b_, b_.integer(0), b_.integer(extents[axis]), b_.integer(1), std::move(carried),
                             [&](Value* k, const Values& inner) {
                                 Values more = indices;
                                 more.push_back(k);
                                 return loops(extents, axis + 1, std::move(more), inner, body);
                             });
    }

    static std::vector<std::int64_t> indices_of(std::int64_t flat, const std::vector<std::int64_t>& extents) {
        std::vector<std::int64_t> indices(extents.size());
        for (std::size_t i = extents.size(); i-- > 0;) {
            indices[i] = flat % extents[i];
            flat /= extents[i];
        }
        return indices;
    }
    Values constants(const std::vector<std::int64_t>& numbers) {
        Values values;
        for (const std::int64_t number : numbers) values.push_back(b_.integer(number));
        return values;
    }

    Values generated(const Operation& operation) {
        const Type type = operation.result()->type;
        const std::int64_t size = type.size();
        const Region& body = operation.body();
        if (size <= kMostUnrolled) {
            Values elements;
            for (std::int64_t i = 0; i < size; ++i)
                elements.push_back(emit(body, constants(indices_of(i, operation.ints)))[0]);
            return made_of(b_, type, elements);
        }
        return loops(operation.ints, 0, {}, zeros(type), [&](const Values& at, const Values& carried) {
            Value* const element = emit(body, at)[0];
            return written(type, carried, element, ir::flat_index(b_, operation.ints, at));
        });
    }

    void for_each(const Operation& operation) {
        std::int64_t size = 1;
        for (const std::int64_t extent : operation.ints) size *= extent;
        if (size <= kMostUnrolled) {
            for (std::int64_t i = 0; i < size; ++i) emit(operation.body(), constants(indices_of(i, operation.ints)));
            return;
        }
        loops(operation.ints, 0, {}, {}, [&](const Values& at, const Values&) {
            emit(operation.body(), at);
            return Values{};
        });
    }

    // ---- reductions ----

    // Element number `flat` of a tile that is in memory, or computed here.
    struct Elements {
        const Value* tile;
        const Operation* computed;  // null: it is in memory
    };
    Value* element_of(const Elements& elements, Value* flat) {
        if (!elements.computed) return element(elements.tile, flat);
        Values indices{flat};
        const std::vector<std::int64_t>& extents = elements.computed->ints;
        if (extents.size() > 1) {
            indices.assign(extents.size(), nullptr);
            for (std::size_t i = extents.size(); i-- > 1;) {
                indices[i] = b_.binary(Op::rem, flat, b_.integer(extents[i]));
                flat = b_.binary(Op::div, flat, b_.integer(extents[i]));
            }
            indices[0] = flat;
        }
        return emit(elements.computed->body(), indices)[0];
    }

    // Element k goes to the partial result k mod 16. These are combined as a tree. The order depends on the size alone.
    Value* reduced(const Operation& operation) {
        const Value* tile = operation.operands[0];
        const Elements elements{tile, inlined_.contains(tile->definition) ? tile->definition : nullptr};
        const std::int64_t size = type_of(tile).size(), width = std::min(size, kPartialResults);
        const auto combine = [&](Value* a, Value* b) { return emit(operation.body(), {a, b})[0]; };
        Values partial;
        for (std::int64_t i = 0; i < width; ++i) partial.push_back(element_of(elements, b_.integer(i)));
        std::int64_t done = width;
        if (const std::int64_t rounds = size / width; rounds > 3) {
            partial = ir::build_for(
                b_, b_.integer(width), b_.integer(rounds * width), b_.integer(width), partial,
                [&](Value* k, const Values& carried) {
                    Values next;
                    for (std::int64_t i = 0; i < width; ++i) {
                        Value* const at = b_.binary(Op::add, k, b_.integer(i));
                        next.push_back(combine(carried[static_cast<std::size_t>(i)], element_of(elements, at)));
                    }
                    return next;
                });
            done = rounds * width;
        }
        for (; done < size; ++done) {
            Value*& into = partial[static_cast<std::size_t>(done % width)];
            into = combine(into, element_of(elements, b_.integer(done)));
        }
        for (std::size_t half = kPartialResults / 2; half > 0; half /= 2)
            for (std::size_t i = 0; i < half; ++i)
                if (i + half < partial.size()) partial[i] = combine(partial[i], partial[i + half]);
        return partial[0];
    }

    // ---- products ----

    Values product(const Operation& operation) {
        const Value *a = operation.operands[0], *b = operation.operands[1];
        const Type type = operation.result()->type, scalar = type.element();
        const std::int64_t rows = type.shape()[0], inner = type_of(a).shape()[1], cols = type.shape()[1];
        const auto at = [&](Value* row, std::int64_t width, Value* col) {
            return b_.binary(Op::add, b_.binary(Op::mul, row, b_.integer(width)), col);
        };
        if (rows * inner * cols <= kMostProducts) {
            Values elements;
            for (std::int64_t i = 0; i < rows; ++i) {
                for (std::int64_t j = 0; j < cols; ++j) {
                    Value* sum = nullptr;
                    for (std::int64_t k = 0; k < inner; ++k) {
                        Value *x = element(a, b_.integer(i * inner + k)), *y = element(b, b_.integer(k * cols + j));
                        sum = sum ? b_.fma(x, y, sum) : b_.binary(Op::mul, x, y);
                    }
                    elements.push_back(sum);
                }
            }
            return made_of(b_, type, elements);
        }
        // The sums of a few rows and columns stay in registers.
        const auto block = [&](Value* row, Value* col, std::int64_t height, std::int64_t width, Values carried) {
            Values sums(static_cast<std::size_t>(height * width), b_.zero(scalar));
            const auto below = [&](Value* from, std::int64_t by) { return b_.binary(Op::add, from, b_.integer(by)); };
            sums = ir::build_for(b_, b_.integer(0), b_.integer(inner), b_.integer(1), sums, [&](Value* k, Values next) {
                Values left, right;
                for (std::int64_t i = 0; i < height; ++i) left.push_back(element(a, at(below(row, i), inner, k)));
                for (std::int64_t j = 0; j < width; ++j) right.push_back(element(b, at(k, cols, below(col, j))));
                for (std::size_t i = 0; i < left.size(); ++i)
                    for (std::size_t j = 0; j < right.size(); ++j) {
                        Value*& sum = next[i * right.size() + j];
                        sum = b_.fma(left[i], right[j], sum);
                    }
                return next;
            });
            for (std::int64_t i = 0; i < height; ++i)
                for (std::int64_t j = 0; j < width; ++j)
                    carried = written(type, carried, sums[static_cast<std::size_t>(i * width + j)],
                                      at(below(row, i), cols, below(col, j)));
            return carried;
        };
        const std::int64_t whole_rows = rows / kRegisterTile * kRegisterTile,
                           whole_cols = cols / kRegisterTile * kRegisterTile;
        const auto along_columns = [&](Value* row, std::int64_t height, Values carried) {
            if (whole_cols > 0)
                carried = counted(whole_cols, std::move(carried), [&](Value* col, const Values& inside) {
                    return block(row, col, height, kRegisterTile, inside);
                });
            if (whole_cols < cols)
                carried = block(row, b_.integer(whole_cols), height, cols - whole_cols, std::move(carried));
            return carried;
        };
        Values result = zeros(type);
        if (whole_rows > 0)
            result = counted(whole_rows, std::move(result), [&](Value* row, const Values& inside) {
                return along_columns(row, kRegisterTile, inside);
            });
        if (whole_rows < rows) result = along_columns(b_.integer(whole_rows), rows - whole_rows, std::move(result));
        return result;
    }

    template <typename Body>
    Values counted(std::int64_t end, Values carried, const Body& body) {
        return ir::build_for(b_, b_.integer(0), b_.integer(end), b_.integer(kRegisterTile), std::move(carried), body);
    }

    ir::Function& function_;
    ir::Builder b_;
    ir::ValueMap replaced_;  // elements
    std::unordered_map<const Value*, Values> tiles_;
    std::unordered_map<const Value*, Type> types_;
    std::vector<std::pair<Value*, Values>> unpacked_;
    std::unordered_set<const Operation*> inlined_;  // computed in the loop of the reduction that uses them
};

bool has_tiles(const ir::Function& function) {
    bool any = function.result.is_tile();
    const auto look = [&](const Value* value) { any |= value->type.is_tile(); };
    for (const Value* parameter : function.parameters()) look(parameter);
    ir::for_each_operation(function.body, [&](const Operation& operation) {
        any |= operation.op == Op::tile_each;
        for (const Value* result : operation.results) look(result);
    });
    return any;
}

}  // namespace

void lower_tiles(ir::Module& module) {
    for (const auto& function : module.functions)
        if (has_tiles(*function)) Lowering(*function).run();
}

}  // namespace weft::transform
