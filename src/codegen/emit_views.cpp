// Views of arrays: the same memory with fewer or more dimensions, a field of its structs, its gradient. Also its
// extents.
#include "codegen/emitter.h"

namespace weft::codegen {

using ir::Operation;

namespace {

bool is_null_constant(llvm::Value* pointer) { return llvm::isa<llvm::ConstantPointerNull>(pointer); }

}  // namespace

// Debug mode: a view by an index out of range points outside the array. Without elements, no access goes there.
void Emitter::make_empty_unless(llvm::Value* ok, LaneValue& array) {
    for (int axis = 0; axis < array.type.ndim(); ++axis) {
        Leaf& extent = array.leaves[kShapeLeaf + static_cast<std::size_t>(axis)];
        extent = Leaf::of_scalar(builder_.CreateSelect(ok, extent.scalar, i64(0)));
    }
}

// Moves a gradient pointer along with its data; null stays null.
Leaf Emitter::moved_gradient(Leaf& gradient, const std::function<Leaf()>& move) {
    if (!gradient.varying() && is_null_constant(gradient.scalar)) return gradient;
    Leaf moved = move();
    return lift({&gradient, &moved}, [&](Values v) {
        llvm::Value* null = llvm::Constant::getNullValue(v[0]->getType());
        return builder_.CreateSelect(builder_.CreateICmpEQ(v[0], null), null, v[1]);
    });
}

void Emitter::emit_view(const Operation& operation) {
    const ir::Value* array = operation.operands[0];
    llvm::ArrayRef<ir::Value*> indices = llvm::ArrayRef<ir::Value*>(operation.operands).drop_front();
    llvm::Value* const ok = options_.debug ? check_access(operation, indices) : nullptr;
    auto start = [&](int data) {
        Address address = address_of(array, indices, data);
        return address.uniform() ? Leaf::of_scalar(address.base) : Leaf::of_vector(pointers(address, 0));
    };
    LaneValue& view = value(array);
    LaneValue result{operation.result()->type, {}, view.root};
    result.leaves.push_back(start(kDataLeaf));
    result.leaves.push_back(moved_gradient(view.leaves[kGradLeaf], [&] { return start(kGradLeaf); }));
    std::size_t ndim = static_cast<std::size_t>(array->type.ndim());
    for (std::size_t axis = indices.size(); axis < ndim; ++axis)
        result.leaves.push_back(view.leaves[kShapeLeaf + axis]);
    for (std::size_t axis = indices.size(); axis < ndim; ++axis)
        result.leaves.push_back(view.leaves[kShapeLeaf + ndim + axis]);
    if (ok) make_empty_unless(ok, result);
    set(operation.result(), std::move(result));
}

void Emitter::emit_components(const Operation& operation) {
    Type type = operation.operands[0]->type, element = type.element();
    LaneValue& view = value(operation.operands[0]);
    LaneValue result{operation.result()->type, {}, view.root};
    std::int64_t size = info(element.scalar()).bytes();
    std::size_t ndim = static_cast<std::size_t>(type.ndim());
    auto copy = [&](std::size_t first, std::size_t count) {
        result.leaves.append(view.leaves.begin() + static_cast<std::ptrdiff_t>(first),
                             view.leaves.begin() + static_cast<std::ptrdiff_t>(first + count));
    };
    auto append = [&](std::int64_t number) { result.leaves.push_back(Leaf::of_scalar(i64(number))); };
    copy(0, kShapeLeaf + ndim);
    append(element.rows());
    if (element.is_matrix()) append(element.cols());
    copy(kShapeLeaf + ndim, ndim);
    if (element.is_matrix()) append(size * element.cols());
    append(size);
    set(operation.result(), std::move(result));
}

void Emitter::emit_member(const Operation& operation) {
    Type element = operation.operands[0]->type.element();
    std::int64_t offset = element.fields()[static_cast<std::size_t>(operation.ints[0])].offset;
    LaneValue result = value(operation.operands[0]);
    auto moved = [&](Leaf& pointer) {
        return lift({&pointer}, [&](Values v) {
            llvm::Value* distance = v[0]->getType()->isVectorTy() ? lanes_.splat(i64(offset)) : i64(offset);
            return builder_.CreateGEP(builder_.getInt8Ty(), v[0], distance);
        });
    };
    Leaf data = moved(result.leaves[kDataLeaf]);
    Leaf gradient = moved_gradient(result.leaves[kGradLeaf], [&] { return moved(result.leaves[kGradLeaf]); });
    result.leaves[kDataLeaf] = data;
    result.leaves[kGradLeaf] = gradient;
    set(operation.result(), std::move(result));
}

void Emitter::emit_dim(const Operation& operation) {
    Leaf& extent = value(operation.operands[0]).leaves[kShapeLeaf + static_cast<std::size_t>(operation.ints[0])];
    Leaf result = lift({&extent}, [&](Values v) { return conversions_.cast(v[0], Scalar::i64, Scalar::i32); });
    if (extent.uniform()) result.wide = extent.scalar;
    set(operation.result(), result);
}

void Emitter::emit_is_null(const Operation& operation) {
    Leaf& data = value(operation.operands[0]).leaves[kDataLeaf];
    set(operation.result(), lift({&data}, [&](Values v) {
            return builder_.CreateICmpEQ(v[0], llvm::Constant::getNullValue(v[0]->getType()));
        }));
}

void Emitter::emit_grad_of(const Operation& operation) {
    LaneValue result = value(operation.operands[0]);
    result.leaves[kDataLeaf] = result.leaves[kGradLeaf];
    result.leaves[kGradLeaf] = Leaf::of_scalar(llvm::ConstantPointerNull::get(builder_.getPtrTy()));
    result.root.gradient = true;
    set(operation.result(), std::move(result));
}

}  // namespace weft::codegen
