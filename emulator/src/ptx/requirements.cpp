#include "ptx/requirements.h"

#include <algorithm>
#include <unordered_map>

#include "ptx/token.h"

namespace weft::emulator::ptx {

namespace {

using Words = std::vector<std::string_view>;

struct Row {
    std::string_view opcode, words;
    Requirement needs;
};
constexpr Row kRows[] = {
#define WEFT_NEEDS(opcode, words, version, architecture) {opcode, words, {version, architecture}},
#include "ptx/requirements.def"
#undef WEFT_NEEDS
};

Words split(std::string_view text, char at) {
    Words parts;
    while (!text.empty()) {
        const size_t end = std::min(text.find(at), text.size());
        if (end > 0) parts.push_back(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return parts;
}

bool has(const Words& words, std::string_view word) { return std::ranges::find(words, word) != words.end(); }

bool holds(const Row& row, const Words& opcode) {
    if (!row.opcode.empty() && row.opcode != opcode.front()) return false;
    return std::ranges::all_of(split(row.words, ' '), [&](std::string_view wanted) {
        return std::ranges::any_of(split(wanted, '|'), [&](std::string_view one) { return has(opcode, one); });
    });
}

void raise(Requirement& to, Requirement least) {
    to.version = std::max(to.version, least.version);
    to.architecture = std::max(to.architecture, least.architecture);
}

// cvt.….to.from
Requirement of_conversion(const Words& words, int version) {
    const std::string_view to = words[words.size() - 2], from = words.back();
    const auto is_8_bits = [](std::string_view type) { return type == "e4m3x2" || type == "e5m2x2"; };
    if (is_8_bits(to) || is_8_bits(from)) return version >= 81 ? Requirement{81, 89} : Requirement{78, 90};
    if (to == "tf32") return has(words, "rna") ? Requirement{70, 80} : Requirement{78, 90};
    if ((to == "bf16" || to == "bf16x2") && from == "f32") return {70, 80};
    if (to == "f32" && from == "bf16" && !has(words, "ftz")) return {71, 80};
    if (to == "bf16" || from == "bf16") return {78, 90};
    if (to == "f16x2" || has(words, "relu")) return {70, 80};
    return {};
}

}  // namespace

Requirement requirement_of(std::string_view opcode, size_t operands, int version) {
    const Words words = split(opcode, '.');
    Requirement needs;
    if (words.empty()) return needs;
    for (const Row& row : kRows)
        if (holds(row, words)) raise(needs, row.needs);
    if (words.front() == "cvt" && words.size() > 2) raise(needs, of_conversion(words, version));
    const bool is_extreme = words.front() == "min" || words.front() == "max";
    if (is_extreme && (operands == 4 || (has(words, "abs") && !has(words, "xorsign")))) raise(needs, {88, 100});
    return needs;
}

Requirement requirement_of_special(std::string_view name) {
    if (name.starts_with("%cluster") || name.starts_with("%nclusterid") || name == "%is_explicit_cluster")
        return {78, 90};
    if (name == "%aggr_smem_size") return {81, 90};
    if (name == "%current_graph_exec") return {80, 75};
    return {};
}

int version_of_target(int architecture) {
    static const std::unordered_map<int, int> versions = {
        {50, 40}, {52, 41},  {53, 42},  {60, 50},  {61, 50},  {62, 50},  {70, 60},
        {72, 61}, {75, 63},  {80, 70},  {86, 71},  {87, 74},  {88, 90},  {89, 78},
        {90, 78}, {100, 86}, {101, 86}, {103, 88}, {110, 90}, {120, 87}, {121, 88},
    };
    const auto found = versions.find(architecture);
    return found == versions.end() ? 0 : found->second;
}

int version_of_driver(int cuda) {
    constexpr struct {
        int cuda, ptx;
    } kVersions[] = {{11000, 70}, {11010, 71}, {11020, 72}, {11030, 73}, {11040, 74}, {11050, 75}, {11060, 76},
                     {11070, 77}, {11080, 78}, {12000, 80}, {12010, 81}, {12020, 82}, {12030, 83}, {12040, 84},
                     {12050, 85}, {12070, 86}, {12080, 87}, {12090, 88}, {13000, 90}};
    int known = 0;
    for (const auto& [release, ptx] : kVersions)
        if (cuda >= release) known = ptx;
    return known;
}

bool needs_specific_target(std::string_view opcode) {
    const std::string_view head = opcode.substr(0, opcode.find('.'));
    return head == "wgmma" || head == "setmaxnreg" || head == "tcgen05" ||
           (head == "redux" && opcode.ends_with(".f32"));
}

std::string version_text(int version) { return std::to_string(version / 10) + "." + std::to_string(version % 10); }

namespace {

void check(const Module& module, uint32_t line, const std::string& what, Requirement needs) {
    if (needs.architecture > module.architecture)
        throw Error(line, what + " needs .target sm_" + std::to_string(needs.architecture) + " or later, and this is " +
                              module.target);
    if (needs.version > module.version)
        throw Error(line, what + " needs PTX .version " + version_text(needs.version) + " or later, and this is " +
                              version_text(module.version));
}

void check_special(const Module& module, const Statement& statement, const std::vector<Operand>& operands) {
    for (const Operand& operand : operands) {
        if (operand.kind == Operand::Kind::Special)
            check(module, statement.line, "'" + std::string(operand.symbol) + "'",
                  requirement_of_special(operand.symbol));
        check_special(module, statement, operand.parts);
    }
}

// Bytes of the parameters of an entry: 4352 at most, and 32764 from PTX 8.1 on.
void check_parameters(const Module& module, const Function& function) {
    constexpr uint64_t kOfOld = 4352, kMost = 32764;
    uint64_t bytes = 0;
    for (const uint32_t index : function.parameters) {
        const Variable& variable = function.variables[index];
        const uint64_t alignment = std::max<uint64_t>(variable.align, 1);
        bytes = (bytes + alignment - 1) / alignment * alignment + variable.size;
    }
    const uint64_t most = module.version >= 81 ? kMost : kOfOld;
    if (bytes <= most) return;
    throw Error(function.line, "the parameters of '" + function.name + "' have " + std::to_string(bytes) +
                                   " bytes; the most is " + std::to_string(most) +
                                   (module.version >= 81 ? "" : ", and 32764 from PTX .version 8.1 on"));
}

}  // namespace

void check_requirements(const Module& module) {
    const int least = version_of_target(module.architecture);
    if (least > module.version)
        throw Error(1, "PTX .version " + version_text(module.version) + " has no .target " + module.target +
                           "; it is there from " + version_text(least) + " on");
    const bool is_specific = module.target.ends_with('a');
    std::unordered_map<std::string_view, Requirement> known[2];  // [has four operands]
    for (const Function& function : module.functions) {
        if (function.entry) check_parameters(module, function);
        for (const Statement& statement : function.statements) {
            const size_t operands = statement.operands.size();
            const auto [place, is_new] = known[operands == 4].try_emplace(statement.opcode);
            if (is_new) place->second = requirement_of(statement.opcode, operands, module.version);
            check(module, statement.line, "'" + std::string(statement.opcode) + "'", place->second);
            if (!is_specific && needs_specific_target(statement.opcode))
                throw Error(statement.line, "'" + std::string(statement.opcode) + "' needs a .target such as sm_" +
                                                std::to_string(place->second.architecture) + "a, and this is " +
                                                module.target);
            check_special(module, statement, statement.operands);
        }
    }
}

}  // namespace weft::emulator::ptx
