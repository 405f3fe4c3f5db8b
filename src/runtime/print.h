// What kernels print. The text of all threads is collected here, in the order in which the prints happened, and the
// launch hands it on when its threads are done: to Python's sys.stdout (which tests and notebooks replace), or to C's
// stdout in a program without Python. One call of print in a kernel is one piece: pieces of two threads never mix.
#pragma once

#include <string>
#include <string_view>

namespace weft::runtime {

void append_print(std::string_view text);

// True where something waits to be taken: one load of an atomic.
bool has_prints();

// All that was printed since the last call.
std::string take_prints();

}  // namespace weft::runtime

// What compiled kernels call: printf's rules, into the buffer above. Returns the length, negative where C cannot format
// it.
extern "C" int weft_print(const char* format, ...) __attribute__((format(printf, 1, 2)));
