// Knowledge about zeros in a piece of memory: all of it is zero outside of one range of bytes.
//
// The knowledge requires notice of every write to the memory. That holds for the memory of gradients as long as only
// backward passes write to it (program/tape/gradient_memory.h). Other writers, such as a launch, a NumPy view or an
// address that a program holds, give no notice.
//
// Not thread-safe: the caller holds a lock (in Python, the GIL), which it may release between begin() and end() of a
// write.
#pragma once

#include <algorithm>
#include <cstdint>

namespace weft::runtime {

// Bytes of a piece of memory, relative to its start.
struct ByteRange {
    std::int64_t begin = 0, end = 0;
    bool is_empty() const { return begin >= end; }
};

class Zeros {
public:
    // Precondition: all of it is zero, and from now on begin() and end() surround every write.
    void know_all() { is_known_ = true, others_ = {}; }
    // To be called before writes without notice.
    void forget() {
        if (is_known_) is_known_ = false;
    }
    bool is_known() const { return is_known_; }

    bool hold(ByteRange bytes) const {
        return is_known_ && (bytes.end <= others_.begin || bytes.begin >= others_.end || others_.is_empty());
    }

    // Called before a write to these bytes, which may hold anything from then on. `writer` identifies the writer and is
    // not null; one writer may have several writes in progress.
    void begin(ByteRange bytes, const void* writer) {
        writer_ = running_++ == 0 || writer_ == writer ? writer : nullptr;
        if (bytes.is_empty()) return;
        others_ = others_.is_empty()
                      ? bytes
                      : ByteRange{std::min(others_.begin, bytes.begin), std::max(others_.end, bytes.end)};
    }
    // `leaves_zeros`: the writer left the whole range zero. It counts only if no other writer wrote meanwhile.
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
    ByteRange others_;              // may be non-zero
    int running_ = 0;               // writes between begin() and end()
    const void* writer_ = nullptr;  // the only writer since running_ was 0; null if there were several
};

}  // namespace weft::runtime
