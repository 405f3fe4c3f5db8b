// Angles, as there is no math library here: of single numbers or of vectors.
#pragma once

namespace weft::devlib {

// The angle of the direction (x, y), from -pi to pi; accurate to some ulps. 0 if both are 0.
//
// For 0 <= r <= 1 the arc tangent is four times that of a number below 0.2, as tan(a / 2) = r / (1 + sqrt(1 + r^2));
// its power series is short.
template <typename T, typename V>
V angle_of(V y, V x) {
    const V across = y < 0 ? -y : y, along = x < 0 ? -x : x;
    const auto is_steep = across > along;
    const V least = is_steep ? along : across, most = is_steep ? across : along;
    const V one = 1;
    V r = least / (most > 0 ? most : one);
    r = r / (one + __builtin_elementwise_sqrt(one + r * r));
    r = r / (one + __builtin_elementwise_sqrt(one + r * r));
    const V s = r * r;
    constexpr int kTerms = sizeof(T) == 4 ? 5 : 11;
    V sum = T(1) / T(2 * kTerms - 1);
    for (int k = kTerms - 2; k >= 0; --k) sum = T(1) / T(2 * k + 1) - s * sum;
    V angle = T(4) * r * sum;
    constexpr T kPi = T(3.14159265358979323846);
    angle = is_steep ? kPi / 2 - angle : angle;
    angle = x < 0 ? kPi - angle : angle;
    return y < 0 ? -angle : angle;
}

}  // namespace weft::devlib
