// The structs of kernels.py.
#pragma once

#include "weft/array_view.h"

struct Vec3 {
    float x, y, z;
};

struct Wind {
    Vec3 direction;
    float strength;
    weft::ArrayView gusts;
};
