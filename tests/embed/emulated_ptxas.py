"""A compiler of PTX as `ptxas` is called, which makes machine code of the emulated device's own.

Its images are what the emulated driver takes in place of machine code of a GPU, so that a file which has them shows
that they are launched: `emulated_ptxas.py DRIVER --gpu-name=sm_90 [--generate-line-info] -o IMAGE TEXT`.
"""

import ctypes
import os
import sys


def main():
    library, gpu, *options, _, result, source = sys.argv[1:]
    assert gpu.startswith("--gpu-name=sm_") and set(options) <= {"--generate-line-info"}, sys.argv
    os.environ["WEFT_EMULATED_ARCH"] = gpu.removeprefix("--gpu-name=sm_")
    driver = ctypes.CDLL(library)
    with open(source, "rb") as file:
        text = ctypes.create_string_buffer(file.read())
    context, link, image, size = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t()
    ptx = 1
    for result_of_call in (
        driver.cuInit(0),
        driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0),
        driver.cuCtxPushCurrent_v2(context),
        driver.cuLinkCreate_v2(0, None, None, ctypes.byref(link)),
        driver.cuLinkAddData_v2(link, ptx, text, ctypes.c_size_t(len(text)), b"kernels", 0, None, None),
        driver.cuLinkComplete(link, ctypes.byref(image), ctypes.byref(size)),
    ):
        assert result_of_call == 0, result_of_call
    with open(result, "wb") as file:
        file.write(ctypes.string_at(image, size.value))


if __name__ == "__main__":
    main()
