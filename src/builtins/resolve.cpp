#include "builtins/resolve.h"

#include <algorithm>

namespace weft::builtins {

namespace {

// The arguments in the order of an overload's parameters, -1 for an omitted one; or why they do not fit the parameters.
struct Arranged {
    std::vector<int> slots;
    std::string why_not;
};

Arranged arrange(const Signature& signature, std::span<const CallArgument> arguments) {
    Arranged result;
    const auto& parameters = signature.parameters;
    const bool is_variadic = !parameters.empty() && parameters.back().is_variadic;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        if (arguments[i].keyword.empty()) result.slots.push_back(static_cast<int>(i));
    }
    if (result.slots.size() > parameters.size() && !is_variadic) {
        result.why_not = "takes " + std::to_string(parameters.size()) +
                         (parameters.size() == 1 ? " argument, " : " arguments, ") + std::to_string(arguments.size()) +
                         " given";
        return result;
    }
    result.slots.resize(std::max(result.slots.size(), parameters.size()), -1);
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const std::string& keyword = arguments[i].keyword;
        if (keyword.empty()) continue;
        const auto found =
            std::find_if(parameters.begin(), parameters.end(), [&](const Parameter& p) { return p.name == keyword; });
        if (found == parameters.end()) {
            result.why_not = "has no parameter '" + keyword + "'";
            return result;
        }
        int& slot = result.slots[static_cast<std::size_t>(found - parameters.begin())];
        if (slot >= 0) {
            result.why_not = "argument '" + keyword + "' is given twice";
            return result;
        }
        slot = static_cast<int>(i);
    }
    return result;
}

}  // namespace

Resolution resolve(std::string_view name, std::span<const CallArgument> arguments) {
    Resolution result;
    int most_agreed = 0;
    for (const Entry* entry : overloads(name)) {
        Arranged arranged = arrange(signature(*entry), arguments);
        Match match;
        if (arranged.why_not.empty()) {
            std::vector<Argument> offered;
            for (const int slot : arranged.slots)
                offered.push_back(slot < 0 ? Argument() : arguments[static_cast<std::size_t>(slot)].argument);
            match = builtins::match(*entry, offered);
            if (match.ok) {
                result.slots = std::move(arranged.slots);
                result.slots.resize(match.parameter_types.size(), -1);
                result.match = std::move(match);
                result.refusals.clear();
                return result;
            }
            arranged.why_not = match.why_not;
        }
        if (match.agreed > most_agreed) result.refusals.clear();
        most_agreed = std::max(most_agreed, match.agreed);
        if (match.agreed == most_agreed)
            result.refusals.push_back(std::string(entry->name) + entry->signature + ": " + arranged.why_not);
    }
    return result;
}

const Parameter& parameter_at(const Signature& signature, std::size_t i) {
    return signature.parameters[std::min(i, signature.parameters.size() - 1)];
}

}  // namespace weft::builtins
