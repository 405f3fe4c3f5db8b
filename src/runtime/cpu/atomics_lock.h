// A lock that launches with atomics hold while they run: shared, or exclusive.
//
// An atomic costs as much as ten plain additions. A short launch that runs in one piece and holds the lock exclusively
// needs no atomics, and adds plainly. Launches that begin meanwhile wait for its end, which is near.
#pragma once

namespace weft::runtime {

class AtomicsLock {
public:
    // Holds the lock for its lifetime: exclusively if that is preferred and the lock is free, else shared.
    explicit AtomicsLock(bool prefers_exclusive);
    ~AtomicsLock();
    AtomicsLock(const AtomicsLock&) = delete;
    AtomicsLock& operator=(const AtomicsLock&) = delete;

    bool is_exclusive() const { return is_exclusive_; }

private:
    bool is_exclusive_;
};

}  // namespace weft::runtime
