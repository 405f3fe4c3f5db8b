// What is known of zeros in a piece of memory: that all of it is zero outside of one range of bytes.
//
// Nothing is known of memory unless somebody says so who sees every write to it. The memory of gradients is such, as
// long as only backward passes write to it (program/gradient_memory.h), and nothing else: others would have to tell of
// their writes, and a launch, a view of NumPy's or an address that a program holds do not.
//
// Not for several threads at once: the caller has a lock (of Python, the GIL), which he may give up between begin() and
// end() of a write.
#pragma once

#include <algorithm>
#include <cstdint>

namespace weft::runtime {

// Bytes of a piece of memory, counted from its begin.
struct ByteRange {
    std::int64_t begin = 0, end = 0;
    bool is_empty() const { return begin >= end; }
};

class Zeros {
public:
    // All of it is zero, and from now on every write is told: by begin() and end().
    void know_all() { is_known_ = true, others_ = {}; }
    // Writes may come that are not told.
    void forget() {
        if (is_known_) is_known_ = false;
    }
    bool is_known() const { return is_known_; }

    bool hold(ByteRange bytes) const {
        return is_known_ && (bytes.end <= others_.begin || bytes.begin >= others_.end || others_.is_empty());
    }

    // Around each write to these bytes, which may hold anything from begin() on. `writer`: who does it, not null; he
    // may do several at once.
    void begin(ByteRange bytes, const void* writer) {
        writer_ = running_++ == 0 || writer_ == writer ? writer : nullptr;
        if (bytes.is_empty()) return;
        others_ = others_.is_empty()
                      ? bytes
                      : ByteRange{std::min(others_.begin, bytes.begin), std::max(others_.end, bytes.end)};
    }
    // `leaves_zeros`: he has left zeros in all of them. That counts where nobody else wrote meanwhile.
    void end(ByteRange bytes, const void* writer, bool leaves_zeros) {
        --running_;
        if (!leaves_zeros || writer_ != writer) return;
        if (bytes.begin <= others_.begin && bytes.end >= others_.end)
            others_ = {};
        else if (bytes.begin <= others_.begin)
            others_.begin = std::max(others_.begin, bytes.end);
        else if (bytes.end >= others_.end)
            others_.end = std::min(others_.end, bytes.begin);
    }

private:
    bool is_known_ = false;
    ByteRange others_;              // what may be something else
    int running_ = 0;               // writes that have begun and not ended
    const void* writer_ = nullptr;  // of all that have run since there was none; null where they are several
};

}  // namespace weft::runtime
