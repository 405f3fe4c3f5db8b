#include "ir/typing.h"

#include "support/error.h"
#include "types/objects.h"

namespace weft::ir {
namespace {

[[noreturn]] void fail(const std::string& what) { throw TypeMistake(what); }

std::string quoted(Type type) { return "'" + type.ir_name() + "'"; }

bool is_numeric(Type type) { return type.is_scalar() || type.is_numeric_aggregate(); }

// The rules of one operation, checked against its operands.
class Rules {
public:
    Rules(const Operation& operation, Type stated) : op_(operation), stated_(stated) {}

    Type result() const;

private:
    std::size_t count() const { return op_.operands.size(); }
    Type type(std::size_t i) const {
        if (!op_.operands[i]) fail("operand " + std::to_string(i) + " is missing");
        return op_.operands[i]->type;
    }
    void expect(bool holds, const std::string& what) const {
        if (holds) return;
        std::string found;
        for (std::size_t i = 0; i < count(); ++i) found += (i ? ", " : "") + type(i).ir_name();
        fail("expected " + what + ", found (" + found + ")");
    }
    void expect_count(std::size_t n) const {
        if (count() != n) fail("takes " + std::to_string(n) + " operands, found " + std::to_string(count()));
    }
    void check_library(const LibraryFunction& function) const {
        for (const auto* operands : {&function.reads, &function.writes})
            for (const int number : *operands)
                if (number < 0 || static_cast<std::size_t>(number) >= count())
                    fail("there is no operand " + std::to_string(number) + " to reach memory through");
        if (function.pure && !function.writes.empty()) fail("a pure function does not write");
        // Inactive lanes are computed too.
        if (function.form == LibraryFunction::Form::lanes && (!function.pure || stated_.is_none()))
            fail("a function that runs in lanes must be pure and have a result");
    }
    void expect_ints(std::size_t n) const {
        if (op_.ints.size() != n) {
            fail("takes " + std::to_string(n) + " static numbers, found " + std::to_string(op_.ints.size()));
        }
    }
    void expect_indices(std::size_t first, std::size_t last) const {
        for (std::size_t i = first; i < last; ++i) expect(type(i).is_int(), "integer indices");
    }
    void expect_array() const {
        if (count() == 0) fail("takes an array");
        expect(type(0).is_array(), "an array first");
    }

    Type unary() const;
    Type binary() const;
    Type make() const;
    Type constant() const;
    Type slice() const;
    Type insert() const;
    Type element_at() const;
    Type dynamic_part(std::size_t first_index) const;
    Type product() const;
    Type components() const;
    Type atomic() const;
    Type call() const;

    const Operation& op_;
    Type stated_;
};

Type Rules::unary() const {
    expect_count(1);
    const Type t = type(0);
    expect(is_numeric(t), "a scalar or numeric aggregate");
    const ScalarInfo& scalar = info(t.scalar());
    switch (op_.op) {
        case Op::neg:
        case Op::abs:
            expect(scalar.is_float() || scalar.is_int(), "numbers");
            break;
        case Op::invert:
            expect(!scalar.is_float(), "integers or bool");
            break;
        default:
            expect(scalar.is_float(), "floats");
    }
    return t;
}

Type Rules::binary() const {
    expect_count(2);
    const Type t = type(0);
    expect(is_numeric(t) && type(1) == t, "two scalars or numeric aggregates of one type");
    const ScalarInfo& scalar = info(t.scalar());
    switch (op_.op) {
        case Op::and_:
        case Op::or_:
        case Op::xor_:
            expect(!scalar.is_float(), "integers or bool");
            break;
        case Op::shl:
        case Op::shr:
            expect(scalar.is_int(), "integers");
            break;
        case Op::pow:
        case Op::atan2:
        case Op::copysign:
            expect(scalar.is_float(), "floats");
            break;
        default:
            expect(scalar.is_float() || scalar.is_int(), "numbers");
    }
    return t;
}

Type Rules::slice() const {
    if (count() < 2 || count() > 4) fail("takes an array, a start, a count and a step");
    expect_array();
    expect_ints(1);
    const Type array = type(0);
    if (op_.ints[0] < 0 || op_.ints[0] >= array.ndim())
        fail("axis " + std::to_string(op_.ints[0]) + " of " + quoted(array));
    expect_indices(1, 2);
    if (count() > 2) {
        for (std::size_t i = 2; i < count(); ++i) expect(type(i) == i32_type(), "a count and a step of type i32");
        return array;
    }
    expect(array.ndim() > 1, "an array of more than one dimension");
    return Type::array(array.element(), array.ndim() - 1);
}

Type Rules::constant() const {
    expect_count(0);
    const std::int64_t leaves = leaf_count(stated_);
    if (static_cast<std::int64_t>(op_.numbers.size()) != leaves) {
        fail("a constant of type " + quoted(stated_) + " has " + std::to_string(leaves) + " numbers, found " +
             std::to_string(op_.numbers.size()));
    }
    std::vector<Scalar> scalars;
    append_leaves(stated_, scalars);
    for (std::size_t i = 0; i < scalars.size(); ++i)
        if (op_.numbers[i].is_float != info(scalars[i]).is_float())
            fail("number of the wrong kind in a constant of type " + quoted(stated_));
    return stated_;
}

Type Rules::make() const {
    const auto expect_parts = [&](std::size_t n) {
        if (count() != n) {
            fail("a " + quoted(stated_) + " is made of " + std::to_string(n) + " parts, found " +
                 std::to_string(count()));
        }
    };
    if (stated_.is_numeric_aggregate()) {
        expect_parts(static_cast<std::size_t>(stated_.components()));
        for (std::size_t i = 0; i < count(); ++i) {
            expect(type(i) == stated_.scalar_type(), "components of type " + quoted(stated_.scalar_type()));
        }
    } else if (stated_.is_struct()) {
        expect_parts(stated_.fields().size());
        for (std::size_t i = 0; i < count(); ++i) {
            const Type::Field& field = stated_.fields()[i];
            expect(type(i) == field.type, "field '" + field.name + "' of type " + quoted(field.type));
        }
    } else if (stated_.is_tuple()) {
        expect_parts(stated_.elements().size());
        for (std::size_t i = 0; i < count(); ++i) {
            expect(type(i) == stated_.elements()[i],
                   "element " + std::to_string(i) + " of type " + quoted(stated_.elements()[i]));
        }
    } else {
        fail("makes aggregates, structs and tuples, not " + quoted(stated_));
    }
    return stated_;
}

Type Rules::insert() const {
    expect_count(2);
    if (op_.ints.empty()) fail("the path is empty");
    const Type part = part_type(type(0), op_.ints);
    expect(type(1) == part, "a part of type " + quoted(part));
    return type(0);
}

// The element of an array with one index per dimension, the operands from 1 on.
Type Rules::element_at() const {
    expect_array();
    const std::size_t ndim = static_cast<std::size_t>(type(0).ndim());
    if (count() < 1 + ndim) {
        fail(quoted(type(0)) + " takes " + std::to_string(ndim) + " indices, found " + std::to_string(count() - 1));
    }
    expect_indices(1, 1 + ndim);
    return type(0).element();
}

// The part of the aggregate operand 0 at dynamic indices, the operands from `first_index` on.
Type Rules::dynamic_part(std::size_t first_index) const {
    if (count() <= first_index) fail("an index is missing");
    const Type t = type(0);
    if (t.is_tile()) {
        expect(count() == first_index + 1, "one index into a tile");
        expect_indices(first_index, count());
        return t.element();
    }
    expect(t.is_numeric_aggregate(), "a numeric aggregate first");
    expect_indices(first_index, count());
    const std::size_t indices = count() - first_index;
    expect(indices == 1 || (indices == 2 && t.is_matrix()), "one index, or two into a matrix");
    return t.is_matrix() && indices == 1 ? Type::vector(t.scalar(), t.cols()) : t.scalar_type();
}

Type Rules::product() const {
    expect_count(2);
    const Type a = type(0), b = type(1);
    expect(is_numeric(a) && is_numeric(b) && a.scalar() == b.scalar() && (a.is_matrix() || b.is_matrix()),
           "a matrix and a matrix or vector of the same scalar");
    if (a.is_matrix() && b.is_matrix()) {
        expect(a.cols() == b.rows(), "as many columns on the left as rows on the right");
        return Type::matrix(a.scalar(), a.rows(), b.cols());
    }
    if (a.is_matrix()) {
        expect(b.is_vector() && a.cols() == b.rows(), "a vector as long as the matrix has columns");
        return Type::vector(a.scalar(), a.rows());
    }
    expect(a.is_vector() && a.rows() == b.rows(), "a vector as long as the matrix has rows");
    return Type::vector(a.scalar(), b.cols());
}

Type Rules::components() const {
    expect_count(1);
    expect_array();
    const Type element = type(0).element();
    expect(element.is_numeric_aggregate(), "an array of numeric aggregates");
    return Type::array(element.scalar_type(), type(0).ndim() + (element.is_matrix() ? 2 : 1));
}

Type Rules::atomic() const {
    const Type element = element_at();
    const bool swaps = op_.op == Op::atomic_cas;
    expect_count(1 + static_cast<std::size_t>(type(0).ndim()) + values_behind_indices(op_.op));
    expect(swaps ? element.is_scalar() : is_numeric(element), swaps ? "an array of scalars" : "an array of numbers");
    for (std::size_t i = 1 + static_cast<std::size_t>(type(0).ndim()); i < count(); ++i) {
        expect(type(i) == element, "a value of type " + quoted(element));
    }
    const bool bitwise = op_.op == Op::atomic_and || op_.op == Op::atomic_or || op_.op == Op::atomic_xor;
    expect(!bitwise || !info(element.scalar()).is_float(), "integers");
    return element;
}

Type Rules::call() const {
    if (!op_.function) fail("the callee is missing");
    const std::vector<Value*>& parameters = op_.function->parameters();
    if (op_.function->is_kernel) fail("calls kernel '" + op_.function->name + "'; only functions can be called");
    if (count() != parameters.size()) {
        fail("'" + op_.function->name + "' takes " + std::to_string(parameters.size()) + " arguments, found " +
             std::to_string(count()));
    }
    for (std::size_t i = 0; i < count(); ++i) {
        if (type(i) != parameters[i]->type) {
            fail("argument " + std::to_string(i) + " of '" + op_.function->name + "' is " + quoted(type(i)) +
                 ", expected " + quoted(parameters[i]->type));
        }
    }
    return op_.function->result;
}

Type Rules::result() const {
    switch (op_class(op_.op)) {
        case OpClass::unary:
            return unary();
        case OpClass::binary:
            return binary();
        case OpClass::compare:
            expect_count(2);
            expect(type(0).is_scalar() && type(1) == type(0), "two scalars of one type");
            expect(!type(0).is_bool() || op_.op == Op::cmp_eq || op_.op == Op::cmp_ne, "numbers");
            return bool_type();
        case OpClass::classify:
            expect_count(1);
            expect(type(0).is_float(), "a float scalar");
            return bool_type();
        case OpClass::atomic:
            return atomic();
        case OpClass::other:
            break;
    }
    switch (op_.op) {
        case Op::bit_count:
            expect_count(1);
            expect(type(0).is_int(), "an integer scalar");
            return i32_type();
        case Op::fma:
            expect_count(3);
            expect(is_numeric(type(0)) && info(type(0).scalar()).is_float() && type(1) == type(0) && type(2) == type(0),
                   "three scalars or aggregates of one float type");
            return type(0);
        case Op::select:
            expect_count(3);
            expect(type(0).is_bool() && type(1) == type(2) && !type(1).is_none(), "(bool, T, T)");
            return type(1);
        case Op::cast:
            expect_count(1);
            expect(is_numeric(type(0)) && is_numeric(stated_) && type(0).with_scalar(stated_.scalar()) == stated_,
                   "the shape of " + quoted(stated_));
            return stated_;
        case Op::bitcast:
            expect_count(1);
            expect(type(0).is_scalar() && stated_.is_scalar() && type(0).size_bytes() == stated_.size_bytes(),
                   "a scalar of the size of " + quoted(stated_));
            return stated_;
        case Op::constant:
            return constant();
        case Op::make:
            return make();
        case Op::splat:
            expect_count(1);
            expect(stated_.is_numeric_aggregate() && type(0) == stated_.scalar_type(),
                   "the scalar of " + quoted(stated_));
            return stated_;
        case Op::extract:
            expect_count(1);
            if (op_.ints.empty()) fail("the path is empty");
            return part_type(type(0), op_.ints);
        case Op::insert:
            return insert();
        case Op::extract_at:
            return dynamic_part(1);
        case Op::insert_at: {
            const Type part = dynamic_part(2);
            expect(type(1) == part, "a part of type " + quoted(part));
            return type(0);
        }
        case Op::reduce_add:
            expect_count(1);
            expect(type(0).is_numeric_aggregate() && type(0).scalar() != Scalar::boolean, "an aggregate of numbers");
            return type(0).scalar_type();
        case Op::matmul:
            return product();
        case Op::transpose:
            expect_count(1);
            expect(type(0).is_matrix(), "a matrix");
            return Type::matrix(type(0).scalar(), type(0).cols(), type(0).rows());
        case Op::load: {
            const Type element = element_at();
            expect_count(1 + static_cast<std::size_t>(type(0).ndim()));
            return element;
        }
        case Op::store: {
            const Type element = element_at();
            expect_count(2 + static_cast<std::size_t>(type(0).ndim()));
            expect(op_.operands.back()->type == element, "a value of type " + quoted(element));
            return Type::none();
        }
        case Op::view: {
            expect_array();
            const int indices = static_cast<int>(count()) - 1;
            expect(indices < type(0).ndim(), "fewer indices than dimensions");
            expect_indices(1, count());
            return Type::array(type(0).element(), type(0).ndim() - indices);
        }
        case Op::components:
            return components();
        case Op::member: {
            expect_count(1);
            expect_ints(1);
            expect(type(0).is_array() && type(0).element().is_struct(), "an array of structs");
            const auto& fields = type(0).element().fields();
            if (op_.ints[0] < 0 || op_.ints[0] >= static_cast<std::int64_t>(fields.size())) {
                fail("the struct has " + std::to_string(fields.size()) + " fields, asked for " +
                     std::to_string(op_.ints[0]));
            }
            return Type::array(fields[static_cast<std::size_t>(op_.ints[0])].type, type(0).ndim());
        }
        case Op::dim:
            expect_count(1);
            expect_array();
            expect_ints(1);
            if (op_.ints[0] < 0 || op_.ints[0] >= type(0).ndim())
                fail("axis " + std::to_string(op_.ints[0]) + " of " + quoted(type(0)));
            return i32_type();
        case Op::is_null:
            expect_count(1);
            expect_array();
            return bool_type();
        case Op::grad_of:
            expect_count(1);
            expect_array();
            return type(0);
        case Op::address:
            expect_count(1);
            expect_array();
            return u64_type();
        case Op::argument:
            expect_count(1);
            expect(!type(0).is_array(), "a value that is no array");
            return Type::array(type(0), 1);
        case Op::slice:
            return slice();
        case Op::null:
            expect_count(0);
            expect(stated_.is_array(), "an array type");
            return stated_;
        case Op::local_array:
            expect_count(0);
            expect(stated_.is_array() && static_cast<int>(op_.ints.size()) == stated_.ndim(),
                   "an array type and one extent per dimension");
            for (const std::int64_t extent : op_.ints) {
                if (extent < 1) fail("the extent " + std::to_string(extent) + ", expected at least 1");
            }
            return stated_;
        case Op::stack:
            if (count() != 2) expect_count(1);
            expect(type(0).is_int() && type(count() - 1).is_int() && stated_.is_array() && stated_.ndim() == 1,
                   "an integer count, and another one where fewer elements will do, for an array of one dimension");
            return stated_;
        case Op::loaded: {
            const Type element = element_at();
            expect_count(2 + static_cast<std::size_t>(type(0).ndim()));
            expect(op_.operands.back()->type == element, "a value of type " + quoted(element));
            return element;
        }
        case Op::array_at:
            expect(stated_.is_array() && static_cast<int>(count()) == stated_.ndim() + 1,
                   "an address and one extent per dimension");
            expect(type(0) == u64_type(), "an address of type u64");
            for (std::size_t i = 1; i < count(); ++i) expect(type(i) == i32_type(), "extents of type i32");
            return stated_;
        case Op::object:
            expect_count(1);
            expect_ints(1);
            expect(type(0) == u64_type(), "an id of type u64");
            if (op_.ints[0] < 1 || op_.ints[0] > kObjectKinds) fail("there is no kind " + std::to_string(op_.ints[0]));
            return u64_type();
        case Op::overlay:
            expect_array();
            expect(stated_.is_array() && static_cast<int>(count()) == stated_.ndim() + 2,
                   "an array, an offset and one extent per dimension");
            expect(type(1) == u64_type(), "an offset of type u64");
            for (std::size_t i = 2; i < count(); ++i) expect(type(i) == i32_type(), "extents of type i32");
            return stated_;
        case Op::call:
            return call();
        case Op::call_library:
            if (!op_.library) fail("the library function is missing");
            check_library(*op_.library);
            return stated_;
        case Op::tid:
            expect_count(0);
            expect_ints(1);
            if (op_.ints[0] < 0 || op_.ints[0] > 3) fail("axis " + std::to_string(op_.ints[0]) + ", expected 0 to 3");
            return i32_type();
        case Op::block_dim:
        case Op::lane:
            expect_count(0);
            return i32_type();
        case Op::tile_of_lanes: {
            expect_count(1);
            expect_ints(1);
            const Type value = type(0);
            expect(value.is_scalar() || value.is_numeric_aggregate() || value.is_struct(), "a value of numbers");
            if (op_.ints[0] < 1) fail("a block of " + std::to_string(op_.ints[0]) + " lanes");
            return Type::tile(value, {op_.ints[0]});
        }
        case Op::print:
        case Op::raise:
            for (std::size_t i = 0; i < count(); ++i) {
                const bool is_array = type(i).is_array() && type(i).ndim() == 1;
                expect(type(i).is_scalar() || type(i).is_numeric_aggregate() || is_array,
                       "scalars or numeric aggregates");
            }
            return Type::none();
        case Op::require:
        case Op::assert_:
        case Op::note_finite:
            expect_count(1);
            expect(type(0).is_bool(), "a bool");
            return Type::none();
        case Op::yield:
        case Op::return_:
            return Type::none();
        case Op::tile_matmul: {
            expect_count(2);
            const auto is_matrix = [&](Type t) { return t.is_tile() && t.ndim() == 2 && t.element().is_float(); };
            expect(is_matrix(type(0)) && is_matrix(type(1)) && type(0).element() == type(1).element() &&
                       type(0).shape()[1] == type(1).shape()[0],
                   "two tiles of two dimensions of one float type, as many columns on the left as rows on the right");
            return Type::tile(type(0).element(), {type(0).shape()[0], type(1).shape()[1]});
        }
        case Op::tile_generate:
        case Op::tile_each:
        case Op::tile_reduce:
        case Op::if_:
        case Op::for_:
        case Op::while_:
            fail("has regions: its results are not those of one type");
#define WEFT_CLASS_unary(id) case Op::id:
#define WEFT_CLASS_binary(id) case Op::id:
#define WEFT_CLASS_compare(id) case Op::id:
#define WEFT_CLASS_classify(id) case Op::id:
#define WEFT_CLASS_atomic(id) case Op::id:
#include "ir/ops.def"
            break;  // of a class above
    }
    throw InternalError(std::string("no rule for the type of '") + op_name(op_.op) + "'");
}

}  // namespace

Type result_type(const Operation& operation, Type stated) { return Rules(operation, stated).result(); }

}  // namespace weft::ir
