#include "types/type.h"

#include <algorithm>
#include <array>
#include <deque>
#include <mutex>
#include <shared_mutex>
#include <tuple>
#include <unordered_map>

#include "support/error.h"
#include "weft/array_view.h"

namespace weft {

// All properties of a type, computed once when it is first made.
struct TypeNode {
    Kind kind = Kind::none;
    Scalar scalar = Scalar::boolean;
    int rows = 1;
    int cols = 1;
    int ndim = 0;
    Type element;                     // array, tile
    std::vector<std::int64_t> shape;  // tile
    std::vector<Type> elements;       // tuple
    std::vector<Type::Field> fields;  // structure
    std::string name;                 // structure
    std::string key;                  // structure
    std::int64_t size_bytes = 0;
    std::int64_t alignment = 1;
    std::string python_name;
    std::string ir_name;

    static Type handle(const TypeNode* node) { return Type(node); }
};

namespace {

constexpr ScalarInfo kScalars[] = {
#define WEFT_SCALAR(id, ir, python, kind, bits, ctype, format, compute, suffix, numpy, number, letter) \
    {Scalar::id, ir, python, ScalarKind::kind, bits, format, Scalar::compute, suffix, numpy, number, letter},
#include "types/types.def"
#undef WEFT_SCALAR
};
constexpr std::size_t kScalarCount = std::size(kScalars);

std::int64_t round_up(std::int64_t value, std::int64_t to) { return (value + to - 1) / to * to; }

std::string python_array_name(Type element, int ndim) {
    const std::string dims = ndim == 1 ? "" : std::to_string(ndim) + "d";
    return "array" + dims + "[" + element.python_name() + "]";
}

// "vec3f" if the `warp` module has such a name, else the call that makes the type.
std::string python_vector_name(const ScalarInfo& scalar, int length) {
    if (*scalar.suffix && length >= 2 && length <= 4) return "vec" + std::to_string(length) + scalar.suffix;
    return "vector(length=" + std::to_string(length) + ", dtype=" + scalar.python + ")";
}

std::string python_matrix_name(const ScalarInfo& scalar, int rows, int cols) {
    const std::string r = std::to_string(rows), c = std::to_string(cols);
    if (*scalar.suffix && scalar.is_float() && rows == cols && rows >= 2 && rows <= 4)
        return "mat" + r + c + scalar.suffix;
    return "matrix(shape=(" + r + ", " + c + "), dtype=" + scalar.python + ")";
}

// `name` + suffix if there is a suffix, else name(dtype=...).
std::string python_suffixed(const char* name, const char* long_name, const ScalarInfo& scalar) {
    if (*scalar.suffix) return std::string(name) + scalar.suffix;
    return std::string(long_name) + "(dtype=" + scalar.python + ")";
}

// Computes names, size and alignment from the parts.
void complete(TypeNode& node) {
    const ScalarInfo& scalar = info(node.scalar);
    const std::string ir = scalar.ir;
    switch (node.kind) {
        case Kind::none:
            node.python_name = "None";
            node.ir_name = "none";
            break;
        case Kind::string:
            node.python_name = "str";
            node.ir_name = "string";
            break;
        case Kind::scalar:
            node.python_name = scalar.python;
            node.ir_name = ir;
            break;
        case Kind::vector:
            node.python_name = python_vector_name(scalar, node.rows);
            node.ir_name = "vec" + std::to_string(node.rows) + "<" + ir + ">";
            break;
        case Kind::matrix:
            node.python_name = python_matrix_name(scalar, node.rows, node.cols);
            node.ir_name = "mat" + std::to_string(node.rows) + "x" + std::to_string(node.cols) + "<" + ir + ">";
            break;
        case Kind::quaternion:
            node.python_name = python_suffixed("quat", "quaternion", scalar);
            node.ir_name = "quat<" + ir + ">";
            break;
        case Kind::transform:
            node.python_name = python_suffixed("transform", "transformation", scalar);
            node.ir_name = "xform<" + ir + ">";
            break;
        case Kind::tuple:
            node.python_name = "tuple[";
            node.ir_name = "tuple<";
            for (std::size_t i = 0; i < node.elements.size(); ++i) {
                node.python_name += (i ? ", " : "") + node.elements[i].python_name();
                node.ir_name += (i ? ", " : "") + node.elements[i].ir_name();
            }
            node.python_name += "]";
            node.ir_name += ">";
            break;
        case Kind::array:
            node.python_name = python_array_name(node.element, node.ndim);
            node.ir_name = "array<" + node.element.ir_name() + ", " + std::to_string(node.ndim) + ">";
            node.size_bytes = sizeof(ArrayView);
            node.alignment = alignof(ArrayView);
            break;
        case Kind::tile: {
            std::string python, ir;
            for (const std::int64_t extent : node.shape) {
                python += (python.empty() ? "" : ", ") + std::to_string(extent);
                ir += (ir.empty() ? "" : "x") + std::to_string(extent);
            }
            if (node.shape.size() == 1) python += ",";
            node.python_name = "tile(shape=(" + python + "), dtype=" + node.element.python_name() + ")";
            node.ir_name = "tile<" + node.element.ir_name() + ", " + ir + ">";
            break;
        }
        case Kind::structure: {
            node.python_name = node.name;
            node.ir_name = "struct @" + node.name;
            std::int64_t at = 0;
            for (Type::Field& field : node.fields) {
                at = round_up(at, field.type.alignment());
                field.offset = at;
                at += field.type.size_bytes();
                node.alignment = std::max(node.alignment, field.type.alignment());
            }
            node.size_bytes = std::max<std::int64_t>(round_up(at, node.alignment), 1);  // at least 1 byte, as in C++
            break;
        }
    }
    const bool has_components = node.kind == Kind::scalar || node.kind == Kind::vector || node.kind == Kind::matrix ||
                                node.kind == Kind::quaternion || node.kind == Kind::transform;
    if (has_components) {
        node.size_bytes = static_cast<std::int64_t>(node.rows) * node.cols * scalar.bytes();
        node.alignment = scalar.bytes();
    }
}

}  // namespace

// The set of all types made so far. Scalars are made at once, as they are needed all the time. The others are found by
// a key of their parts under a lock that readers share. A node is immutable once it is in the map, so any thread may
// use handles without a lock.
class TypePool {
public:
    TypePool() {
        for (std::size_t i = 0; i < kScalarCount; ++i) {
            scalars_[i].kind = Kind::scalar;
            scalars_[i].scalar = kScalars[i].id;
            complete(scalars_[i]);
        }
        string_.kind = Kind::string;
        complete(string_);
        complete(none_);
    }

    // Never destroyed: handles in static objects stay valid while the process ends.
    static TypePool& get() {
        static TypePool& pool = *new TypePool;
        return pool;
    }

    Type scalar(Scalar s) { return Type(&scalars_[static_cast<std::size_t>(s)]); }
    Type string() { return Type(&string_); }
    const TypeNode& none() const { return none_; }

    // Vectors, matrices, quaternions and transforms: `key` packs kind, scalar and extents.
    Type numeric(Kind kind, Scalar scalar, int rows, int cols) {
        const std::uint64_t key = static_cast<std::uint64_t>(kind) << 56 | static_cast<std::uint64_t>(scalar) << 48 |
                                  static_cast<std::uint64_t>(rows) << 24 | static_cast<std::uint64_t>(cols);
        return intern(numeric_, key, [&](TypeNode& node) {
            node.kind = kind;
            node.scalar = scalar;
            node.rows = rows;
            node.cols = cols;
        });
    }

    Type array(Type element, int ndim) {
        return intern(arrays_, std::pair(element, ndim), [&](TypeNode& node) {
            node.kind = Kind::array;
            node.element = element;
            node.ndim = ndim;
        });
    }

    Type tile(Type element, std::vector<std::int64_t>&& shape) {
        std::string key;
        append_key(key, element);
        for (const std::int64_t extent : shape) key += std::to_string(extent) + 'x';
        return intern(tiles_, key, [&](TypeNode& node) {
            node.kind = Kind::tile;
            node.element = element;
            node.ndim = static_cast<int>(shape.size());
            node.shape = std::move(shape);
        });
    }

    Type tuple(std::vector<Type>&& elements) {
        std::string key;
        for (Type t : elements) append_key(key, t);
        return intern(tuples_, key, [&](TypeNode& node) {
            node.kind = Kind::tuple;
            node.elements = std::move(elements);
        });
    }

    Type structure(std::string&& name, std::string&& key, std::vector<Type::Field>&& fields) {
        std::string full = name + '\0' + key + '\0';
        for (const Type::Field& field : fields) {
            full += field.name + '\0';
            append_key(full, field.type);
        }
        return intern(structs_, full, [&](TypeNode& node) {
            node.kind = Kind::structure;
            node.name = std::move(name);
            node.key = std::move(key);
            node.fields = std::move(fields);
            structs_by_name_[node.name] = &node;
        });
    }

    std::optional<Type> find_structure(std::string_view name) {
        std::shared_lock lock(mutex_);
        const auto found = structs_by_name_.find(std::string(name));
        if (found == structs_by_name_.end()) return std::nullopt;
        return Type(found->second);
    }

private:
    struct HashArrayKey {
        std::size_t operator()(const std::pair<Type, int>& key) const {
            return std::hash<Type>()(key.first) * 31 + static_cast<std::size_t>(key.second);
        }
    };

    static void append_key(std::string& key, Type t) {
        const TypeNode* node = t.node();
        key.append(reinterpret_cast<const char*>(&node), sizeof node);
    }

    template <class Map, class Key, class Fill>
    Type intern(Map& map, const Key& key, Fill&& fill) {
        {
            std::shared_lock lock(mutex_);
            if (const auto found = map.find(key); found != map.end()) return Type(found->second);
        }
        std::unique_lock lock(mutex_);
        const auto [at, fresh] = map.try_emplace(key, nullptr);
        if (fresh) {
            TypeNode& node = nodes_.emplace_back();
            fill(node);
            complete(node);  // reads other types' nodes only, which takes no lock
            at->second = &node;
        }
        return Type(at->second);
    }

    std::array<TypeNode, kScalarCount> scalars_;
    TypeNode string_;
    TypeNode none_;
    std::shared_mutex mutex_;
    std::deque<TypeNode> nodes_;
    std::unordered_map<std::uint64_t, const TypeNode*> numeric_;
    std::unordered_map<std::pair<Type, int>, const TypeNode*, HashArrayKey> arrays_;
    std::unordered_map<std::string, const TypeNode*> tiles_;
    std::unordered_map<std::string, const TypeNode*> tuples_;
    std::unordered_map<std::string, const TypeNode*> structs_;
    std::unordered_map<std::string, const TypeNode*> structs_by_name_;  // the latest of each name
};

const ScalarInfo& info(Scalar scalar) { return kScalars[static_cast<std::size_t>(scalar)]; }
std::span<const ScalarInfo> all_scalars() { return kScalars; }

Scalar bits_of(Scalar scalar) {
    for (const ScalarInfo& row : kScalars)
        if (row.kind == ScalarKind::unsigned_int && row.bits == info(scalar).bits) return row.id;
    throw InternalError(std::string("no unsigned integer is as large as ") + info(scalar).python);
}

// ---- making types ----

Type Type::none() { return Type(); }
Type Type::string() { return TypePool::get().string(); }
Type Type::scalar(Scalar scalar) { return TypePool::get().scalar(scalar); }

Type Type::vector(Scalar scalar, int length) {
    WEFT_CHECK(length >= 1 && length < 1 << 24, "a vector has at least one component");
    return TypePool::get().numeric(Kind::vector, scalar, length, 1);
}

Type Type::matrix(Scalar scalar, int rows, int cols) {
    WEFT_CHECK(rows >= 1 && cols >= 1 && rows < 1 << 24 && cols < 1 << 24, "a matrix has at least one row and column");
    return TypePool::get().numeric(Kind::matrix, scalar, rows, cols);
}

Type Type::quaternion(Scalar scalar) { return TypePool::get().numeric(Kind::quaternion, scalar, 4, 1); }
Type Type::transform(Scalar scalar) { return TypePool::get().numeric(Kind::transform, scalar, 7, 1); }
Type Type::tuple(std::vector<Type> elements) { return TypePool::get().tuple(std::move(elements)); }

Type Type::array(Type element, int ndim) {
    // An array of 0 dimensions is the result of indexing all dimensions.
    WEFT_CHECK(ndim >= 0, "an array has no negative number of dimensions");
    return TypePool::get().array(element, ndim);
}

Type Type::tile(Type element, std::vector<std::int64_t> shape) {
    for (const std::int64_t extent : shape) WEFT_CHECK(extent >= 1, "every extent of a tile is at least 1");
    return TypePool::get().tile(element, std::move(shape));
}

Type Type::structure(std::string name, std::string key, std::vector<Field> fields) {
    return TypePool::get().structure(std::move(name), std::move(key), std::move(fields));
}

// ---- reading types ----

namespace {

const TypeNode& checked(const TypeNode* node, bool fits, const char* what) {
    if (!node || !fits) {
        throw InternalError(std::string("asked for ") + what + " of the type " +
                            (node ? node->ir_name : std::string("none")));
    }
    return *node;
}

bool has_scalar(const TypeNode* node) {
    if (!node) return false;
    switch (node->kind) {
        case Kind::scalar:
        case Kind::vector:
        case Kind::matrix:
        case Kind::quaternion:
        case Kind::transform:
            return true;
        default:
            return false;
    }
}

}  // namespace

Kind Type::kind() const { return node_ ? node_->kind : Kind::none; }
bool Type::is_numeric_aggregate() const { return has_scalar(node_) && node_->kind != Kind::scalar; }
bool Type::is_float() const { return is_scalar() && info(node_->scalar).is_float(); }
bool Type::is_int() const { return is_scalar() && info(node_->scalar).is_int(); }

Scalar Type::scalar() const { return checked(node_, has_scalar(node_), "the scalar").scalar; }
int Type::rows() const { return checked(node_, has_scalar(node_), "the rows").rows; }
int Type::cols() const { return checked(node_, has_scalar(node_), "the columns").cols; }
int Type::components() const {
    const TypeNode& node = checked(node_, has_scalar(node_), "the components");
    return node.rows * node.cols;
}
Type Type::element() const { return checked(node_, is_array() || is_tile(), "the element").element; }
int Type::ndim() const { return checked(node_, is_array() || is_tile(), "the dimensions").ndim; }
const std::vector<std::int64_t>& Type::shape() const { return checked(node_, is_tile(), "the shape").shape; }
std::int64_t Type::size() const {
    std::int64_t size = 1;
    for (const std::int64_t extent : shape()) size *= extent;
    return size;
}
const std::vector<Type>& Type::elements() const { return checked(node_, is_tuple(), "the elements").elements; }
const std::vector<Type::Field>& Type::fields() const { return checked(node_, is_struct(), "the fields").fields; }
const std::string& Type::struct_name() const { return checked(node_, is_struct(), "the name").name; }
const std::string& Type::struct_key() const { return checked(node_, is_struct(), "the key").key; }

std::optional<int> Type::field_index(std::string_view name) const {
    const std::vector<Field>& all = fields();
    for (std::size_t i = 0; i < all.size(); ++i)
        if (all[i].name == name) return static_cast<int>(i);
    return std::nullopt;
}

Type Type::with_scalar(Scalar scalar) const {
    const TypeNode& node = checked(node_, has_scalar(node_), "the scalar");
    if (node.kind == Kind::scalar) return Type::scalar(scalar);
    return TypePool::get().numeric(node.kind, scalar, node.rows, node.cols);
}

std::int64_t Type::size_bytes() const { return node_ ? node_->size_bytes : 0; }
std::int64_t Type::alignment() const { return node_ ? node_->alignment : 1; }
std::string Type::python_name() const { return node_ ? node_->python_name : TypePool::get().none().python_name; }
std::string Type::ir_name() const { return node_ ? node_->ir_name : TypePool::get().none().ir_name; }

std::optional<Type> find_struct_type(std::string_view name) { return TypePool::get().find_structure(name); }

}  // namespace weft
