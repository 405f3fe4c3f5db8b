"""API-1.19, section 11: devices on a machine without CUDA, enums."""

import warp as wp
from probing import differs


@differs(
    "{'alias': 'cpu', 'ordinal': -1, 'is_cpu': True, 'is_cuda': False, 'arch': 0, 'sm_count': 0, "
    "'is_uva': False, 'is_mempool_supported': False, 'is_mempool_enabled': False, "
    "'is_ipc_supported': False, 'is_primary': False, 'is_capturing': False, 'has_stream': True, "
    "'uuid': None, 'pci_bus_id': None, 'context': None}"
)
def members_of_the_cpu():
    device = wp.get_device("cpu")
    names = (
        "alias ordinal is_cpu is_cuda arch sm_count is_uva is_mempool_supported is_mempool_enabled is_ipc_supported "
    )
    names += "is_primary is_capturing has_stream uuid pci_bus_id context"
    return {name: getattr(device, name, "absent") for name in names.split()}


def memory_of_the_cpu():
    device = wp.get_device("cpu")
    return device.total_memory >= device.free_memory >= 0, device.max_shared_memory_per_block


def allocator_of_the_cpu():
    allocator = wp.get_device("cpu").get_allocator()
    address = allocator.allocate(256)
    wp.array(ptr=address, shape=64, dtype=float).fill_(3.0)
    first = wp.array(ptr=address, shape=64, dtype=float).numpy()[63]
    allocator.deallocate(address, 256)
    return first, allocator.memory_kind.name


def reach_of_the_cpu():
    device = wp.get_device("cpu")
    return device.can_access(device), device.can_access("cpu")


def toolkit_without_cuda():
    return type(wp.get_cuda_supported_archs()), wp.is_conditional_graph_supported()


def pool_of_the_cpu_enabled():
    wp.set_mempool_enabled("cpu", True)


def pool_of_the_cpu_disabled():
    return wp.set_mempool_enabled("cpu", False)


def use_of_the_pool_of_the_cpu():
    return wp.get_mempool_used_mem_current("cpu")


def most_use_of_the_pool_of_the_cpu():
    return wp.get_mempool_used_mem_high("cpu")


def peer_access_of_the_cpu_enabled():
    wp.set_peer_access_enabled("cpu", "cpu", True)


def contexts_of_pools():
    with wp.ScopedMempool("cpu", False), wp.ScopedMempoolAccess("cpu", "cpu", False):
        with wp.ScopedPeerAccess("cpu", "cpu", False):
            return "entered"


def context_of_a_pool_that_is_not_there():
    with wp.ScopedMempool("cpu", True):
        pass


def waiting_for_the_stream_of_the_cpu():
    return wp.synchronize_stream(), wp.synchronize_stream("cpu")


@differs("None")
def event_of_the_cpu():
    wp.record_event()


def waiting_for_an_event_of_the_cpu():
    wp.wait_event(None)


def branch_outside_of_a_capture():
    taken = []
    for value in (0, 1):
        condition = wp.array([value], dtype=int)
        wp.capture_if(condition, lambda name: taken.append(name), lambda name: taken.append("no " + name), name="a")
    return taken


def loop_outside_of_a_capture():
    count = wp.array([3], dtype=int)
    rounds = []

    def body():
        rounds.append(1)
        count.assign(count.numpy() - 1)

    wp.capture_while(count, body)
    return len(rounds)


def recorded_work():
    a = wp.zeros(1)
    with wp.ScopedCapture(device="cpu") as capture:
        a.fill_(2.0)
    before = float(a.numpy()[0])
    wp.capture_launch(capture.graph)
    return before, float(a.numpy()[0])


def cuda_device_by_number():
    return wp.get_cuda_device(0)


def mapped_cuda_device():
    return wp.map_cuda_device("cuda:0")


def names_that_are_no_device():
    answers = []
    for name in ("gpu", "CPU", "cpu:0", "cuda:x", ""):
        try:
            answers.append(wp.get_device(name))
        except ValueError:
            answers.append("refused")
    return answers


def number_as_a_device():
    return wp.get_device(3)


def scoped_device():
    with wp.ScopedDevice("cpu") as device:
        return device is wp.get_device("cpu"), str(wp.get_device())


def available_devices():
    return wp.is_device_available("cpu"), wp.is_device_available("cuda:0"), wp.is_cpu_available()


def numbers_of_enums():
    return [[int(m) for m in enum] for enum in (wp.CaptureMode, wp.MemoryKind, wp.TextureResourceFlags)]


def text_of_a_device():
    device = wp.get_device("cpu")
    return repr(device), str(device)


@differs("a Stream")
def stream_of_the_cpu():
    return wp.get_device("cpu").stream


def cuda_questions():
    return wp.get_cuda_driver_version(), wp.is_cuda_available(), wp.get_cuda_device_count(), wp.get_cuda_devices()


def pools_of_the_cpu():
    return wp.is_mempool_enabled("cpu"), wp.is_mempool_supported("cpu"), wp.is_mempool_access_supported("cpu", "cpu")


def release_threshold_of_the_cpu():
    return wp.get_mempool_release_threshold("cpu")


def peer_access():
    return wp.is_peer_access_supported("cpu", "cpu"), wp.is_peer_access_enabled("cpu", "cpu")


def suggested_block_size():
    @wp.kernel(module="unique")
    def kernel(n: int):
        pass

    return wp.get_suggested_block_size(kernel, "cpu")


@differs("list(a Stream, a Event, a Stream)")
def streams_and_events():
    answers = []
    for make in (lambda: wp.Stream("cpu"), lambda: wp.Event("cpu"), lambda: wp.get_stream("cpu")):
        try:
            answers.append(make())
        except RuntimeError:
            answers.append("refused")
    return answers


def contexts_without_effect():
    with wp.ScopedStream(None):
        return "entered"


@differs("1")
def device_as_a_key():
    return {wp.get_device("cpu"): 1}["cpu"]


def members_of_enums():
    enums = (wp.CaptureMode, wp.MemoryKind, wp.TextureAddressMode, wp.TextureFilterMode)
    return [[member.name for member in enum] for enum in enums]


def array_that_a_device_reaches():
    return wp.can_access("cpu", wp.zeros(1))


def equal_to_its_name():
    return wp.get_device("cpu") == "cpu", wp.get_device("cpu") != "cuda:0"
