#include "program/kernel/signature.h"

#include "ir/typing.h"

namespace weft::program {

KernelSignature::KernelSignature(std::string name, std::vector<Type> types, std::vector<std::string> parameter_names)
    : name(std::move(name)),
      types(std::move(types)),
      parameter_names(std::move(parameter_names)),
      layout(argument_layout(this->types)),
      arrays(block_arrays(layout, this->types)) {
    for (std::size_t i = 0; i < this->types.size(); ++i) {
        const Type type = this->types[i];
        if (!type.is_array()) numbers.emplace_back(layout.offsets[i], type.size_bytes());
        // The elements of a generic array have no type.
        const Type value = type.is_array() ? type.element() : type;
        has_structs |= value.is_struct();
    }
}

bool KernelSignature::is_smooth_array(std::size_t parameter) const {
    return types[parameter].is_array() && ir::is_smooth(types[parameter].element());
}

namespace {

// Appends the names of the arrays of a parameter, in the order of the block.
void add_names(Type type, const std::string& name, std::vector<std::string>& names) {
    if (type.is_array()) names.push_back(name);
    if (!type.is_struct()) return;
    for (const Type::Field& field : type.fields()) add_names(field.type, name + "." + field.name, names);
}

}  // namespace

std::vector<std::string> KernelSignature::array_names() const {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < types.size(); ++i) add_names(types[i], parameter_names[i], names);
    return names;
}

}  // namespace weft::program
