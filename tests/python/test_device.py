"""Devices by name, and the default device."""

import threading

import pytest
import warp as wp


@pytest.mark.seed("S-INI-010")
def test_devices_compare_equal_to_their_names():
    device = wp.get_device("cpu")
    assert device == "cpu" and device != "cuda:0" and device == wp.zeros(1).device
    assert str(device) == "cpu" and hash(device) == hash("cpu") and {device: 1}["cpu"] == 1
    assert isinstance(device, wp.Device) and device.is_cpu and not device.is_cuda
    assert device.alias == "cpu" and device.name
    assert wp.zeros(1, device=device).device == device
    assert wp.get_device(device) is device


@pytest.mark.seed("S-INI-011")
@pytest.mark.seed("S-INI-012")
def test_the_default_device():
    assert wp.get_device() == "cpu"
    wp.set_device("cpu")
    assert wp.get_device(None) == "cpu" and wp.zeros(1).device == wp.get_device()
    assert wp.get_preferred_device() == wp.get_devices()[-1]


@pytest.mark.seed("S-INI-013")
@pytest.mark.parametrize("name", ["cuda", "cuda:0", "cuda:1"])
def test_a_missing_cuda_device_is_named(name):
    for use in (
        wp.get_device,
        wp.set_device,
        lambda device: wp.zeros(3, device=device),
        wp.synchronize_device,
        wp.ScopedDevice,
    ):
        with pytest.raises(RuntimeError, match=f"'{name}'.*CUDA"):
            use(name)
    assert not wp.is_device_available(name)


@pytest.mark.parametrize("wrong", ["gpu", "", "cpu:1", 3, 1.5])
def test_other_names_are_errors(wrong):
    with pytest.raises((ValueError, TypeError)):
        wp.get_device(wrong)


def test_scoped_device():
    with wp.ScopedDevice("cpu") as device:
        assert device == "cpu"
        with wp.ScopedDevice(None) as same:
            assert same == "cpu"
    seen = []
    thread = threading.Thread(target=lambda: seen.append(wp.get_device()))
    thread.start()
    thread.join()
    assert seen == ["cpu"]


def test_counts_and_lists():
    assert wp.is_cpu_available()
    assert wp.get_devices()[0] == "cpu"
    assert wp.get_cuda_device_count() == len(wp.get_cuda_devices())
    assert wp.is_cuda_available() == bool(wp.get_cuda_devices())
    wp.synchronize()
    wp.synchronize_device()
    wp.synchronize_device("cpu")
