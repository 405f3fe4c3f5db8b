#include "jit/hash.h"

#include "llvm/Support/BLAKE3.h"

namespace weft::jit {

Digest hash_bytes(std::string_view bytes) {
    llvm::BLAKE3 hasher;
    hasher.update(llvm::StringRef(bytes.data(), bytes.size()));
    return Digest{hasher.final()};
}

}  // namespace weft::jit
