// The bytes of a Bundle: "WEFTAOT5", the checksum, then the fields in their order. A type is its kind and the parts of
// that kind; a Binary has the bytes of its own format.
#include "binary/bundle.h"

#include "binary/bytes.h"
#include "weft/array_view.h"

namespace weft {

namespace {

constexpr std::string_view kBundleMagic = "WEFTAOT5";
// The nesting of structs; more is damage.
constexpr int kDeepestType = 64;

class BundleWriter : public Writer<BundleWriter> {
public:
    using Writer::write;
    void write(Type type) {
        write(static_cast<std::uint8_t>(type.kind()));
        if (type.is_array()) {
            write(static_cast<std::int32_t>(type.ndim()));
            write(type.element());
        } else if (type.is_struct()) {
            write(type.struct_name());
            write(type.struct_key());
            write(static_cast<std::uint32_t>(type.fields().size()));
            for (const Type::Field& field : type.fields()) {
                write(field.name);
                write(field.type);
            }
        } else {
            write(static_cast<std::uint8_t>(type.scalar()));
            write(static_cast<std::int32_t>(type.rows()));
            write(static_cast<std::int32_t>(type.cols()));
        }
    }
    void write(const BundledParameter& parameter) {
        write(parameter.name);
        write(parameter.type);
    }
    void write(const BundledKernel& kernel) {
        write(kernel.name);
        write(kernel.parameters);
        write_blob(serialize(kernel.dense));
        write_blob(serialize(kernel.general));
        write_blob(serialize(kernel.huge));
        write(kernel.narrow);
        write(kernel.adjoints);
        write(kernel.no_adjoint);
        write(kernel.returned);
        write(kernel.recording);
    }
    void write(const BundledAtomicResult& one) {
        write(one.element);
        write(static_cast<std::uint8_t>(one.is_log));
    }
    void write(const BundledDerived::Added& added) {
        write(added.type);
        write(added.kind);
        write(added.of);
    }
    void write(const BundledDerived& derived) {
        write_blob(serialize(derived.code));
        write(derived.added);
        std::vector<std::uint8_t> flags;
        for (const auto& [before, after, within] : derived.reads)
            flags.push_back(static_cast<std::uint8_t>(before | after << 1 | within << 2));
        write(flags);
        write(derived.narrow);
    }
    void write(const BundledNarrow& narrow) {
        write(narrow.parameter);
        write(narrow.axis);
    }
};

class BundleReader : public Reader<BundleReader> {
public:
    using Reader::Reader, Reader::read;
    void read(Type& type) { type = read_type(0); }
    void read(BundledParameter& parameter) {
        read(parameter.name);
        read(parameter.type);
    }
    void read(BundledKernel& kernel) {
        read(kernel.name);
        read(kernel.parameters);
        std::vector<std::byte> blob;
        read_blob(blob);
        kernel.dense = deserialize(blob);
        read_blob(blob);
        kernel.general = deserialize(blob);
        read_blob(blob);
        kernel.huge = deserialize(blob);
        read(kernel.narrow);
        read(kernel.adjoints);
        read(kernel.no_adjoint);
        if (kernel.adjoints.size() != 0 && kernel.adjoints.size() != 3)
            fail("a kernel has " + std::to_string(kernel.adjoints.size()) + " adjoints");
        for (const BundledDerived& adjoint : kernel.adjoints)
            if (adjoint.reads.size() != kernel.parameters.size())
                fail("an adjoint has other parameters than its kernel");
        read(kernel.returned);
        read(kernel.recording);
        if (kernel.recording.size() != (kernel.returned.empty() ? 0 : 3))
            fail("the code that keeps the results of a kernel's atomics is not complete");
    }
    void read(BundledAtomicResult& one) {
        std::uint8_t is_log = 0;
        read(one.element);
        read(is_log);
        one.is_log = is_log != 0;
    }
    void read(BundledDerived::Added& added) {
        read(added.type);
        read(added.kind);
        read(added.of);
    }
    void read(BundledDerived& derived) {
        std::vector<std::byte> blob;
        read_blob(blob);
        derived.code = deserialize(blob);
        read(derived.added);
        std::vector<std::uint8_t> flags;
        read(flags);
        for (const std::uint8_t flag : flags)
            derived.reads.push_back({(flag & 1) != 0, (flag & 2) != 0, (flag & 4) != 0});
        read(derived.narrow);
    }
    void read(BundledNarrow& narrow) {
        read(narrow.parameter);
        read(narrow.axis);
    }

private:
    Type read_type(int depth) {
        if (depth > kDeepestType) fail("types stand in each other without end");
        std::uint8_t kind = 0;
        read(kind);
        switch (static_cast<Kind>(kind)) {
            case Kind::scalar:
            case Kind::vector:
            case Kind::matrix:
            case Kind::quaternion:
            case Kind::transform:
                return read_numeric(static_cast<Kind>(kind));
            case Kind::array: {
                std::int32_t ndim = 0;
                read(ndim);
                if (ndim < 1 || ndim > kMaxDims) fail("an array has " + std::to_string(ndim) + " dimensions");
                return Type::array(read_type(depth + 1), ndim);
            }
            case Kind::structure: {
                std::string name, key;
                std::uint32_t count = 0;
                read(name);
                read(key);
                read(count);
                std::vector<Type::Field> fields;
                for (std::uint32_t i = 0; i < count; ++i) {
                    Type::Field field;
                    read(field.name);
                    field.type = read_type(depth + 1);
                    fields.push_back(std::move(field));
                }
                return Type::structure(std::move(name), std::move(key), std::move(fields));
            }
            default:
                fail("there is no type of kind " + std::to_string(kind));
        }
    }

    Type read_numeric(Kind kind) {
        std::uint8_t number = 0;
        std::int32_t rows = 0, cols = 0;
        read(number);
        read(rows);
        read(cols);
        if (number >= all_scalars().size() || rows < 1 || cols < 1 || rows > kMostComponents ||
            cols > kMostComponents / rows)
            fail("a type has impossible dimensions");
        const auto scalar = static_cast<Scalar>(number);
        switch (kind) {
            case Kind::vector:
                return Type::vector(scalar, rows);
            case Kind::matrix:
                return Type::matrix(scalar, rows, cols);
            case Kind::quaternion:
                return Type::quaternion(scalar);
            case Kind::transform:
                return Type::transform(scalar);
            default:
                return Type::scalar(scalar);
        }
    }
};

}  // namespace

std::vector<std::byte> serialize(const Bundle& bundle) {
    BundleWriter writer;
    writer.write(bundle.name);
    writer.write(bundle.triple);
    writer.write(bundle.processor);
    writer.write(bundle.features);
    writer.write(bundle.kernels);
    return BundleWriter::file(kBundleMagic, writer);
}

Bundle deserialize_bundle(const std::vector<std::byte>& bytes) {
    BundleReader reader(bytes, kBundleMagic, "a file of compiled kernels");
    Bundle bundle;
    reader.read(bundle.name);
    reader.read(bundle.triple);
    reader.read(bundle.processor);
    reader.read(bundle.features);
    reader.read(bundle.kernels);
    reader.expect_end();
    return bundle;
}

}  // namespace weft
