// Memory that another library lends and may move or free.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace weft::runtime {

// Detects that lent memory, which its owner may move, is still in place: words of the owner must have their former
// values. Each word may be read only if all words before it have theirs.
struct Home {
    struct Word {
        const std::byte* address;
        const std::byte* value;
    };
    std::array<Word, 3> words;
    const std::int64_t* size_bytes;  // of the memory that begins at the last value; read after the words

    bool has(const void* end) const {
        for (const Word& word : words)
            if (*reinterpret_cast<const std::byte* const*>(word.address) != word.value) return false;
        return words.back().value + *size_bytes >= end;
    }
};

}  // namespace weft::runtime
