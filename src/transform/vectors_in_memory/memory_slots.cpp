#include "transform/vectors_in_memory/memory_slots.h"

#include <algorithm>
#include <numeric>
#include <unordered_set>

#include "ir/walk.h"

namespace weft::transform {

namespace {

using ir::Op;
using ir::Operation;
using ir::Region;
using ir::Value;

// A set of small numbers.
class Set {
public:
    explicit Set(std::size_t size = 0) : words_((size + 63) / 64, 0) {}
    void add(std::size_t n) { words_[n / 64] |= std::uint64_t{1} << n % 64; }
    void remove(std::size_t n) { words_[n / 64] &= ~(std::uint64_t{1} << n % 64); }
    bool has(std::size_t n) const { return words_[n / 64] >> n % 64 & 1; }
    void add(const Set& other) {
        for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
    }
    bool meets(const Set& other) const {
        for (std::size_t i = 0; i < words_.size(); ++i)
            if (words_[i] & other.words_[i]) return true;
        return false;
    }

private:
    std::vector<std::uint64_t> words_;
};

bool is_loop(const Operation& operation) { return operation.op == Op::for_ || operation.op == Op::while_; }
bool is_insert(const Operation& operation) { return operation.op == Op::insert || operation.op == Op::insert_at; }

// A copy, if the two values have different places.
struct Move {
    const Value *from, *to;
};

// The moves at one point of the program, which happen one after the other.
struct Moves {
    std::vector<Move> list;

    void add(const std::vector<Value*>& from, const std::vector<Value*>& to, std::size_t first_from = 0,
             std::size_t first_to = 0) {
        for (std::size_t i = 0; first_from + i < from.size() && first_to + i < to.size(); ++i)
            list.push_back({from[first_from + i], to[first_to + i]});
    }
};

Moves into_loop(const Operation& loop) {
    Moves moves;
    moves.add(loop.operands, loop.body(0).arguments, ir::carried_operands(loop), ir::carried_arguments(loop));
    return moves;
}

Moves out_of_loop(const Operation& loop) {
    Moves moves;
    moves.add(loop.body(0).arguments, loop.results, ir::carried_arguments(loop));
    return moves;
}

// From the condition of a while to its body.
Moves into_body(const Operation& loop) {
    Moves moves;
    if (loop.op == Op::while_) moves.add(loop.body(0).arguments, loop.body(1).arguments);
    return moves;
}

Moves at_end(const Region& region) {
    Moves moves;
    const Operation& owner = *region.owner;
    const Operation& end = *region.terminator();
    if (owner.op == Op::if_)
        moves.add(end.operands, owner.results);
    else if (owner.op == Op::for_ || &region == owner.regions.back())
        moves.add(end.operands, owner.body(0).arguments, 0, ir::carried_arguments(owner));
    return moves;
}

class Assignment {
public:
    Assignment(const ir::Function& function, int most_in_registers, const LargeOperations& operations)
        : function_(function), most_in_registers_(most_in_registers), large_(operations) {}

    MemorySlots run() {
        if (!find_candidates()) return {};
        find_uses_in_loops();
        interferes_.assign(values_.size(), Set(values_.size()));
        for (const Value* a : function_.body.arguments)
            for (const Value* b : function_.body.arguments) separate(a, b);
        walk(function_.body, Set(values_.size()));
        coalesce();
        return slots();
    }

private:
    bool is_large(const Value* value) const {
        return !large_.in_loops(value) && (value->type.is_vector() || value->type.is_matrix()) &&
               value->type.components() > most_in_registers_;
    }

    // ---- candidates for memory ----

    // Finds groups of large values that are versions of each other, and of these groups the ones with a component
    // chosen at run time. Their candidates are results of inserts, branches and loops, and indexed values. Other values
    // of a group are computed in registers.
    bool find_candidates() {
        std::unordered_map<const Value*, const Value*> leader;
        const auto find = [&](const Value* value) {
            leader.try_emplace(value, value);
            while (leader[value] != value) value = leader[value] = leader[leader[value]];
            return value;
        };
        std::vector<const Value*> wanted;  // in program order
        std::vector<const Value*> indexed;
        const auto join = [&](const Value* a, const Value* b) {
            if (is_large(a)) leader[find(a)] = find(b);
        };
        const auto join_all = [&](const Moves& moves) {
            for (const Move& move : moves.list) join(move.from, move.to);
        };
        const auto want = [&](const std::vector<Value*>& values) {
            for (const Value* value : values)
                if (is_large(value)) wanted.push_back(value);
        };
        ir::for_each_operation(function_.body, [&](const Operation& operation) {
            for (const Region* region : operation.regions) {
                want(region->arguments);
                join_all(at_end(*region));
            }
            if (is_loop(operation)) {
                join_all(into_loop(operation));
                join_all(into_body(operation));
                join_all(out_of_loop(operation));
            }
            if (!operation.regions.empty() || is_insert(operation) || operation.op == Op::select)
                want(operation.results);
            if (is_insert(operation)) join(operation.operands[0], operation.result());
            if (operation.op == Op::select) {
                join(operation.operands[1], operation.result());
                join(operation.operands[2], operation.result());
            }
            if (operation.op == Op::insert_at && is_large(operation.result())) indexed.push_back(operation.result());
            if (operation.op == Op::extract_at && is_large(operation.operands[0])) {
                indexed.push_back(operation.operands[0]);
                wanted.push_back(operation.operands[0]);
            }
        });
        std::unordered_set<const Value*> active;
        for (const Value* value : indexed) active.insert(find(value));
        for (const Value* value : wanted)
            if (active.contains(find(value))) add(value);
        add_those_in_loops();
        return !values_.empty();
    }

    void add(const Value* value) {
        if (number_.emplace(value, values_.size()).second) values_.push_back(value);
    }

    void add_those_in_loops() {
        if (!large_.any()) return;
        const auto add_all = [&](const std::vector<Value*>& values) {
            for (const Value* value : values)
                if (large_.in_loops(value) && !large_.is_computed(value)) add(value);
        };
        add_all(function_.parameters());
        ir::for_each_operation(function_.body, [&](const Operation& operation) {
            for (const Region* region : operation.regions) add_all(region->arguments);
            add_all(operation.results);
        });
    }

    // -1: the value stays in registers.
    int number(const Value* value) const {
        const auto found = number_.find(value);
        return found == number_.end() ? -1 : static_cast<int>(found->second);
    }

    // ---- which of them are needed at the same time ----

    // A value from outside that a loop uses is live as long as the loop runs.
    void find_uses_in_loops() {
        const auto use = [&](const Operation& operation, const Value* value) {
            const int n = number(value);
            if (n < 0) return;
            const Region* const home = ir::region_of(value);
            for (const Region* at = operation.parent; at != home && at->owner; at = at->owner->parent)
                if (is_loop(*at->owner))
                    from_outside_.try_emplace(at->owner, values_.size()).first->second.add(static_cast<std::size_t>(n));
        };
        ir::for_each_operation(function_.body, [&](const Operation& operation) {
            for (const Value* operand : operation.operands)
                for (const LargeOperations::Source& source : sources(operand)) use(operation, source.value);
        });
    }

    // The values in memory that components of `value` are read from.
    std::vector<LargeOperations::Source> sources(const Value* value) const {
        if (large_.in_loops(value)) return large_.sources(value);
        return number(value) < 0 ? std::vector<LargeOperations::Source>()
                                 : std::vector<LargeOperations::Source>{{value, true}};
    }

    void need(Set& live, const Value* value) const {
        for (const LargeOperations::Source& source : sources(value))
            if (const int n = number(source.value); n >= 0) live.add(static_cast<std::size_t>(n));
    }
    void forget(Set& live, const Value* value) const {
        if (const int n = number(value); n >= 0) live.remove(static_cast<std::size_t>(n));
    }
    void separate(const Value* a, const Value* b) {
        const int m = number(a), n = number(b);
        if (m < 0 || n < 0 || m == n) return;
        interferes_[static_cast<std::size_t>(m)].add(static_cast<std::size_t>(n));
        interferes_[static_cast<std::size_t>(n)].add(static_cast<std::size_t>(m));
    }
    // `value` is written while the values of `live` are still needed.
    void write(const Value* value, const Set& live) {
        const int m = number(value);
        if (m < 0) return;
        for (std::size_t n = 0; n < values_.size(); ++n)
            if (live.has(n)) separate(value, values_[n]);
    }
    void write(const std::vector<Value*>& values, const Set& live) {
        for (const Value* value : values) {
            write(value, live);
            for (const Value* other : values) separate(value, other);
        }
    }
    // A move must not overwrite the source of a later one.
    void separate(const Moves& moves) {
        for (const Move& move : moves.list) {
            for (const Move& other : moves.list)
                if (other.from != move.from)
                    for (const LargeOperations::Source& source : sources(other.from)) separate(move.to, source.value);
            separate_out_of_step(move.to, move.from);
        }
    }
    // Writing one component must not overwrite those that other components are computed from.
    void separate_out_of_step(const Value* written, const Value* from, bool in_step = true) {
        for (const LargeOperations::Source& source : sources(from))
            if (!in_step || !source.in_step) separate(written, source.value);
    }

    // Walks backwards. `live` holds the values needed after the region; the result holds those needed before it.
    Set walk(const Region& region, Set live) {
        for (std::size_t i = region.operations.size(); i-- > 0;) {
            const Operation& operation = *region.operations[i];
            if (operation.op == Op::if_)
                walk_if(operation, live);
            else if (is_loop(operation))
                walk_loop(operation, live);
            else if (operation.op != Op::yield)  // the owner of the region moves its operands
                step(operation, live);
        }
        return live;
    }

    void step(const Operation& operation, Set& live) {
        write(operation.results, live);
        if (operation.results.size() == 1 && large_.in_loops(operation.result())) {
            const bool inserts = is_insert(operation);
            for (const Value* operand : operation.operands)
                separate_out_of_step(operation.result(), operand,
                                     inserts ? operand == operation.operands[0] : is_componentwise(operation.op));
        }
        for (const Value* result : operation.results) forget(live, result);
        for (const Value* operand : operation.operands) need(live, operand);
    }

    void walk_if(const Operation& operation, Set& live) {
        write(operation.results, live);
        for (const Value* result : operation.results) forget(live, result);
        Set before = live;
        for (const Region* arm : operation.regions) {
            separate(at_end(*arm));
            Set end = live;
            for (const Value* yielded : arm->terminator()->operands) need(end, yielded);
            before.add(walk(*arm, std::move(end)));
        }
        live = std::move(before);
    }

    void walk_loop(const Operation& loop, Set& live) {
        for (const Moves& moves : {into_loop(loop), into_body(loop), out_of_loop(loop)}) separate(moves);
        write(loop.results, live);
        for (const Value* result : loop.results) forget(live, result);
        if (const auto found = from_outside_.find(&loop); found != from_outside_.end()) live.add(found->second);
        // From here on `live` holds the values that the loop must not overwrite.
        for (const Region* region : loop.regions) write(region->arguments, live);
        Set end = live;
        for (const Value* carried : loop.regions.back()->terminator()->operands) need(end, carried);
        separate(at_end(*loop.regions.back()));
        walk(*loop.regions.back(), std::move(end));
        if (loop.op == Op::while_) {
            Set tested = live;
            for (const Value* argument : loop.body(0).arguments) need(tested, argument);
            walk(loop.body(0), std::move(tested));
        }
        for (std::size_t i = ir::carried_operands(loop); i < loop.operands.size(); ++i) need(live, loop.operands[i]);
    }

    // ---- as few places as possible ----

    std::size_t leader(std::size_t n) {
        while (leader_[n] != n) n = leader_[n] = leader_[leader_[n]];
        return n;
    }

    void join(const Value* from, const Value* to) {
        const int m = number(from), n = number(to);
        if (m < 0 || n < 0) return;
        const std::size_t a = leader(static_cast<std::size_t>(m)), b = leader(static_cast<std::size_t>(n));
        if (a == b || interferes_[a].meets(members_[b])) return;
        leader_[b] = a;
        members_[a].add(members_[b]);
        interferes_[a].add(interferes_[b]);
    }

    // Moves that go round a loop come first, as they are done most often.
    void coalesce() {
        leader_.resize(values_.size());
        std::iota(leader_.begin(), leader_.end(), std::size_t{0});
        members_.assign(values_.size(), Set(values_.size()));
        for (std::size_t n = 0; n < values_.size(); ++n) members_[n].add(n);
        const auto join_all = [&](const Moves& moves) {
            for (const Move& move : moves.list) join(move.from, move.to);
        };
        const auto each = [&](const auto& visit) { ir::for_each_operation(function_.body, visit); };
        each([&](const Operation& operation) {
            if (is_insert(operation)) join(operation.operands[0], operation.result());
        });
        each([&](const Operation& operation) {
            if (!is_loop(operation)) return;
            join_all(at_end(*operation.regions.back()));
            join_all(into_body(operation));
            join_all(out_of_loop(operation));
        });
        each([&](const Operation& operation) {
            if (operation.op == Op::if_)
                for (const Region* arm : operation.regions) join_all(at_end(*arm));
            if (operation.op == Op::select)
                for (std::size_t i : {1, 2}) join(operation.operands[i], operation.result());
        });
        each([&](const Operation& operation) {
            if (is_loop(operation)) join_all(into_loop(operation));
        });
    }

    // Values that are never live at the same time share a place.
    MemorySlots slots() {
        MemorySlots storage;
        std::vector<Set> in_slot;
        std::unordered_map<std::size_t, int> slot;  // of groups
        for (std::size_t n = 0; n < values_.size(); ++n) {
            const std::size_t group = leader(n);
            if (slot.contains(group)) continue;
            const Type type = values_[n]->type;
            std::size_t at = 0;
            while (at < in_slot.size() && (storage.types[at] != type || in_slot[at].meets(interferes_[group]))) ++at;
            if (at == in_slot.size()) {
                storage.types.push_back(type);
                in_slot.emplace_back(values_.size());
            }
            in_slot[at].add(members_[group]);
            slot.emplace(group, static_cast<int>(at));
        }
        for (std::size_t n = 0; n < values_.size(); ++n) storage.of.emplace(values_[n], slot.at(leader(n)));
        return storage;
    }

    const ir::Function& function_;
    const int most_in_registers_;
    const LargeOperations& large_;
    std::vector<const Value*> values_;  // those that may live in memory
    std::unordered_map<const Value*, std::size_t> number_;
    std::unordered_map<const Operation*, Set> from_outside_;  // by loop
    std::vector<Set> interferes_, members_;                   // by value; of groups, at their leader
    std::vector<std::size_t> leader_;
};

}  // namespace

MemorySlots assign_memory_slots(const ir::Function& function, int most_in_registers,
                                const LargeOperations& operations) {
    return Assignment(function, most_in_registers, operations).run();
}

}  // namespace weft::transform
