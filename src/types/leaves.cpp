#include "types/leaves.h"

#include <cstddef>

#include "support/error.h"
#include "types/layout.h"

namespace weft {

namespace {

void append_leaves(Type type, std::int64_t offset, std::vector<LeafType>& leaves) {
    switch (type.kind()) {
        case Kind::scalar:
            leaves.push_back({type.scalar(), false, offset});
            return;
        case Kind::vector:
        case Kind::matrix:
        case Kind::quaternion:
        case Kind::transform:
            for (int i = 0; i < type.components(); ++i)
                leaves.push_back({type.scalar(), false, offset + i * info(type.scalar()).bytes()});
            return;
        case Kind::structure:
            for (const Type::Field& field : type.fields()) append_leaves(field.type, offset + field.offset, leaves);
            return;
        case Kind::tuple:
            for (Type element : type.elements()) append_leaves(element, 0, leaves);
            return;
        case Kind::array:
            leaves.push_back({Scalar::u64, true, offset + static_cast<std::int64_t>(offsetof(ArrayView, data))});
            leaves.push_back({Scalar::u64, true, offset + static_cast<std::int64_t>(offsetof(ArrayView, grad))});
            for (int axis = 0; axis < type.ndim(); ++axis)
                leaves.push_back(
                    {Scalar::i64, false, offset + static_cast<std::int64_t>(offsetof(ArrayView, shape)) + 8 * axis});
            for (int axis = 0; axis < type.ndim(); ++axis)
                leaves.push_back(
                    {Scalar::i64, false, offset + static_cast<std::int64_t>(offsetof(ArrayView, strides)) + 8 * axis});
            return;
        case Kind::tile:  // transform/tiles replaces them
        case Kind::none:
        case Kind::string:
            return;
    }
}

}  // namespace

std::vector<LeafType> leaf_types(Type type) {
    std::vector<LeafType> leaves;
    append_leaves(type, 0, leaves);
    return leaves;
}

std::int64_t size_of(const LeafType& type) { return type.pointer ? 8 : info(type.scalar).bytes(); }

int leaf_count(Type type) {
    switch (type.kind()) {
        case Kind::scalar:
            return 1;
        case Kind::vector:
        case Kind::matrix:
        case Kind::quaternion:
        case Kind::transform:
            return type.components();
        case Kind::array:
            return kShapeLeaf + 2 * type.ndim();
        default:
            return static_cast<int>(leaf_types(type).size());
    }
}

LeafRange find_part(Type aggregate, const std::vector<std::int64_t>& path) {
    LeafRange part{0, aggregate};
    for (std::size_t depth = 0; depth < path.size(); ++depth) {
        int index = static_cast<int>(path[depth]);
        Type type = part.type;
        switch (type.kind()) {
            case Kind::structure:
                for (int field = 0; field < index; ++field)
                    part.first += leaf_count(type.fields()[static_cast<std::size_t>(field)].type);
                part.type = type.fields()[static_cast<std::size_t>(index)].type;
                break;
            case Kind::tuple:
                for (int element = 0; element < index; ++element)
                    part.first += leaf_count(type.elements()[static_cast<std::size_t>(element)]);
                part.type = type.elements()[static_cast<std::size_t>(index)];
                break;
            case Kind::matrix:
                part.first += index * type.cols();
                part.type = Type::vector(type.scalar(), type.cols());
                break;
            default:
                WEFT_CHECK(type.is_numeric_aggregate(), "a path goes into a value that has no parts");
                part.first += index;
                part.type = type.scalar_type();
        }
    }
    return part;
}

}  // namespace weft
