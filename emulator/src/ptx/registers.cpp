// Liveness over basic blocks. Most registers live within one block; the sets that travel between blocks have the others
// alone, so that kernels of many thousand registers take little memory.
#include "ptx/registers.h"

#include <algorithm>
#include <set>
#include <string_view>

namespace weft::emulator::ptx {

namespace {

constexpr int kMostOfThread = 255;
constexpr int kReserved = 4;  // the stack pointer, addresses of the ABI
constexpr uint32_t kNone = ~0u;

std::string_view head_of(std::string_view opcode) { return opcode.substr(0, opcode.find('.')); }

bool has_result(std::string_view opcode) {
    static const std::set<std::string_view> kWithout = {
        "st",      "red",   "bra",   "brx",     "ret",           "exit",           "trap",       "brkpt",
        "membar",  "fence", "bar",   "barrier", "call",          "prefetch",       "prefetchu",  "nanosleep",
        "pmevent", "cp",    "wgmma", "discard", "applypriority", "griddepcontrol", "setmaxnreg", "stmatrix"};
    const std::string_view head = head_of(opcode);
    return !kWithout.contains(head) || (head.starts_with("bar") && opcode.find(".red") != opcode.npos);
}

struct Access {
    std::vector<uint32_t> uses, results;
};

void collect(const Operand& operand, std::vector<uint32_t>& to) {
    using Kind = Operand::Kind;
    if (operand.kind == Kind::Register || (operand.kind == Kind::Address && operand.has_base))
        to.push_back(operand.reg);
    for (const Operand& part : operand.parts) collect(part, to);
}

Access access_of(const Statement& statement) {
    Access access;
    for (size_t i = 0; i < statement.operands.size(); ++i)
        collect(statement.operands[i], i == 0 && has_result(statement.opcode) ? access.results : access.uses);
    if (statement.guard >= 0) access.uses.push_back(uint32_t(statement.guard));
    return access;
}

int units_of(const Type& type) {
    if (type.bits == 1) return 0;
    return std::max(1, int(type.bits) / 32);
}

class Liveness {
public:
    explicit Liveness(const Function& function) : function_(function), count_(function.statements.size()) {
        accesses_.reserve(count_);
        for (const Statement& statement : function.statements) accesses_.push_back(access_of(statement));
        find_free();
        find_blocks();
        find_travelling();
        solve();
    }

    int most() const {
        int most = 0;
        std::vector<bool> live(function_.registers.size());
        for (size_t block = 0; block + 1 < begins_.size(); ++block) {
            int units = 0;
            std::vector<uint32_t> touched;
            const auto set = [&](uint32_t one, bool is_live) {
                if (is_free_[one] || live[one] == is_live) return;
                live[one] = is_live;
                if (is_live) touched.push_back(one);
                units += is_live ? units_of(function_.registers[one]) : -units_of(function_.registers[one]);
            };
            for (size_t i = 0; i < travelling_.size(); ++i)
                if (out_[block][i]) set(travelling_[i], true);
            most = std::max(most, units);
            for (size_t at = begins_[block + 1]; at-- > begins_[block];) {
                // a result that is not used takes a register while it is written
                for (const uint32_t one : accesses_[at].results) set(one, true);
                most = std::max(most, units);
                if (function_.statements[at].guard < 0)
                    for (const uint32_t one : accesses_[at].results) set(one, false);
                for (const uint32_t one : accesses_[at].uses) set(one, true);
                most = std::max(most, units);
            }
            for (const uint32_t one : touched) live[one] = false;
        }
        return most;
    }

private:
    // Registers that are written once, with a value that needs none to be made again.
    void find_free() {
        const size_t registers = function_.registers.size();
        std::vector<uint32_t> writes(registers);
        for (const Access& access : accesses_)
            for (const uint32_t one : access.results) ++writes[one];
        is_free_.assign(registers, false);
        for (size_t i = 0; i < registers; ++i) is_free_[i] = function_.registers[i].bits == 1;
        for (size_t at = 0; at < count_; ++at) {
            const Statement& statement = function_.statements[at];
            const std::string_view head = head_of(statement.opcode);
            const Access& access = accesses_[at];
            if (access.results.empty() || statement.guard >= 0) continue;
            const bool is_parameter =
                function_.entry && statement.opcode.starts_with("ld.param") && access.uses.empty();
            const bool is_made_again = (head == "mov" || head == "cvta") &&
                                       std::ranges::all_of(access.uses, [&](uint32_t one) { return is_free_[one]; });
            if (!is_parameter && !is_made_again) continue;
            for (const uint32_t one : access.results)
                if (writes[one] == 1) is_free_[one] = true;
        }
    }

    void find_blocks() {
        std::set<size_t> begins = {0, count_};
        for (const auto& [name, at] : function_.labels) begins.insert(at);
        for (size_t at = 0; at < count_; ++at)
            if (ends_block(at)) begins.insert(at + 1);
        begins_.assign(begins.begin(), begins.end());
        block_of_.resize(count_ + 1);
        for (size_t block = 0; block + 1 < begins_.size(); ++block)
            for (size_t at = begins_[block]; at < begins_[block + 1]; ++at) block_of_[at] = uint32_t(block);
        block_of_[count_] = kNone;
    }

    bool ends_block(size_t at) const {
        const std::string_view head = head_of(function_.statements[at].opcode);
        return head == "bra" || head == "brx" || head == "ret" || head == "exit" || head == "trap";
    }

    std::vector<uint32_t> successors(size_t block) const {
        const size_t last = begins_[block + 1] - 1;
        std::vector<uint32_t> next;
        const auto add = [&](size_t at) {
            if (at <= count_ && block_of_[at] != kNone) next.push_back(block_of_[at]);
        };
        const auto add_label = [&](std::string_view name) {
            if (const auto found = function_.labels.find(name); found != function_.labels.end()) add(found->second);
        };
        const Statement& statement = function_.statements[last];
        const std::string_view head = head_of(statement.opcode);
        if (head == "bra" && !statement.operands.empty()) add_label(statement.operands[0].symbol);
        if (head == "brx" && statement.operands.size() > 1)
            if (const auto found = function_.targets.find(statement.operands[1].symbol);
                found != function_.targets.end())
                for (const std::string_view name : found->second) add_label(name);
        if (!ends_block(last) || statement.guard >= 0) add(last + 1);
        return next;
    }

    // Registers that are read in a block before it writes them.
    void find_travelling() {
        std::vector<bool> is_known(function_.registers.size());
        std::vector<uint32_t> written_in(function_.registers.size(), kNone);
        index_.assign(function_.registers.size(), kNone);
        for (size_t block = 0; block + 1 < begins_.size(); ++block) {
            for (size_t at = begins_[block]; at < begins_[block + 1]; ++at) {
                for (const uint32_t one : accesses_[at].uses) {
                    if (is_free_[one] || is_known[one] || written_in[one] == block) continue;
                    is_known[one] = true;
                    index_[one] = uint32_t(travelling_.size());
                    travelling_.push_back(one);
                }
                if (function_.statements[at].guard >= 0) continue;
                for (const uint32_t one : accesses_[at].results) written_in[one] = uint32_t(block);
            }
        }
    }

    void solve() {
        const size_t blocks = begins_.size() - 1;
        out_.assign(blocks, std::vector<bool>(travelling_.size()));
        std::vector<std::vector<bool>> in = out_;
        std::vector<std::vector<uint32_t>> next(blocks);
        for (size_t block = 0; block < blocks; ++block) next[block] = successors(block);
        for (bool changes = true; changes;) {
            changes = false;
            for (size_t block = blocks; block-- > 0;) {
                std::vector<bool>& out = out_[block];
                for (const uint32_t after : next[block])
                    for (size_t i = 0; i < out.size(); ++i)
                        if (in[after][i]) out[i] = true;
                std::vector<bool> live = out;
                for (size_t at = begins_[block + 1]; at-- > begins_[block];) {
                    if (function_.statements[at].guard < 0)
                        for (const uint32_t one : accesses_[at].results)
                            if (index_[one] != kNone) live[index_[one]] = false;
                    for (const uint32_t one : accesses_[at].uses)
                        if (index_[one] != kNone) live[index_[one]] = true;
                }
                if (live == in[block]) continue;
                in[block] = std::move(live);
                changes = true;
            }
        }
    }

    const Function& function_;
    size_t count_;
    std::vector<Access> accesses_;
    std::vector<bool> is_free_;
    std::vector<size_t> begins_;  // of blocks, and the end
    std::vector<uint32_t> block_of_;
    std::vector<uint32_t> travelling_, index_;
    std::vector<std::vector<bool>> out_;  // [block][travelling]
};

void add_callees(const Module& module, const Function& function, std::set<const Function*>& found) {
    for (const Statement& statement : function.statements) {
        if (head_of(statement.opcode) != "call") continue;
        for (const Operand& operand : statement.operands) {
            if (operand.kind != Operand::Kind::Symbol) continue;
            for (const Function& callee : module.functions)
                if (callee.defined && callee.name == operand.symbol && found.insert(&callee).second)
                    add_callees(module, callee, found);
        }
    }
}

uint64_t threads_of(const uint32_t (&limits)[3]) { return uint64_t(limits[0]) * limits[1] * limits[2]; }

}  // namespace

int live_registers(const Function& function) { return function.statements.empty() ? 0 : Liveness(function).most(); }

int registers_of_entry(const Module& module, const Function& entry) {
    constexpr uint64_t kOfBlock = 65536, kUnit = 8, kWarp = 32;
    std::set<const Function*> functions = {&entry};
    add_callees(module, entry, functions);
    int registers = 0;
    for (const Function* function : functions) registers = std::max(registers, live_registers(*function));
    registers = std::max(registers + kReserved, 16);
    int most = kMostOfThread;
    if (entry.max_registers > 0) most = std::min(most, int(entry.max_registers));
    for (const auto* limits : {&entry.max_threads, &entry.required_threads}) {
        if ((*limits)[0] == 0) continue;
        const uint64_t threads = (threads_of(*limits) + kWarp - 1) / kWarp * kWarp;
        if (threads > 0) most = std::min(most, int(kOfBlock / threads / kUnit * kUnit));
    }
    return std::min(registers, most);
}

}  // namespace weft::emulator::ptx
