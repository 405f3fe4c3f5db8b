// Products of matrices by cuBLAS, if it is found: settings of the process.
#pragma once

#include <string>
#include <vector>

namespace weft::runtime {

// wp.config.use_cublas.
void set_cublas(bool is_used);
// Where the library may be, beside the places that the dynamic linker knows. Read when it is first needed.
void set_cublas_folders(std::vector<std::string> folders);

}  // namespace weft::runtime
