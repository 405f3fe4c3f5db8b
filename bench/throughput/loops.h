// What the hand-written loops share: the form of an exported function, and a vec3 that lies in memory as Weft's does.
#pragma once

#include <cstdint>

#define BENCH_EXPORT extern "C" __attribute__((visibility("default")))

template <typename Real>
struct Vec3 {
    Real x, y, z;
};
