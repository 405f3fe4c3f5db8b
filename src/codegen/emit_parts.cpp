// Aggregates. They are plain lists of leaves, so that taking them apart and building them costs nothing.
#include "codegen/emitter.h"
#include "ir/indices.h"
#include "support/error.h"

namespace weft::codegen {

using ir::Op;
using ir::Operation;

void Emitter::emit_constant(const Operation& operation) {
    const ir::Value* result = operation.result();
    LaneValue whole{result->type, {}, {}};
    std::vector<LeafType> leaves = leaf_types(result->type);
    for (std::size_t i = 0; i < leaves.size(); ++i)
        whole.leaves.push_back(Leaf::of_scalar(number(leaves[i].scalar, operation.numbers[i])));
    set(result, std::move(whole));
}

// make: the leaves of the operands one after the other; splat: those of the one operand repeated.
void Emitter::emit_make(const Operation& operation) {
    const ir::Value* result = operation.result();
    LaneValue whole{result->type, {}, {}};
    std::size_t count = static_cast<std::size_t>(leaf_count(result->type));
    for (std::size_t n = 0; whole.leaves.size() < count; ++n) {
        LaneValue& part = value(operation.operands[operation.op == Op::splat ? 0 : n]);
        whole.leaves.append(part.leaves.begin(), part.leaves.end());
    }
    set(result, std::move(whole));
}

void Emitter::emit_extract(const Operation& operation) {
    LaneValue& aggregate = value(operation.operands[0]);
    LeafRange part = find_part(operation.operands[0]->type, operation.ints);
    LaneValue whole{part.type, {}, {}};
    auto first = aggregate.leaves.begin() + part.first;
    whole.leaves.append(first, first + leaf_count(part.type));
    set(operation.result(), std::move(whole));
}

void Emitter::emit_insert(const Operation& operation) {
    LaneValue whole = value(operation.operands[0]);
    LaneValue& inserted = value(operation.operands[1]);
    LeafRange part = find_part(operation.operands[0]->type, operation.ints);
    std::copy(inserted.leaves.begin(), inserted.leaves.end(), whole.leaves.begin() + part.first);
    set(operation.result(), std::move(whole));
}

namespace {

// The flat position of a dynamic index counts parts of this many leaves.
int leaves_per_part(Type aggregate, std::size_t indices) {
    return aggregate.is_matrix() && indices == 1 ? aggregate.cols() : 1;
}

}  // namespace

// A dynamic index is compared with each position: aggregates live in registers, and a short chain of selects is faster
// than a way through memory.
void Emitter::emit_extract_at(const Operation& operation) {
    const ir::Value* source = operation.operands[0];
    LaneValue& aggregate = value(source);
    std::size_t indices = operation.operands.size() - 1;
    int width = leaves_per_part(source->type, indices);
    int parts = leaf_count(source->type) / width;
    Leaf position = flat_position(operation, 1, indices);
    note_part(operation, position, width * info(source->type.scalar()).bytes());
    LaneValue whole{operation.result()->type, {}, {}};
    for (int n = 0; n < width; ++n) {
        Leaf chosen = aggregate.leaves[static_cast<std::size_t>(n)];
        for (int part = 1; part < parts; ++part) {
            Leaf& candidate = aggregate.leaves[static_cast<std::size_t>(part * width + n)];
            // Equal constants need no choice: large zeros, of which only the index is checked.
            if (candidate.uniform() && chosen.uniform() && candidate.scalar == chosen.scalar) continue;
            chosen = lift({&position, &candidate, &chosen}, [&](Values v) {
                llvm::Value* here = builder_.CreateICmpEQ(
                    v[0], llvm::ConstantInt::get(v[0]->getType(), static_cast<std::uint64_t>(part)));
                return builder_.CreateSelect(here, v[1], v[2]);
            });
        }
        whole.leaves.push_back(chosen);
    }
    set(operation.result(), std::move(whole));
}

void Emitter::emit_insert_at(const Operation& operation) {
    const ir::Value* source = operation.operands[0];
    LaneValue whole = value(source);
    LaneValue& inserted = value(operation.operands[1]);
    std::size_t indices = operation.operands.size() - 2;
    int width = leaves_per_part(source->type, indices);
    Leaf position = flat_position(operation, 2, indices);
    for (int i = 0; i < leaf_count(source->type); ++i) {
        Leaf& old = whole.leaves[static_cast<std::size_t>(i)];
        Leaf& fresh = inserted.leaves[static_cast<std::size_t>(i % width)];
        old = lift({&position, &fresh, &old}, [&](Values v) {
            llvm::Value* here = builder_.CreateICmpEQ(
                v[0], llvm::ConstantInt::get(v[0]->getType(), static_cast<std::uint64_t>(i / width)));
            return builder_.CreateSelect(here, v[1], v[2]);
        });
    }
    set(operation.result(), std::move(whole));
}

// One or two dynamic indices as one i32; checked in debug builds.
Leaf Emitter::flat_position(const Operation& operation, std::size_t first, std::size_t count) {
    Type type = operation.operands[0]->type;
    Leaf flat;
    for (std::size_t n = 0; n < count; ++n) {
        const ir::Value* index = operation.operands[first + n];
        int extent = n == 0 ? type.rows() : type.cols();
        Leaf& dynamic = leaf(index);
        if (options_.debug) {
            llvm::Value *extended = wide(dynamic, index->type.scalar()), *written = extended;
            if (const ir::Value* before = ir::as_written(index)) written = wide(leaf(before), before->type.scalar());
            check(operation, builder_.CreateICmpULT(extended, i64(extent)), FaultKind::bounds, written, i64(extent),
                  static_cast<int>(n));
        }
        Leaf number =
            lift({&dynamic}, [&](Values v) { return conversions_.cast(v[0], index->type.scalar(), Scalar::i32); });
        if (n == 0) {
            flat = number;
            continue;
        }
        flat = lift({&flat, &number}, [&](Values v) {
            llvm::Value* columns = llvm::ConstantInt::get(v[0]->getType(), static_cast<std::uint64_t>(extent));
            return builder_.CreateAdd(builder_.CreateMul(v[0], columns), v[1]);
        });
    }
    return flat;
}

// Left to right, each product fused into the sum if the plan fuses.
Leaf Emitter::sum_of_products(Scalar scalar, std::vector<std::pair<Leaf*, Leaf*>> products) {
    bool fuses = machine_.fma && plan_.arithmetic.fuses && (scalar == Scalar::f32 || scalar == Scalar::f64);
    Leaf sum;
    for (std::size_t i = 0; i < products.size(); ++i) {
        auto [a, b] = products[i];
        if (i > 0 && fuses) {
            sum = lift({a, b, &sum}, [&](Values v) { return fused(v[0], v[1], v[2]); });
            continue;
        }
        Leaf product = lift({a, b}, [&](Values v) { return binary(Op::mul, scalar, v[0], v[1]); });
        sum = i == 0 ? product : lift({&sum, &product}, [&](Values v) { return binary(Op::add, scalar, v[0], v[1]); });
    }
    return sum;
}

void Emitter::emit_reduce_add(const Operation& operation) {
    const ir::Value* source = operation.operands[0];
    Scalar scalar = source->type.scalar();
    std::size_t count = static_cast<std::size_t>(leaf_count(source->type));
    if (const Operation* product = fusable_product(source)) {
        LaneValue &a = value(product->operands[0]), &b = value(product->operands[1]);
        std::vector<std::pair<Leaf*, Leaf*>> products;
        for (std::size_t i = 0; i < count; ++i) products.emplace_back(&a.leaves[i], &b.leaves[i]);
        return set(operation.result(), sum_of_products(scalar, std::move(products)));
    }
    LaneValue& aggregate = value(source);
    Leaf sum = aggregate.leaves[0];
    for (std::size_t i = 1; i < count; ++i)
        sum = lift({&sum, &aggregate.leaves[i]}, [&](Values v) { return binary(Op::add, scalar, v[0], v[1]); });
    set(operation.result(), sum);
}

// A vector on the left is a row, on the right a column.
void Emitter::emit_matmul(const Operation& operation) {
    Type left = operation.operands[0]->type, right = operation.operands[1]->type;
    LaneValue &a = value(operation.operands[0]), &b = value(operation.operands[1]);
    int inner = left.is_matrix() ? left.cols() : left.rows();
    int rows = left.is_matrix() ? left.rows() : 1;
    int cols = right.is_matrix() ? right.cols() : 1;
    LaneValue whole{operation.result()->type, {}, {}};
    for (int r = 0; r < rows; ++r)
        for (int c = 0; c < cols; ++c) {
            std::vector<std::pair<Leaf*, Leaf*>> products;
            for (int k = 0; k < inner; ++k)
                products.emplace_back(&a.leaves[static_cast<std::size_t>(r * inner + k)],
                                      &b.leaves[static_cast<std::size_t>(k * cols + c)]);
            whole.leaves.push_back(sum_of_products(left.scalar(), std::move(products)));
        }
    set(operation.result(), std::move(whole));
}

void Emitter::emit_transpose(const Operation& operation) {
    Type type = operation.operands[0]->type;
    LaneValue& source = value(operation.operands[0]);
    LaneValue whole{operation.result()->type, {}, {}};
    for (int c = 0; c < type.cols(); ++c)
        for (int r = 0; r < type.rows(); ++r)
            whole.leaves.push_back(source.leaves[static_cast<std::size_t>(r * type.cols() + c)]);
    set(operation.result(), std::move(whole));
}

}  // namespace weft::codegen
