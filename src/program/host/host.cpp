#include "program/host/host.h"

#include <cstdio>

#include "runtime/print.h"

namespace weft::program {

void print_to_stdout(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

Host& host() {
    static Host host;
    return host;
}

void flush_prints() {
    if (runtime::has_prints()) host().print(runtime::take_prints());
}

}  // namespace weft::program
