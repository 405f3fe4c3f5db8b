// The bytes of a Binary:
//
//   "WEFTBINF"   8 bytes: the magic, with the version of the layout below
//   checksum     u64 over all that follows
//   key          32 bytes
//   target       u8 kind, three texts
//   code         u64 length, bytes
//   machine code as code
//   natives      u32 count, each as code
//   kernels      u32 count, each field in the order of KernelEntry
#include "binary/binary.h"
#include "binary/bytes.h"

namespace weft {

namespace {

constexpr std::string_view kBinaryMagic = "WEFTBINF";

class BinaryWriter : public Writer<BinaryWriter> {
public:
    using Writer::write;
    void write(const Remark& remark) {
        write(remark.operation);
        write(remark.text);
    }
    void write(const std::vector<std::byte>& blob) { write_blob(blob); }
    void write(const Target& target) {
        write(static_cast<std::uint8_t>(target.kind));
        write(target.triple);
        write(target.processor);
        write(target.features);
    }
    void write(const ParameterEffects& effects) {
        const auto [reads, writes, writes_itself, writes_within, names_objects, keeps] = effects;
        for (const bool flag : {reads, writes, writes_itself, writes_within, names_objects, keeps}) write(flag);
    }
    void write(const CpuEntry& entry) {
        write(entry.lanes);
        write(entry.boundary);
        write(entry.cost);
        write(entry.has_atomics);
        write(entry.finds_objects);
        write(entry.ordered);
        write(entry.has_long_loops);
        write(entry.can_fuse);
        write(entry.own_arrays);
        write(entry.cost_exclusive);
    }
    void write(const CudaSharedCopy& copy) {
        write(copy.data);
        write(copy.shape);
        write(copy.strides);
        write(copy.ndim);
        write(copy.element_bytes);
    }
    void write(const CudaEntry& entry) {
        write(entry.argument_bytes);
        write(entry.arguments_in_memory);
        write(entry.ordered);
        write(entry.reports);
        write(entry.prints);
        write(entry.whole_blocks);
        write(entry.asks_blocks);
        write(entry.logs);
        write(entry.most_threads);
        write(entry.together);
        write(entry.finds_objects);
        write(entry.formats);
        write(entry.combines);
        write(entry.shared_copies);
    }
    void write(const KernelEntry& kernel) {
        write(kernel.name);
        write(kernel.symbol);
        write(kernel.tid_rank);
        write(kernel.remarks);
        write(kernel.sites);
        write(kernel.uncontended_parameters);
        write(kernel.effects);
        // Its alternative goes by the target's kind.
        std::visit([&](const auto& entry) { write(entry); }, kernel.code);
    }
};

class BinaryReader : public Reader<BinaryReader> {
public:
    using Reader::Reader, Reader::read;
    void read(Remark& remark) {
        read(remark.operation);
        read(remark.text);
    }
    void read(std::vector<std::byte>& blob) { read_blob(blob); }
    void read(Target& target) {
        std::uint8_t kind = 0;
        read(kind);
        target.kind = static_cast<Target::Kind>(kind);
        if (target.kind > Target::Kind::cuda) fail("there is no target of kind " + std::to_string(kind));
        kind_ = target.kind;
        read(target.triple);
        read(target.processor);
        read(target.features);
    }
    void read(ParameterEffects& effects) {
        auto& [reads, writes, writes_itself, writes_within, names_objects, keeps] = effects;
        for (bool* flag : {&reads, &writes, &writes_itself, &writes_within, &names_objects, &keeps}) read(*flag);
    }
    void read(CpuEntry& entry) {
        read(entry.lanes);
        read(entry.boundary);
        read(entry.cost);
        read(entry.has_atomics);
        read(entry.finds_objects);
        read(entry.ordered);
        read(entry.has_long_loops);
        read(entry.can_fuse);
        read(entry.own_arrays);
        read(entry.cost_exclusive);
    }
    void read(CudaSharedCopy& copy) {
        read(copy.data);
        read(copy.shape);
        read(copy.strides);
        read(copy.ndim);
        read(copy.element_bytes);
    }
    void read(CudaEntry& entry) {
        read(entry.argument_bytes);
        read(entry.arguments_in_memory);
        read(entry.ordered);
        read(entry.reports);
        read(entry.prints);
        read(entry.whole_blocks);
        read(entry.asks_blocks);
        read(entry.logs);
        read(entry.most_threads);
        read(entry.together);
        read(entry.finds_objects);
        read(entry.formats);
        read(entry.combines);
        read(entry.shared_copies);
    }
    void read(KernelEntry& kernel) {
        read(kernel.name);
        read(kernel.symbol);
        read(kernel.tid_rank);
        read(kernel.remarks);
        read(kernel.sites);
        read(kernel.uncontended_parameters);
        read(kernel.effects);
        if (kind_ == Target::Kind::cuda) kernel.code = CudaEntry();
        std::visit([&](auto& entry) { read(entry); }, kernel.code);
    }

private:
    Target::Kind kind_ = Target::Kind::cpu;
};

}  // namespace

std::vector<std::byte> serialize(const Binary& binary) {
    BinaryWriter writer;
    writer.write_bytes(binary.key.bytes.data(), binary.key.bytes.size());
    writer.write(binary.target);
    writer.write_blob(binary.code);
    writer.write_blob(binary.machine_code);
    writer.write(binary.natives);
    writer.write(binary.kernels);
    return BinaryWriter::file(kBinaryMagic, writer);
}

Binary deserialize(const std::vector<std::byte>& bytes) {
    BinaryReader reader(bytes, kBinaryMagic, "a Binary");
    Binary binary;
    reader.read_bytes(binary.key.bytes.data(), binary.key.bytes.size());
    reader.read(binary.target);
    reader.read_blob(binary.code);
    reader.read_blob(binary.machine_code);
    reader.read(binary.natives);
    reader.read(binary.kernels);
    reader.expect_end();
    return binary;
}

}  // namespace weft
