// What a kernel does to its arguments, as far as launches, tapes and files of kernels have to know.
#pragma once

namespace weft {

// With one array parameter, with the arrays inside a struct parameter, or with the objects that numbers name.
struct ParameterEffects {
    bool reads = false;
    bool writes = false;         // stores or atomics
    bool writes_itself = false;  // to the array, or the arrays in the struct
    bool writes_within = false;  // to arrays that lie in elements of those, at any depth
    bool names_objects = false;  // numbers in it are ids of objects (types/objects.h)
    bool keeps = false;          // of what is written, some holds arrays: its memory points to theirs afterwards

    bool operator==(const ParameterEffects&) const = default;
};

}  // namespace weft
