"""API-1.19, section 11: devices on a machine without CUDA, enums."""

import warp as wp
from probing import differs, still_open


@still_open("section 11")
def members_of_the_cpu():
    device = wp.get_device("cpu")
    names = (
        "alias ordinal is_cpu is_cuda arch sm_count is_uva is_mempool_supported is_mempool_enabled is_ipc_supported "
    )
    names += "is_primary is_capturing has_stream uuid pci_bus_id context"
    return {name: getattr(device, name, "absent") for name in names.split()}


@still_open("section 11")
def memory_of_the_cpu():
    device = wp.get_device("cpu")
    return device.total_memory > 0, device.free_memory > 0


@still_open("section 11")
def text_of_a_device():
    device = wp.get_device("cpu")
    return repr(device), str(device)


@still_open("section 11")
def stream_of_the_cpu():
    return wp.get_device("cpu").stream


@still_open("section 11")
def cuda_questions():
    return wp.get_cuda_driver_version(), wp.is_cuda_available(), wp.get_cuda_device_count(), wp.get_cuda_devices()


@still_open("section 11")
def pools_of_the_cpu():
    return wp.is_mempool_enabled("cpu"), wp.is_mempool_supported("cpu"), wp.is_mempool_access_supported("cpu", "cpu")


@still_open("section 11")
def release_threshold_of_the_cpu():
    return wp.get_mempool_release_threshold("cpu")


@still_open("section 11")
def peer_access():
    return wp.is_peer_access_supported("cpu", "cpu"), wp.is_peer_access_enabled("cpu", "cpu")


@still_open("section 11")
def suggested_block_size():
    @wp.kernel(module="unique")
    def kernel(n: int):
        pass

    return wp.get_suggested_block_size(kernel, "cpu")


@still_open("section 11")
def streams_and_events():
    answers = []
    for make in (lambda: wp.Stream("cpu"), lambda: wp.Event("cpu"), lambda: wp.get_stream("cpu")):
        try:
            answers.append(make())
        except RuntimeError:
            answers.append("refused")
    return answers


@still_open("section 11")
def contexts_without_effect():
    with wp.ScopedStream(None):
        return "entered"


@differs("1")
def device_as_a_key():
    return {wp.get_device("cpu"): 1}["cpu"]


@still_open("section 11")
def members_of_enums():
    enums = (wp.CaptureMode, wp.MemoryKind, wp.TextureAddressMode, wp.TextureFilterMode)
    return [[member.name for member in enum] for enum in enums]


@still_open("section 11")
def array_that_a_device_reaches():
    return wp.can_access("cpu", wp.zeros(1))


def equal_to_its_name():
    return wp.get_device("cpu") == "cpu", wp.get_device("cpu") != "cuda:0"
