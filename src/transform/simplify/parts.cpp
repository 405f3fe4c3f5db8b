// Values made of parts: a part that is taken out of a value just put together is used directly.
#include <algorithm>

#include "ir/typing.h"
#include "transform/simplify/simplifier.h"

namespace weft::transform {

using ir::Op;
using ir::Operation;
using ir::Value;

namespace {

using Path = std::vector<std::int64_t>;

bool starts_with(const Path& path, const Path& with) {
    return path.size() >= with.size() && std::equal(with.begin(), with.end(), path.begin());
}

// The number of scalars in `type` before the part at `path`.
std::int64_t leaf_offset(Type type, std::span<const std::int64_t> path) {
    std::int64_t offset = 0;
    for (const std::int64_t at : path) {
        const std::int64_t head[] = {at};
        if (type.is_struct()) {
            for (std::int64_t i = 0; i < at; ++i)
                offset += ir::leaf_count(type.fields()[static_cast<std::size_t>(i)].type);
        } else if (type.is_tuple()) {
            for (std::int64_t i = 0; i < at; ++i)
                offset += ir::leaf_count(type.elements()[static_cast<std::size_t>(i)]);
        } else {
            offset += at * ir::leaf_count(ir::part_type(type, head));
        }
        type = ir::part_type(type, head);
    }
    return offset;
}

}  // namespace

// extract (make a, b, c)[1] → b            extract (insert v[i], x)[i] → x
// extract (insert v[j], x)[i] → extract v[i]   extract (splat x)[i] → x   extract (extract v[i])[j] → extract v[i, j]
Value* Simplifier::extract(Operation& operation) {
    while (true) {
        Value* const whole = operation.operands[0];
        const Operation* made = whole->definition;
        if (!made) return nullptr;
        const Path& path = operation.ints;
        const Type type = operation.results[0]->type;
        switch (made->op) {
            case Op::constant: {
                const std::int64_t first = leaf_offset(whole->type, path);
                const auto begin = made->numbers.begin() + first;
                return constant(type, std::vector<Number>(begin, begin + ir::leaf_count(type)), operation.span);
            }
            case Op::splat:
                if (type == made->operands[0]->type) return made->operands[0];
                change(operation, Op::splat, {made->operands[0]});
                return nullptr;
            case Op::make: {
                if (whole->type.is_matrix() && path.size() == 1) {
                    const std::ptrdiff_t cols = whole->type.cols();
                    const auto row = made->operands.begin() + path[0] * cols;
                    change(operation, Op::make, std::vector<Value*>(row, row + cols));
                    return make(operation);
                }
                const bool entry = whole->type.is_matrix();
                const std::int64_t at = entry ? path[0] * whole->type.cols() + path[1] : path[0];
                Value* const part = made->operands[static_cast<std::size_t>(at)];
                const std::size_t used = entry ? 2 : 1;
                if (path.size() == used) return part;
                change(operation, Op::extract, {part},
                       Path(path.begin() + static_cast<std::ptrdiff_t>(used), path.end()));
                break;
            }
            case Op::insert:
                if (path == made->ints) return made->operands[1];
                if (starts_with(path, made->ints)) {
                    change(operation, Op::extract, {made->operands[1]},
                           Path(path.begin() + static_cast<std::ptrdiff_t>(made->ints.size()), path.end()));
                } else if (starts_with(made->ints, path)) {
                    return nullptr;  // part of the requested value was replaced
                } else {
                    change(operation, Op::extract, {made->operands[0]}, Path(path));
                }
                break;
            case Op::extract: {
                Path joined = made->ints;
                joined.insert(joined.end(), path.begin(), path.end());
                change(operation, Op::extract, {made->operands[0]}, std::move(joined));
                break;
            }
            default:
                return nullptr;
        }
    }
}

// make 1, 2, 3 → constant (1, 2, 3);  make v[0], v[1], v[2] → v
Value* Simplifier::make(Operation& operation) {
    const Type type = operation.results[0]->type;
    const bool all_constant = std::all_of(operation.operands.begin(), operation.operands.end(),
                                          [](const Value* part) { return constant_numbers(part) != nullptr; });
    if (all_constant && !operation.operands.empty() && !type.is_tuple()) {
        std::vector<Number> numbers;
        for (const Value* part : operation.operands) {
            const std::vector<Number>& of_part = *constant_numbers(part);
            numbers.insert(numbers.end(), of_part.begin(), of_part.end());
        }
        return constant(type, std::move(numbers), operation.span);
    }

    Value* whole = nullptr;
    for (std::size_t i = 0; i < operation.operands.size(); ++i) {
        const Operation* part = operation.operands[i]->definition;
        if (!part || part->op != Op::extract || part->operands[0]->type != type) return nullptr;
        if (whole && part->operands[0] != whole) return nullptr;
        whole = part->operands[0];
        const std::int64_t at = static_cast<std::int64_t>(i);
        const Path wanted = type.is_matrix() ? Path{at / type.cols(), at % type.cols()} : Path{at};
        if (part->ints != wanted) return nullptr;
    }
    return whole;
}

// insert (insert v[i], x)[i], y → insert v[i], y;  insert of a constant into a constant → constant
Value* Simplifier::insert(Operation& operation) {
    const Operation* made = operation.operands[0]->definition;
    if (made && made->op == Op::insert && starts_with(made->ints, operation.ints)) {
        operation.operands[0] = made->operands[0];
        changed_ = true;
    }
    const std::vector<Number>* whole = constant_numbers(operation.operands[0]);
    const std::vector<Number>* part = constant_numbers(operation.operands[1]);
    if (!whole || !part) return nullptr;
    std::vector<Number> numbers = *whole;
    std::copy(part->begin(), part->end(), numbers.begin() + leaf_offset(operation.operands[0]->type, operation.ints));
    return constant(operation.results[0]->type, std::move(numbers), operation.span);
}

// extract_at v[2] → extract v[2], and the same for insert_at, if every index is a constant inside the value. Others
// stay: an index out of range is a fault in debug builds.
bool Simplifier::make_static(Operation& operation) {
    const bool inserts = operation.op == Op::insert_at;
    const std::size_t first = inserts ? 2 : 1;
    const Type type = operation.operands[0]->type;
    Path path;
    for (std::size_t i = first; i < operation.operands.size(); ++i) {
        const Number* index = uniform_constant(operation.operands[i]);
        if (!index) return false;
        const std::int64_t extent = !type.is_matrix() ? type.components() : i == first ? type.rows() : type.cols();
        if (index->i < 0 || index->i >= extent) return false;
        path.push_back(index->i);
    }
    std::vector<Value*> operands(operation.operands.begin(),
                                 operation.operands.begin() + static_cast<std::ptrdiff_t>(first));
    change(operation, inserts ? Op::insert : Op::extract, std::move(operands), std::move(path));
    return true;
}

}  // namespace weft::transform
