// Numbers of constants in IR text.
#include <bit>
#include <charconv>
#include <limits>

#include "ir/tokens.h"

namespace weft::ir {

namespace {

[[noreturn]] void fail(const Token& token, const std::string& message) { fail_at(token.line, token.column, message); }

}  // namespace

Number number_of(const Token& token, Scalar scalar) {
    const ScalarInfo& row = info(scalar);
    const char* begin = token.text.data();
    const char* end = begin + token.text.size();
    const auto check = [&](std::from_chars_result r) {
        if (r.ec != std::errc() || r.ptr != end) fail(token, "'" + token.text + "' is no " + row.ir);
    };
    if (scalar == Scalar::boolean) {
        if (token.text != "true" && token.text != "false")
            fail(token, "'" + token.text + "' is neither true nor false");
        return Number::integer(token.text == "true");
    }
    if (!row.is_float()) {
        Number value = Number::integer(0);
        if (scalar == Scalar::u64) {
            std::uint64_t bits = 0;
            check(std::from_chars(begin, end, bits));
            value.i = static_cast<std::int64_t>(bits);
        } else {
            check(std::from_chars(begin, end, value.i));
        }
        if (convert(value, scalar == Scalar::u64 ? Scalar::u64 : Scalar::i64, scalar).i != value.i)
            fail(token, token.text + " does not fit " + row.ir);
        return value;
    }
    if (token.text == "nan") return Number::real(std::numeric_limits<double>::quiet_NaN());
    if (token.text == "inf") return Number::real(std::numeric_limits<double>::infinity());
    if (token.text == "-inf") return Number::real(-std::numeric_limits<double>::infinity());
    if (scalar == Scalar::f32) {
        float value = 0;  // not through double, which could round twice
        check(std::from_chars(begin, end, value));
        return Number::real(value);
    }
    double value = 0;
    check(std::from_chars(begin, end, value));
    return convert(Number::real(value), Scalar::f64, scalar);
}

Number nan_of(const Token& token) {
    std::uint64_t bits = 0;
    const char* digits = token.text.data() + 2;
    const char* stop = token.text.data() + token.text.size();
    if (!token.text.starts_with("0x") || std::from_chars(digits, stop, bits, 16).ptr != stop)
        fail(token, "expected the bits of a NaN as 0x..., found '" + token.text + "'");
    return Number::real(std::bit_cast<double>(bits));
}

}  // namespace weft::ir
