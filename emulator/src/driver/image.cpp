#include "driver/image.h"

#include <elf.h>

#include <cstdint>
#include <cstring>

namespace weft::emulator {

namespace {

constexpr int kCudaMachine = 190;      // EM_CUDA, which some versions of elf.h lack
constexpr unsigned char kAbiOf13 = 8;  // from CUDA 13 on, the second byte of the flags has the architecture
constexpr char kMark[] = "weft ptx";   // 8 characters
constexpr char kOwner[] = "weft em";   // in the seven free bytes of the identification
constexpr int kFirstFree = EI_ABIVERSION + 1;

// After the header of the file.
struct Rest {
    char mark[8];
    std::uint64_t size;  // of the text, with its NUL
    std::uint64_t check_of_size, check_of_text;
};

std::uint64_t check(const void* bytes, std::size_t size) {
    std::uint64_t sum = 0xcbf29ce484222325;
    for (std::size_t i = 0; i < size; ++i) sum = (sum ^ static_cast<const unsigned char*>(bytes)[i]) * 0x100000001b3;
    return sum;
}

int architecture_of(const Elf64_Ehdr& header) {
    const unsigned flags = header.e_flags;
    return int(header.e_ident[EI_ABIVERSION] >= kAbiOf13 ? flags >> 8 & 0xff : flags & 0xff);
}

}  // namespace

bool is_elf(const void* bytes) { return std::memcmp(bytes, ELFMAG, SELFMAG) == 0; }

std::vector<char> make_image(const std::string& text, int architecture) {
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_VERSION] = EV_CURRENT;
    header.e_ident[EI_ABIVERSION] = kAbiOf13;
    std::memcpy(header.e_ident + kFirstFree, kOwner, EI_NIDENT - kFirstFree);
    header.e_type = ET_EXEC;
    header.e_machine = kCudaMachine;
    header.e_version = EV_CURRENT;
    header.e_flags = unsigned(architecture) << 8;
    header.e_ehsize = sizeof header;
    Rest rest{};
    std::memcpy(rest.mark, kMark, sizeof rest.mark);
    rest.size = text.size() + 1;
    rest.check_of_size = check(&rest.size, sizeof rest.size);
    rest.check_of_text = check(text.c_str(), rest.size);
    std::vector<char> image(sizeof header + sizeof rest + rest.size);
    std::memcpy(image.data(), &header, sizeof header);
    std::memcpy(image.data() + sizeof header, &rest, sizeof rest);
    std::memcpy(image.data() + sizeof header + sizeof rest, text.c_str(), rest.size);
    return image;
}

const char* text_of_image(const void* image, int architecture, std::string& problem, bool& is_damaged) {
    Elf64_Ehdr header;
    std::memcpy(&header, image, sizeof header);
    is_damaged = header.e_machine != kCudaMachine;
    if (is_damaged) {
        problem = "an ELF file, and none for GPUs";
        return nullptr;
    }
    const std::string found = "machine code for sm_" + std::to_string(architecture_of(header));
    const bool is_ours = std::memcmp(header.e_ident + kFirstFree, kOwner, EI_NIDENT - kFirstFree) == 0;
    if (architecture_of(header) != architecture) {
        problem = found + ", and this device is sm_" + std::to_string(architecture);
        return nullptr;
    }
    if (!is_ours) {
        problem = found + ", and the emulated device executes PTX only";
        return nullptr;
    }
    Rest rest;
    const char* const behind = static_cast<const char*>(image) + sizeof header;
    std::memcpy(&rest, behind, sizeof rest);
    const char* const text = behind + sizeof rest;
    is_damaged = std::memcmp(rest.mark, kMark, sizeof rest.mark) != 0 ||
                 rest.check_of_size != check(&rest.size, sizeof rest.size) || rest.size == 0 ||
                 rest.check_of_text != check(text, rest.size) || text[rest.size - 1] != 0;
    if (!is_damaged) return text;
    problem = found + " of the emulated driver, which is damaged";
    return nullptr;
}

}  // namespace weft::emulator
