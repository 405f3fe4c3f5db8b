// Loads a module: allocates variables, lays out functions, then decodes them.
#include <algorithm>
#include <cstring>
#include <new>
#include <string_view>
#include <unordered_map>

#include "engine/decoder.h"

namespace weft::emulator {

namespace {

uint64_t aligned(uint64_t offset, uint64_t alignment) { return (offset + alignment - 1) / alignment * alignment; }

void add_variable(Program& program, const std::string& key, const ptx::Variable& variable) {
    using Kind = Allocation::Kind;
    Allocation* made = AddressSpace::instance().allocate(
        program.device, variable.size, variable.space == ptx::Space::Const ? Kind::Constant : Kind::Variable, true);
    if (!made) throw std::bad_alloc();
    made->name = variable.name;
    std::memcpy(made->data, variable.bytes.data(), variable.bytes.size());
    if (!program.variables.emplace(key, made).second) {
        AddressSpace::instance().release(made->address, made->kind);
        throw ptx::Error(variable.line, "the variable '" + variable.name + "' stands twice");
    }
}

// The symbols of the module that a statement's operand names.
template <class F>
void each_symbol(const ptx::Operand& operand, const F& visit) {
    if (!operand.symbol.empty() && operand.variable < 0) visit(operand.symbol);
    for (const ptx::Operand& part : operand.parts) each_symbol(part, visit);
}

// The only entry whose own statements name a shared variable of the module, for each variable for which that is all its
// use: other entries have no room for it.
std::unordered_map<std::string_view, const ptx::Function*> only_entries(const ptx::Module& module) {
    std::unordered_map<std::string_view, const ptx::Function*> users;  // null: several, or no entry
    for (const ptx::Variable& variable : module.variables) {
        for (const ptx::Relocation& one : variable.relocations) users[one.symbol] = nullptr;
    }
    for (const ptx::Function& function : module.functions) {
        const ptx::Function* const user = function.entry ? &function : nullptr;
        const auto note = [&](std::string_view symbol) {
            const auto [place, added] = users.try_emplace(symbol, user);
            if (!added && place->second != user) place->second = nullptr;
        };
        for (const ptx::Variable& variable : function.variables) {
            for (const ptx::Relocation& one : variable.relocations) users[one.symbol] = nullptr;
        }
        for (const ptx::Statement& statement : function.statements) {
            for (const ptx::Operand& operand : statement.operands) each_symbol(operand, note);
        }
    }
    return users;
}

// Shared variables of the module and of functions have the same offsets in all entries; those of one entry follow.
uint32_t lay_out_shared(Program& program) {
    uint64_t offset = 0;
    const auto place = [&](const std::string& key, const ptx::Variable& variable, uint64_t& at) {
        at = aligned(at, variable.align);
        program.shared[key] = uint32_t(at);
        at += variable.size;
        if (at > (1u << 30)) throw ptx::Error(variable.line, "shared variables take more than 1 GiB");
    };
    const auto is_placed = [](const ptx::Variable& variable) {
        return variable.space == ptx::Space::Shared && !variable.unsized;
    };
    const auto only = only_entries(program.module);
    const auto entry_of = [&](const ptx::Variable& variable) {
        const auto found = only.find(variable.name);
        return found == only.end() ? nullptr : found->second;
    };
    for (const ptx::Variable& variable : program.module.variables) {
        if (is_placed(variable) && !entry_of(variable)) place(variable.name, variable, offset);
    }
    for (const bool entries : {false, true}) {
        for (CodeFunction& function : program.functions) {
            if (function.source->entry != entries) continue;
            uint64_t own = offset;
            for (const ptx::Variable& variable : program.module.variables) {
                if (entries && is_placed(variable) && entry_of(variable) == function.source)
                    place(variable.name, variable, own);
            }
            for (size_t i = 0; i < function.source->variables.size(); ++i) {
                const ptx::Variable& variable = function.source->variables[i];
                if (is_placed(variable)) place(function.source->name + "/" + std::to_string(i), variable, own);
            }
            function.shared_size = uint32_t(own);
            if (!entries) offset = own;
        }
    }
    return uint32_t(offset);
}

// Parameters of an entry are in a block of their own; those of functions and of calls are in local memory, after
// .local.
void lay_out_local(CodeFunction& function, std::vector<uint32_t>& offsets) {
    const ptx::Function& source = *function.source;
    offsets.assign(source.variables.size(), 0);
    uint64_t local = 0, block = 0;
    const auto place = [](uint64_t& at, const ptx::Variable& variable) {
        const uint64_t begin = aligned(at, std::max<uint64_t>(variable.align, 1));
        at = begin + variable.size;
        if (at > (1u << 30)) throw ptx::Error(variable.line, "the variables of a thread take more than 1 GiB");
        return uint32_t(begin);
    };
    const auto is_parameter = [&](size_t i) {
        return std::find(source.parameters.begin(), source.parameters.end(), uint32_t(i)) != source.parameters.end();
    };
    for (const ptx::Space space : {ptx::Space::Local, ptx::Space::Param}) {
        for (size_t i = 0; i < source.variables.size(); ++i) {
            const ptx::Variable& variable = source.variables[i];
            if (variable.space != space) continue;
            offsets[i] = source.entry && is_parameter(i) ? place(block, variable) : place(local, variable);
        }
        if (space == ptx::Space::Local) function.local_stored = uint32_t(local);
    }
    function.local_size = uint32_t(aligned(local, 16));
    function.parameter_bytes = uint32_t(block);
    for (const uint32_t i : source.parameters) {
        function.parameter_offsets.push_back(offsets[i]);
        function.parameter_sizes.push_back(uint32_t(source.variables[i].size));
    }
    if (source.returns.size() > 1) throw ptx::Error(source.line, "a function has one result at most");
    if (source.returns.empty()) return;
    function.return_offset = offsets[source.returns[0]];
    function.return_size = uint32_t(source.variables[source.returns[0]].size);
}

void relocate(Program& program, const ptx::Variable& variable, Allocation& memory) {
    for (const ptx::Relocation& one : variable.relocations) {
        uint64_t value = 0;
        if (const auto found = program.variables.find(one.symbol); found != program.variables.end()) {
            value = found->second->address;
        } else if (const auto shared = program.shared.find(one.symbol); shared != program.shared.end()) {
            value = kSharedWindow + shared->second;
        } else if (const auto function = program.function_index.find(one.symbol);
                   function != program.function_index.end()) {
            value = kCodeWindow + uint64_t(function->second);
        } else {
            throw ptx::Error(one.line, "unknown symbol '" + one.symbol + "'");
        }
        value += uint64_t(one.addend);
        std::memcpy(memory.data + one.offset, &value, one.bytes);
    }
}

void add_variables(Program& program) {
    const auto stored = [](const ptx::Variable& variable) {
        return !variable.external && (variable.space == ptx::Space::Global || variable.space == ptx::Space::Const);
    };
    for (const ptx::Variable& variable : program.module.variables) {
        if (stored(variable)) add_variable(program, variable.name, variable);
    }
    const auto each_local = [&](auto&& visit) {
        for (const ptx::Function& function : program.module.functions) {
            for (size_t i = 0; i < function.variables.size(); ++i) {
                if (stored(function.variables[i]))
                    visit(function.name + "/" + std::to_string(i), function.variables[i]);
            }
        }
    };
    each_local([&](const std::string& key, const ptx::Variable& variable) { add_variable(program, key, variable); });
    for (const ptx::Variable& variable : program.module.variables) {
        if (stored(variable)) relocate(program, variable, *program.variables.at(variable.name));
    }
    each_local([&](const std::string& key, const ptx::Variable& variable) {
        relocate(program, variable, *program.variables.at(key));
    });
}

}  // namespace

Program::~Program() {
    for (const auto& [name, memory] : variables) AddressSpace::instance().release(memory->address, memory->kind);
}

std::unique_ptr<Program> load_program(std::string text, int device) {
    auto program = std::make_unique<Program>();
    program->device = device;
    program->module = ptx::parse(std::move(text));
    // a declaration and a definition are one function, with the definition's body
    std::vector<ptx::Function>& functions = program->module.functions;
    std::unordered_map<std::string, size_t> chosen;
    for (size_t i = 0; i < functions.size(); ++i) {
        const auto [place, added] = chosen.try_emplace(functions[i].name, i);
        if (added || !functions[i].defined) continue;
        if (functions[place->second].defined) {
            throw ptx::Error(functions[i].line, "the function '" + functions[i].name + "' stands twice");
        }
        place->second = i;
    }
    program->functions.resize(functions.size());
    for (size_t i = 0; i < functions.size(); ++i) program->functions[i].source = &functions[i];
    for (const auto& [name, index] : chosen) program->function_index[name] = int(index);
    lay_out_shared(*program);
    std::vector<std::vector<uint32_t>> offsets(functions.size());
    for (size_t i = 0; i < functions.size(); ++i) lay_out_local(program->functions[i], offsets[i]);
    add_variables(*program);
    for (size_t i = 0; i < functions.size(); ++i) {
        if (!functions[i].defined) continue;
        Decoder decoder(*program, program->functions[i]);
        decoder.local_offsets_ = std::move(offsets[i]);
        decoder.decode();
    }
    return program;
}

}  // namespace weft::emulator
