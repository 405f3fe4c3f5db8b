// The output of kernels' prints. The text of all threads is collected here, in the order of the prints. The launch
// forwards it when its threads are done: to Python's sys.stdout (which tests and notebooks replace), or to C's stdout
// in a program without Python. One call of print is one piece: pieces of two threads never mix.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "types/layout.h"

namespace weft::runtime {

void append_print(std::string_view text);

// Whether there is text to take; costs one atomic load.
bool has_prints();

// Returns the text since the last call.
std::string take_prints();

// The text that printf makes of a format and its arguments, each 8 bytes. If arguments are missing, it ends in "..." in
// place of the first of them.
std::string format_text(const std::string& format, const std::int64_t* arguments, std::size_t count);

// Stores the text of a `raise`. One that is too long is cut between characters of UTF-8 and ends in "...".
void set_message(Fault& fault, std::string text);

}  // namespace weft::runtime

// Called by compiled kernels: appends format_text() to the buffer above. The words are those of a `print` operation.
extern "C" void weft_print_words(const char* format, const std::int64_t* words, std::int64_t count);
