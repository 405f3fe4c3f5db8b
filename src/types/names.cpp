#include "types/names.h"

namespace weft {

namespace {

std::unordered_map<std::string, Type> make_named_types() {
    std::unordered_map<std::string, Type> names;
    for (const ScalarInfo& scalar : all_scalars()) {
        names.emplace(scalar.python, Type::scalar(scalar.id));
        const std::string suffix = scalar.suffix;
        if (suffix.empty()) continue;
        // A name without suffix is that of float32.
        const auto add = [&](const std::string& stem, Type type) {
            names.emplace(stem + suffix, type);
            if (scalar.id == Scalar::f32) names.emplace(stem, type);
        };
        for (int n = 2; n <= 4; ++n) add("vec" + std::to_string(n), Type::vector(scalar.id, n));
        if (!scalar.is_float()) continue;
        for (int n = 2; n <= 4; ++n) add("mat" + std::to_string(n) + std::to_string(n), Type::matrix(scalar.id, n, n));
        add("quat", Type::quaternion(scalar.id));
        add("transform", Type::transform(scalar.id));
        add("spatial_vector", Type::vector(scalar.id, 6));
        add("spatial_matrix", Type::matrix(scalar.id, 6, 6));
    }
    names.emplace("spatial_transform", Type::transform(Scalar::f32));
    names.emplace("handle", Type::scalar(Scalar::u64));  // an object id
    return names;
}

}  // namespace

const std::unordered_map<std::string, Type>& named_types() {
    static const auto names = make_named_types();
    return names;
}

std::optional<Type> named_type(std::string_view name) {
    const auto found = named_types().find(std::string(name));
    return found == named_types().end() ? std::nullopt : std::optional(found->second);
}

}  // namespace weft
