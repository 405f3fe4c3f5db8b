// Names that tell structs apart whose class names are equal, the same in every process.
#pragma once

#include <string>
#include <vector>

#include "types/type.h"

namespace weft {

// "module:qualname:" and a digest of the names, types and defaults of the fields.
std::string struct_key(const std::string& module, const std::string& qualname, const std::vector<Type::Field>& fields);

// The struct of an indexedarray (python/warp/_arrays/indexed.py): "data", and "indices0" and so on for each of its
// axes. Precondition: an array type.
Type indexed_struct(Type array);

}  // namespace weft
