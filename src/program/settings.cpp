#include "program/settings.h"

namespace weft::program {

Settings& settings() {
    static Settings instance;
    return instance;
}

}  // namespace weft::program
