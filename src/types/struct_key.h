// Keys that distinguish structs with the same class name, equal in every process.
#pragma once

#include <string>
#include <vector>

#include "types/type.h"

namespace weft {

// "module:qualname:" and a digest of the names, types and defaults of the fields, and of `rules`, by which instances
// are made ("" unless it is a dataclass).
std::string struct_key(const std::string& module, const std::string& qualname, const std::vector<Type::Field>& fields,
                       const std::string& rules = {});

// For two different structs (or arrays of them) of one name: a sentence that the class was defined again, with the
// remedy, or that these are two classes. "" for all other types.
std::string redefinition_text(Type found, Type expected);

// The struct of an indexedarray (python/warp/_arrays/indexed.py): "data", and "indices0" and so on for each of its
// axes. Precondition: an array type.
Type indexed_struct(Type array);

}  // namespace weft
