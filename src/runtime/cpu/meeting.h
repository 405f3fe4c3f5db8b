// Launches that meet: those with atomics, from all threads of the program.
//
// An atomic costs as much as ten plain additions. A short launch that runs in one piece while no other with atomics
// does has nobody to share with, and adds plainly. Others that begin meanwhile wait for its end, which is near.
#pragma once

namespace weft::runtime {

class Meeting {
public:
    // Takes part until the end of its life; alone where that is asked for and nobody else takes part.
    explicit Meeting(bool wants_to_be_alone);
    ~Meeting();
    Meeting(const Meeting&) = delete;
    Meeting& operator=(const Meeting&) = delete;

    bool is_alone() const { return is_alone_; }

private:
    bool is_alone_;
};

}  // namespace weft::runtime
