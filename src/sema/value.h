// The result of analysing an expression: a value of the running kernel, or one that is known at compile time.
//
//   runtime    an IR value. `pending` are leading indices of an array that was subscripted with fewer indices than it
//              has dimensions: a[i] is held back until it is clear whether a[i][j] follows (one load) or the row itself
//              is wanted (a view).
//   constant   numbers known at compile time, and structs of them: literals, module constants, variables of unrolled
//              loops. Becomes an IR constant if a runtime value is needed. A *literal* has no type of its own yet:
//              it takes that of the other operand (literals.h). A local bound to a literal is one until it
//              is changed.
//   tuple      several values at once, a tuple or a list; split up before it reaches the IR, if possible.
//   binding    all other meanings of names: types, functions, modules, text, None.
//   nothing    the result of a call that returns nothing.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ir/ir.h"
#include "sema/environment.h"
#include "support/error.h"
#include "support/source.h"
#include "types/type.h"

namespace weft::sema {

// The elements that a view of a tile shows: (i, j) stands for the element number
// base + offset + i * strides[0] + j * strides[1] of the tile in a local.
struct TileView {
    std::string root;  // the local
    std::int64_t base = 0;
    ir::Value* offset = nullptr;  // i32; null: 0
    std::vector<std::int64_t> strides;

    bool operator==(const TileView&) const = default;
};

struct Value {
    enum class Kind { nothing, runtime, constant, tuple, binding } kind = Kind::nothing;
    Type type;                             // runtime, constant; for a literal the type it has when it stands alone
    ir::Value* ir = nullptr;               // runtime
    std::vector<ir::Value*> pending;       // runtime array: indices not yet applied
    std::vector<Number> numbers;           // constant: one per component
    std::shared_ptr<const TileView> view;  // runtime tile: of which elements, if these can be written (tiles/views.cpp)
    bool is_shared = false;                // runtime tile: made with storage="shared", which print() shows
    bool is_literal = false;               // constant
    bool is_list = false;                  // tuple: its elements can be assigned
    bool is_named = false;                 // literal: the value of a local, typed in arithmetic with other literals
    std::vector<Value> elements;           // tuple; constant struct: its fields; lambda: its default values
    std::shared_ptr<const Binding> binding;

    static Value runtime(ir::Value* ir);
    static Value constant(Type type, std::vector<Number> numbers);
    static Value integer(std::int64_t value, Type type = i32_type());
    static Value boolean(bool value);
    static Value literal(Number number);  // int32 or float32 when alone
    static Value tuple(std::vector<Value> elements);
    static Value list(std::vector<Value> elements);
    static Value of_binding(Binding binding);

    bool is_runtime() const { return kind == Kind::runtime; }
    bool is_constant() const { return kind == Kind::constant; }
    bool is_tuple() const { return kind == Kind::tuple; }
    bool is_nothing() const { return kind == Kind::nothing; }
    bool is_binding() const { return kind == Kind::binding; }
    bool is_binding(Binding::Kind k) const { return is_binding() && binding->kind == k; }
    // A scalar known at compile time.
    bool is_constant_scalar() const { return is_constant() && type.is_scalar(); }
    bool is_constant_integer() const { return is_constant_scalar() && type.is_int(); }
    bool is_constant_bool() const { return is_constant_scalar() && type.is_bool(); }
};

// The type of a value; of a tuple, the tuple of its elements' types; none for bindings and nothing.
Type type_of(const Value& value);
// "float32", "int literal 3", "tuple of (int32, float32)", "the type vec3f", "the function 'f'": for messages.
std::string describe(const Value& value);
// The value without the elements that it is a view of.
Value detached(Value value);
// Whether both are views of one tile with the same strides, or neither is a view.
bool show_alike(const Value& a, const Value& b);
// True when both are certainly the same: the same IR value, equal constants, views of the same elements.
bool identical(const Value& a, const Value& b);
// The value as a binding, for Environment::evaluate; kind unknown if it is not known at compile time.
Binding to_binding(const Value& value);

// ---- locals ----
struct Local {
    enum class State {
        assigned,
        maybe,     // assigned on some paths only, and either never read or nothing that has a zero
        unusable,  // would differ from path to path in a way that kernels cannot express; `reason` says how
        conflict,  // has another type on another path; `reason` and `notes` say which
    } state = State::assigned;
    Value value;
    Span assigned;  // the latest assignment, for messages
    std::string reason;
    std::vector<Note> notes;
};

// Ordered, so that equal kernels give equal IR.
using Scope = std::map<std::string, Local, std::less<>>;

// How control can leave a piece of code: a set of these.
using Flow = unsigned;
inline constexpr Flow kStops = 0;  // no path leaves: each raises
inline constexpr Flow kFalls = 1;  // runs off the end
inline constexpr Flow kBreaks = 2;
inline constexpr Flow kContinues = 4;
inline constexpr Flow kReturns = 8;

}  // namespace weft::sema
