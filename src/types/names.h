// The types that have a name in Python: "float32", "vec3", "vec3f", "transformd".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "types/type.h"

namespace weft {

const std::unordered_map<std::string, Type>& named_types();
// Empty if there is none of this name.
std::optional<Type> named_type(std::string_view name);

}  // namespace weft
