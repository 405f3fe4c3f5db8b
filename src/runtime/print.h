// The output of kernels' prints. The text of all threads is collected here, in the order of the prints. The launch
// forwards it when its threads are done: to Python's sys.stdout (which tests and notebooks replace), or to C's stdout
// in a program without Python. One call of print is one piece: pieces of two threads never mix.
#pragma once

#include <string>
#include <string_view>

namespace weft::runtime {

void append_print(std::string_view text);

// Whether there is text to take; costs one atomic load.
bool has_prints();

// Returns the text since the last call.
std::string take_prints();

}  // namespace weft::runtime

// Called by compiled kernels: appends to the buffer above, by printf's rules. Returns the length, negative if C cannot
// format the text.
extern "C" int weft_print(const char* format, ...) __attribute__((format(printf, 1, 2)));
