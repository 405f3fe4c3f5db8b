// Overload resolution of builtins: the arguments, by position and by keyword, are put in the order of each overload's
// parameters; the first overload of the table that matches wins. Kernels (sema/call/overload.cpp) and calls from the
// host (program/launch/host_call.h) use this one rule.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "builtins/registry.h"

namespace weft::builtins {

struct CallArgument {
    std::string keyword;  // "" for a positional one
    Argument argument;
};

struct Resolution {
    Match match;             // of the overload that won; not ok if none did
    std::vector<int> slots;  // for each of match.parameter_types, which argument of the call fills it; -1: left out
    // If none won, the reasons for the overloads that come nearest: "dot(a: Vec[n,S], ...) -> S: argument 'b' is vec2f,
    // expected vec3f as in 'a'".
    std::vector<std::string> refusals;
};

Resolution resolve(std::string_view name, std::span<const CallArgument> arguments);

// The parameter that takes the i-th argument of a match; the last one takes all further arguments if it is variadic.
const Parameter& parameter_at(const Signature& signature, std::size_t i);

}  // namespace weft::builtins
