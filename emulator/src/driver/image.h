#pragma once
// Images that the emulated driver makes from PTX (cuLinkComplete), in place of machine code: the header of an ELF file
// for NVIDIA's GPUs, marked in its free bytes as the emulator's, followed by the architecture and the PTX. Like machine
// code, an image is loaded on that architecture only.
#include <string>
#include <vector>

namespace weft::emulator {

bool is_elf(const void* bytes);
// An image with the architecture in the header, as a cubin has it.
std::vector<char> make_image(const std::string& text, int architecture);
// The PTX in an image of the emulator for this architecture. Null for real cubins, images for other architectures and
// damaged ones; `problem` is set to the reason, and `is_damaged` if it is no machine code at all. Precondition:
// is_elf(image).
const char* text_of_image(const void* image, int architecture, std::string& problem, bool& is_damaged);

}  // namespace weft::emulator
