#include "runtime/cpu/code_listeners.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string_view>
#include <vector>

#include "llvm/DebugInfo/DWARF/DWARFContext.h"
#include "llvm/Object/ELFObjectFile.h"
#include "support/error.h"

// Names and layout are defined by GDB.
extern "C" {
struct jit_code_entry {
    jit_code_entry* next_entry;
    jit_code_entry* prev_entry;
    const char* symfile_addr;
    std::uint64_t symfile_size;
};
struct jit_descriptor {
    std::uint32_t version;
    std::uint32_t action_flag;  // 0: none, 1: register, 2: unregister
    jit_code_entry* relevant_entry;
    jit_code_entry* first_entry;
};
[[gnu::visibility("default")]] jit_descriptor __jit_debug_descriptor = {1, 0, nullptr, nullptr};
// GDB has a breakpoint here and then reads the descriptor.
[[gnu::visibility("default"), gnu::noinline, gnu::used]] void __jit_debug_register_code() {
    asm volatile("" ::: "memory");
}
}

namespace weft::runtime {

namespace {

// Guards GDB's list and perf's file.
std::mutex& listeners() {
    static std::mutex& made = *new std::mutex;
    return made;
}

struct CodeFunction {
    std::string name;
    llvm::object::SectionedAddress address;
    std::uint64_t size = 0;
};

// The source line of the instructions from this address on.
struct CodeLine {
    std::uint64_t address = 0;
    std::uint32_t line = 0;
    std::string file;
};

// ---- the object in memory ----

// A copy with the addresses of this process in its section headers, so that symbols and lines get them too.
std::string with_addresses(const LoadedObject& loaded) {
    std::string copy(reinterpret_cast<const char*>(loaded.bytes.data()), loaded.bytes.size());
    using Elf = llvm::object::ELF64LE;
    auto file = llvm::object::ELFFile<Elf>::create(copy);
    if (!file) throw InternalError("an object cannot be read: " + llvm::toString(file.takeError()));
    auto sections = file->sections();
    if (!sections) throw InternalError("an object has no sections: " + llvm::toString(sections.takeError()));
    for (const Elf::Shdr& section : *sections) {
        auto name = file->getSectionName(section);
        if (!name) throw InternalError("a section has no name: " + llvm::toString(name.takeError()));
        const auto found = loaded.sections.find(name->str());
        if (found == loaded.sections.end() || !(section.sh_flags & llvm::ELF::SHF_ALLOC)) continue;
        const std::size_t offset = reinterpret_cast<const char*>(&section) - copy.data();
        reinterpret_cast<Elf::Shdr*>(copy.data() + offset)->sh_addr = found->second;
    }
    return copy;
}

std::unique_ptr<llvm::object::ObjectFile> open_object(const std::string& bytes) {
    auto file = llvm::object::ObjectFile::createELFObjectFile(llvm::MemoryBufferRef(bytes, "kernel"));
    if (!file) throw InternalError("an object cannot be read: " + llvm::toString(file.takeError()));
    return std::move(*file);
}

bool has_lines(const llvm::object::ObjectFile& object) {
    for (const llvm::object::SectionRef& section : object.sections()) {
        auto name = section.getName();
        if (!name) throw InternalError("a section has no name: " + llvm::toString(name.takeError()));
        if (*name == ".debug_line") return true;
    }
    return false;
}

std::vector<CodeFunction> functions_of(const llvm::object::ObjectFile& object, const LoadedObject& loaded) {
    std::vector<CodeFunction> found;
    for (const llvm::object::SymbolRef& symbol : object.symbols()) {
        auto type = symbol.getType();
        auto name = symbol.getName();
        auto address = symbol.getAddress();
        auto section = symbol.getSection();
        if (!type || !name || !address || !section) {
            llvm::consumeError(type.takeError());
            llvm::consumeError(name.takeError());
            llvm::consumeError(address.takeError());
            llvm::consumeError(section.takeError());
            throw InternalError("a symbol of an object cannot be read");
        }
        const std::uint64_t size = llvm::object::ELFSymbolRef(symbol).getSize();
        if (*type == llvm::object::SymbolRef::ST_Function && size != 0)
            found.push_back({loaded.name_shown(name->str()), {*address, (*section)->getIndex()}, size});
    }
    return found;
}

std::vector<CodeLine> lines_of(llvm::DWARFContext& lines, const CodeFunction& function) {
    using Specifier = llvm::DILineInfoSpecifier;
    std::vector<CodeLine> found;
    const Specifier specifier(Specifier::FileLineInfoKind::AbsoluteFilePath, Specifier::FunctionNameKind::None);
    for (const auto& [address, line] : lines.getLineInfoForAddressRange(function.address, function.size, specifier))
        if (line.Line != 0) found.push_back({address, line.Line, line.FileName});
    return found;
}

// ---- perf ----

[[noreturn]] void refuse(const std::string& path, const char* use) {
    throw UsageError("config.perf", "cannot " + std::string(use) + " '" + path + "': " + std::strerror(errno));
}

// /tmp/perf-<pid>.map. Other code may append too: Python does with -X perf.
class PerfMap {
public:
    PerfMap() : path_("/tmp/perf-" + std::to_string(getpid()) + ".map"), file_(std::fopen(path_.c_str(), "ae")) {
        if (!file_) refuse(path_, "write");
    }
    ~PerfMap() { std::fclose(file_); }
    PerfMap(const PerfMap&) = delete;

    void add(const CodeFunction& function) {
        std::fprintf(file_, "%lx %lx %s\n", function.address.Address, function.size, function.name.c_str());
        if (std::fflush(file_) != 0) refuse(path_, "write");
    }

private:
    std::string path_;
    std::FILE* file_;
};

std::uint64_t nanoseconds() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);  // the clock of `perf record -k 1`
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(now.tv_nsec);
}

// jit-<pid>.dump in $JITDUMPDIR, else in the current folder.
class JitDump {
public:
    JitDump() {
        const char* const folder = std::getenv("JITDUMPDIR");
        path_ =
            (folder && *folder ? std::string(folder) : std::string(".")) + "/jit-" + std::to_string(getpid()) + ".dump";
        file_ = open(path_.c_str(), O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0644);
        if (file_ < 0) refuse(path_, "write");
        // perf learns of the file through this mapping, which must be executable.
        marker_size_ = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
        marker_ = mmap(nullptr, marker_size_, PROT_READ | PROT_EXEC, MAP_PRIVATE, file_, 0);
        if (marker_ == MAP_FAILED) {
            close(file_);
            refuse(path_, "map");
        }
        std::string header;
        put32(header, 0x4A695444);  // "JiTD"
        put32(header, 1);           // version
        put32(header, 40);          // bytes of this header
        put32(header, machine());
        put32(header, 0);
        put32(header, static_cast<std::uint32_t>(getpid()));
        put64(header, nanoseconds());
        put64(header, 0);
        write_all(header);
    }
    ~JitDump() {
        munmap(marker_, marker_size_);
        close(file_);
    }
    JitDump(const JitDump&) = delete;

    void add(const CodeFunction& function, const std::vector<CodeLine>& lines) {
        if (!lines.empty()) write_lines(function, lines);  // must precede its function
        std::string body;
        put32(body, static_cast<std::uint32_t>(getpid()));
        put32(body, static_cast<std::uint32_t>(syscall(SYS_gettid)));
        put64(body, function.address.Address);
        put64(body, function.address.Address);
        put64(body, function.size);
        put64(body, next_++);
        body.append(function.name.c_str(), function.name.size() + 1);
        body.append(reinterpret_cast<const char*>(function.address.Address), function.size);
        write_record(0, body);
    }

private:
    static void put32(std::string& text, std::uint32_t value) { text.append(reinterpret_cast<char*>(&value), 4); }
    static void put64(std::string& text, std::uint64_t value) { text.append(reinterpret_cast<char*>(&value), 8); }

    static std::uint32_t machine() {
#if defined(__x86_64__)
        return llvm::ELF::EM_X86_64;
#else
        return llvm::ELF::EM_AARCH64;
#endif
    }

    void write_lines(const CodeFunction& function, const std::vector<CodeLine>& lines) {
        std::string body;
        put64(body, function.address.Address);
        put64(body, lines.size());
        for (const CodeLine& line : lines) {
            put64(body, line.address);
            put32(body, line.line);
            put32(body, 0);  // discriminator
            body.append(line.file.c_str(), line.file.size() + 1);
        }
        write_record(2, body);
    }

    void write_record(std::uint32_t kind, const std::string& body) {
        std::string record;
        put32(record, kind);
        put32(record, static_cast<std::uint32_t>(16 + body.size()));
        put64(record, nanoseconds());
        write_all(record + body);
    }

    void write_all(std::string_view bytes) {
        while (!bytes.empty()) {
            const ssize_t written = write(file_, bytes.data(), bytes.size());
            if (written < 0 && errno != EINTR) refuse(path_, "write");
            if (written > 0) bytes.remove_prefix(static_cast<std::size_t>(written));
        }
    }

    std::string path_;
    int file_ = -1;
    void* marker_ = nullptr;
    std::size_t marker_size_ = 0;
    std::uint64_t next_ = 0;
};

std::atomic<PerfFormat> chosen{PerfFormat::none};

// This process's file of a format. A child of fork() opens its own.
template <typename File>
File& perf_file() {
    static std::unique_ptr<File>& file = *new std::unique_ptr<File>;
    static pid_t owner = 0;
    if (!file || owner != getpid()) {
        file = std::make_unique<File>();
        owner = getpid();
    }
    return *file;
}

void tell_perf(const llvm::object::ObjectFile& object, const LoadedObject& loaded) {
    const std::vector<CodeFunction> functions = functions_of(object, loaded);
    if (chosen == PerfFormat::map) {
        for (const CodeFunction& function : functions) perf_file<PerfMap>().add(function);
        return;
    }
    const auto lines = has_lines(object) ? llvm::DWARFContext::create(object) : nullptr;
    for (const CodeFunction& function : functions)
        perf_file<JitDump>().add(function, lines ? lines_of(*lines, function) : std::vector<CodeLine>());
}

}  // namespace

void set_perf_format(PerfFormat format) {
    const std::lock_guard lock(listeners());
    if (format == PerfFormat::map) perf_file<PerfMap>();
    if (format == PerfFormat::jitdump) perf_file<JitDump>();
    chosen = format;
}

PerfFormat perf_format() { return chosen; }

// ---- GDB ----

class GdbEntry {
public:
    explicit GdbEntry(std::string object) : object_(std::move(object)) {
        entry_ = {__jit_debug_descriptor.first_entry, nullptr, object_.data(), object_.size()};
        if (entry_.next_entry) entry_.next_entry->prev_entry = &entry_;
        __jit_debug_descriptor.first_entry = &entry_;
        tell(1);
    }
    ~GdbEntry() {
        const std::lock_guard lock(listeners());
        (entry_.prev_entry ? entry_.prev_entry->next_entry : __jit_debug_descriptor.first_entry) = entry_.next_entry;
        if (entry_.next_entry) entry_.next_entry->prev_entry = entry_.prev_entry;
        tell(2);
    }
    GdbEntry(const GdbEntry&) = delete;

private:
    void tell(std::uint32_t action) {
        __jit_debug_descriptor.relevant_entry = &entry_;
        __jit_debug_descriptor.action_flag = action;
        __jit_debug_register_code();
        __jit_debug_descriptor.action_flag = 0;
    }

    std::string object_;
    jit_code_entry entry_{};
};

std::shared_ptr<GdbEntry> announce(const LoadedObject& loaded) {
    std::string bytes = with_addresses(loaded);
    const std::unique_ptr<llvm::object::ObjectFile> object = open_object(bytes);
    const std::lock_guard lock(listeners());
    if (chosen != PerfFormat::none) tell_perf(*object, loaded);
    return has_lines(*object) ? std::make_shared<GdbEntry>(std::move(bytes)) : nullptr;
}

}  // namespace weft::runtime
