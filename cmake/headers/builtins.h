// What most files of src/builtins include, compiled once with WEFT_TOGETHER.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "builtins/expression.h"
#include "builtins/groups.h"
#include "builtins/registry.h"
