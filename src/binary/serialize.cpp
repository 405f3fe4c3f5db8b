// The bytes of a Binary:
//
//   "WEFTBIN7"   8 bytes: what this is, and the version of the layout below
//   checksum     u64 over all that follows
//   key          32 bytes
//   target       text
//   code         u64 length, bytes
//   natives      u32 count, each as code
//   kernels      u32 count, each field in the order of KernelEntry
#include "binary/binary.h"
#include "binary/bytes.h"

namespace weft {

namespace {

constexpr std::string_view kMagic = "WEFTBIN7";

class BinaryWriter : public Writer<BinaryWriter> {
public:
    using Writer::write;
    void write(const Remark& remark) {
        write(remark.operation);
        write(remark.text);
    }
    void write(const std::vector<std::byte>& blob) { write_blob(blob); }
    void write(const KernelEntry& kernel) {
        write(kernel.name);
        write(kernel.symbol);
        write(kernel.tid_rank);
        write(kernel.lanes);
        write(kernel.remarks);
        write(kernel.sites);
        write(kernel.own_parameters);
        write(kernel.seam);
        write(kernel.cost);
        write(kernel.meets);
        write(kernel.ordered);
        write(kernel.cost_alone);
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
    void read(KernelEntry& kernel) {
        read(kernel.name);
        read(kernel.symbol);
        read(kernel.tid_rank);
        read(kernel.lanes);
        read(kernel.remarks);
        read(kernel.sites);
        read(kernel.own_parameters);
        read(kernel.seam);
        read(kernel.cost);
        read(kernel.meets);
        read(kernel.ordered);
        read(kernel.cost_alone);
    }
};

}  // namespace

std::vector<std::byte> serialize(const Binary& binary) {
    BinaryWriter writer;
    writer.write_bytes(binary.key.bytes.data(), binary.key.bytes.size());
    writer.write(binary.target);
    writer.write_blob(binary.code);
    writer.write(binary.natives);
    writer.write(binary.kernels);
    return BinaryWriter::file(kMagic, writer);
}

Binary deserialize(const std::vector<std::byte>& bytes) {
    BinaryReader reader(bytes, kMagic, "a Binary");
    Binary binary;
    reader.read_bytes(binary.key.bytes.data(), binary.key.bytes.size());
    reader.read(binary.target);
    reader.read_blob(binary.code);
    reader.read(binary.natives);
    reader.read(binary.kernels);
    reader.expect_end();
    return binary;
}

}  // namespace weft
