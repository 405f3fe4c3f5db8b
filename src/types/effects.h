// What a kernel does to its arguments, as far as launches, tapes and files of kernels have to know.
#pragma once

namespace weft {

// With one array parameter, or with the arrays inside a struct parameter.
struct ParameterEffects {
    bool reads = false;
    bool writes = false;         // stores or atomics
    bool writes_itself = false;  // to the array, or the arrays in the struct
    bool writes_within = false;  // to arrays that lie in elements of those, at any depth
    bool keeps = false;          // of what is written, some holds arrays: its memory points to theirs afterwards

    bool operator==(const ParameterEffects&) const = default;
};

}  // namespace weft
