// An entry of the builtin table: one overload of a function that kernels can call by `wp.<name>`; its signature, and
// the matching of calls.
//
// An entry is static data: nothing runs at import. Signatures are text, in the notation of the reference pages, and are
// parsed when a name is first looked up:
//
//   "(a: Vec[n,S], b: Vec[n,S]) -> S"
//
//   S F I B      any scalar (not bool) / any float / any integer / bool; a letter repeated means the same type
//   S2 F2 ...    a second, independent scalar
//   int32 ...    that scalar
//   Vec[n,S]     vector of any length n;  Vec[3,F] of length 3.   Mat[r,c,S], Mat[n,n,F], Mat[3,3,F].
//   Quat[F]  Transform[F]
//   HashGridQuery ...   a struct of types/objects.h
//   Array[T,d]   array of any element type T (or of a pattern: Array[S,1], Array[Vec[n,S],2]) and d dimensions
//   T U          any value type; a repeated letter means the same type
//   string       text known at compile time
//   x: inout X   argument is a local variable, which the call may assign (random state, output arguments)
//   x: X = 1.0   default value
//   *args: X     last parameter: any number (one at least) of arguments of that pattern; the size `args` is their count
//   n: static int, dtype: static type
//                a compile-time integer of 0 or more, or a type (length=, dtype=, shape=); patterns further right can
//                name them: (n: static int, dtype: static type = float32) -> Mat[n,n,dtype]
//   -> X, -> (X, Y), -> none
//
// `expand` writes the call as IR. It gets the matched arguments (already converted literals) and returns the result;
// for inout parameters it assigns Call::inout. Entries with a null `expand` are part of the language and handled in
// sema (tid, range, print, static, constructors); they stand here so that the reference and messages know them.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/builder.h"
#include "types/type.h"

namespace weft::builtins {

// One matched call, as `expand` sees it.
struct Call {
    ir::Builder& builder;
    std::span<ir::Value* const> arguments;             // in the order of the signature; null for static parameters
    const std::map<std::string, Type>& types;          // bindings of S, F, T, ... and static types (scalars as Type)
    const std::map<std::string, std::int64_t>& sizes;  // bindings of n, r, c, d and static ints
    std::vector<ir::Value*> inout;                     // new values of the inout arguments, in order
};

using Expand = ir::Value* (*)(Call&);

struct Match;
// A rule that patterns cannot express ("the sizes must agree"): why a match is refused, or "". All of the match but its
// result is known.
using Refuse = std::string (*)(const Match&);

struct Entry {
    const char* name;
    const char* signature;
    const char* doc;  // one sentence or more, as the reference prints it
    Expand expand;
    bool differentiable = true;
    Refuse refuse = nullptr;
};

// ---- parsed signatures ----
struct Parameter {
    std::string name;
    std::string pattern;        // "Vec[n,S]"
    std::string default_value;  // "" if there is none
    bool is_inout = false;
    bool is_static = false;
    bool is_variadic = false;  // the rest of the arguments
};
struct Signature {
    std::vector<Parameter> parameters;
    std::string result;  // pattern, "none", or "(X, Y)"
};
const Signature& signature(const Entry& entry);
// The default number of a value parameter that the call omits; empty if it has none. Becomes a constant of the matched
// parameter type.
std::optional<Number> default_number(const Parameter& parameter);

// One actual argument, as the matcher sees it.
struct Argument {
    Type type;                 // type of the value; for a static type argument the type itself
    bool is_literal = false;   // an untyped Python number: adapts to the other operand's type if it fits
    Number literal;            // its value, if is_literal or a constant
    bool is_constant = false;  // value known at compile time
    bool is_type = false;      // the argument is a type, not a value
};

struct Match {
    const Entry* entry = nullptr;
    std::vector<Type> parameter_types;  // the type to convert each value argument (a literal) to
    std::map<std::string, Type> types;
    std::map<std::string, std::int64_t> sizes;
    Type result;
    bool ok = false;
    int agreed = 0;       // typed arguments that fitted before the first misfit: the higher, the nearer the overload
    std::string why_not;  // "argument 'b' is vec2f, expected vec3f as in 'a'"
};

// Tries one overload on arguments in the order of its parameters. The caller passes an omitted one as an Argument with
// none type; it gets the default. Literals adapt last, so that `wp.max(x, 0)` takes the type of x.
Match match(const Entry& entry, std::span<const Argument> arguments);

}  // namespace weft::builtins
