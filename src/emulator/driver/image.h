#pragma once
// Machine code as the emulated driver makes it of PTX (cuLinkComplete): the header of an ELF file for NVIDIA's GPUs,
// whose free bytes say that it is the emulator's, and behind it the architecture and the PTX. It is loaded on that
// architecture only, as machine code is.
#include <string>
#include <vector>

namespace weft::emulator {

bool is_elf(const void* bytes);
// With the architecture as a cubin's header has it.
std::vector<char> make_image(const std::string& text, int architecture);
// The PTX in an image of the emulator's for this architecture, or null, and why in `problem`: real cubins, images for
// other architectures, damage. `is_damaged` where it is no machine code at all. Precondition: is_elf(image).
const char* text_of_image(const void* image, int architecture, std::string& problem, bool& is_damaged);

}  // namespace weft::emulator
