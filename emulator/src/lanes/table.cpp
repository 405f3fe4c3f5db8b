#include "lanes/table.h"

#include <mutex>
#include <unordered_map>

namespace weft::emulator {

#define WEFT_LEVEL_ROWS(level)         \
    namespace level {                  \
    RowTable rows_of_integers();       \
    RowTable rows_of_comparisons();    \
    RowTable rows_of_floats();         \
    RowTable rows_of_approximations(); \
    RowTable rows_of_halves();         \
    RowTable rows_of_conversions();    \
    }
WEFT_LEVEL_ROWS(base)
#ifdef WEFT_WIDE_LANES
WEFT_LEVEL_ROWS(wide)
#else
namespace wide = base;
#endif

namespace {

// The end of the group that begins at `begin`; collects its alternatives.
size_t group(std::string_view pattern, size_t begin, std::vector<std::string_view>& alternatives) {
    const char close = pattern[begin] == '[' ? ']' : ')';
    const size_t end = pattern.find(close, begin);
    if (close == ']') alternatives.push_back("");
    for (size_t at = begin + 1; at < end + 1;) {
        size_t next = pattern.find('|', at);
        if (next > end) next = end;
        alternatives.push_back(pattern.substr(at, next - at));
        at = next + 1;
    }
    return end + 1;
}

void expand_into(std::string_view pattern, const std::string& prefix, std::vector<std::string>& all) {
    const size_t begin = pattern.find_first_of("[(");
    if (begin == std::string_view::npos) {
        all.push_back(prefix + std::string(pattern));
        return;
    }
    std::vector<std::string_view> alternatives;
    const size_t end = group(pattern, begin, alternatives);
    for (const std::string_view one : alternatives) {
        expand_into(pattern.substr(end), prefix + std::string(pattern.substr(0, begin)) + std::string(one), all);
    }
}

size_t count_sources(const Row& row) {
    size_t count = 0;
    while (count < 4 && row.source[count].bits) ++count;
    return count;
}

// Rows by the opcode's first word, in the order of the table.
using Index = std::unordered_map<std::string_view, std::vector<const Row*>>;
const Index& index_of_rows() {
    static const Index index = [] {
        Index made;
        for (const Row* row : all_rows(processor_is_wide())) {
            const std::string_view pattern = row->pattern;
            made[pattern.substr(0, pattern.find_first_of(".[("))].push_back(row);
        }
        return made;
    }();
    return index;
}

}  // namespace

bool processor_is_wide() {
#ifdef WEFT_WIDE_LANES
    static const bool is =
        __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
    return is;
#else
    return false;
#endif
}

std::vector<const Row*> all_rows(bool is_wide) {
    const RowTable base_tables[] = {base::rows_of_integers(), base::rows_of_comparisons(),
                                    base::rows_of_floats(),   base::rows_of_approximations(),
                                    base::rows_of_halves(),   base::rows_of_conversions()};
    const RowTable wide_tables[] = {wide::rows_of_integers(), wide::rows_of_comparisons(),
                                    wide::rows_of_floats(),   wide::rows_of_approximations(),
                                    wide::rows_of_halves(),   wide::rows_of_conversions()};
    std::vector<const Row*> all;
    for (const RowTable& table : is_wide ? wide_tables : base_tables) {
        for (size_t i = 0; i < table.count; ++i) all.push_back(table.rows + i);
    }
    return all;
}

bool matches(std::string_view pattern, std::string_view opcode) {
    const size_t begin = pattern.find_first_of("[(");
    if (begin == std::string_view::npos) return pattern == opcode;
    if (!opcode.starts_with(pattern.substr(0, begin))) return false;
    opcode.remove_prefix(begin);
    std::vector<std::string_view> alternatives;
    const size_t end = group(pattern, begin, alternatives);
    for (const std::string_view one : alternatives) {
        if (opcode.starts_with(one) && matches(pattern.substr(end), opcode.substr(one.size()))) return true;
    }
    return false;
}

std::vector<std::string> expand(std::string_view pattern) {
    std::vector<std::string> all;
    expand_into(pattern, "", all);
    return all;
}

const Row* find_row(std::string_view opcode, size_t sources) {
    // modules repeat opcodes
    static std::mutex mutex;
    static std::unordered_map<std::string, const Row*> known;
    const std::lock_guard lock(mutex);
    const auto [place, added] = known.try_emplace(std::string(opcode) + '/' + std::to_string(sources), nullptr);
    if (!added) return place->second;
    const Index& index = index_of_rows();
    const auto found = index.find(opcode.substr(0, opcode.find('.')));
    if (found == index.end()) return nullptr;
    for (const Row* row : found->second) {
        if (count_sources(*row) == sources && matches(row->pattern, opcode)) return place->second = row;
    }
    return nullptr;
}

uint16_t flags_of(std::string_view opcode) {
    static const std::unordered_map<std::string_view, uint16_t> known = {
        {"rn", kRoundNearest}, {"rz", kRoundZero},  {"rm", kRoundDown}, {"rp", kRoundUp}, {"rni", kRoundNearest},
        {"rzi", kRoundZero},   {"rmi", kRoundDown}, {"rpi", kRoundUp},  {"ftz", kFlush},  {"sat", kSaturate},
        {"relu", kRelu},       {"NaN", kNan},       {"abs", kAway},     {"rna", kAway}};
    uint16_t flags = 0;
    bool rounds = false;
    for (size_t at = opcode.find('.'); at != std::string_view::npos;) {
        const size_t end = opcode.find('.', at + 1);
        const std::string_view word = opcode.substr(at + 1, end == std::string_view::npos ? end : end - at - 1);
        if (const auto found = known.find(word); found != known.end()) {
            flags |= found->second;
            rounds |= word.front() == 'r' && word != "relu";
        }
        at = end;
    }
    return rounds ? flags : flags | kUnrounded;
}

}  // namespace weft::emulator
