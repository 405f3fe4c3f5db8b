#include "program/host/host.h"

#include <cstdio>

namespace weft::program {

void print_to_stdout(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

Host& host() {
    static Host host;
    return host;
}

}  // namespace weft::program
