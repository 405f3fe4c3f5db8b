// The effects of a kernel on its arguments, for launches, tapes and files of kernels.
#pragma once

namespace weft {

// Effects on one array parameter, on the arrays inside a struct parameter, or on the objects that numbers name.
struct ParameterEffects {
    bool reads = false;
    bool writes = false;         // stores or atomics
    bool writes_itself = false;  // to the array, or the arrays in the struct
    bool writes_within = false;  // to arrays held by elements of those, at any depth
    bool names_objects = false;  // numbers in it are ids of objects (types/objects.h)
    bool keeps = false;          // written values hold arrays: the written memory refers to their memory afterwards

    bool operator==(const ParameterEffects&) const = default;
};

}  // namespace weft
