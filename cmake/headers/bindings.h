// What most files of src/bindings include, compiled once with WEFT_TOGETHER.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "bindings/arrays/array_object.h"
#include "bindings/kernels/kernel.h"
#include "bindings/structs/structs.h"
#include "bindings/values/types.h"
#include "bindings/values/values.h"
#include "program/launch/launch.h"
