"""wp.ScopedMemoryTracker, wp.print_memory_report and wp.config.track_memory: the memory of arrays."""

import gc
import io
import re

import numpy as np
import pytest
import warp as wp


def device():
    return wp.get_device().alias


def test_a_report_counts_allocations_and_names_what_is_left():
    said = []
    with wp.ScopedMemoryTracker("setup", report_func=said.append) as tracker:
        kept = wp.zeros((10, 10), dtype=wp.vec3)
        gone = wp.empty(1000, dtype=float)
        del gone
        small = wp.zeros(25, dtype=wp.int32)
    (text,) = said
    lines = text.splitlines()
    assert lines[0] == "Memory of arrays (setup)"
    assert lines[1] == f"  {device()}: 3 allocations of 5.18 KB, at most 5.08 KB at a time"
    assert lines[2] == "    there now: 2 of 1.27 KB"
    place = r"test_memory_tracker.py:\d+ : test_a_report_counts_allocations_and_names_what_is_left\(\)"
    assert re.fullmatch(rf"      1.17 KB : array\[vec3f?, \(10, 10\)\] : {place}", lines[3])
    assert re.fullmatch(rf"      100 B : array\[int32, \(25,\)\] : {place}", lines[4])
    assert len(lines) == 5
    wp.zeros(10_000)
    assert tracker.report() == text, "what comes behind the block is none of its"
    assert kept.size + small.size == 125


def test_trackers_nest_and_forget():
    with wp.ScopedMemoryTracker("outer", print=False) as outer:
        first = wp.zeros(100, dtype=float)
        with wp.ScopedMemoryTracker("inner", print=False) as inner:
            second = wp.zeros(200, dtype=float)
            out = io.StringIO()
            wp.print_memory_report(out, max_items=1)
            del first
        assert out.getvalue() == inner.report() + "\n"
        assert "1 allocations of 800 B, at most 800 B" in inner.report()
        assert "2 allocations of 1.17 KB, at most 1.17 KB" in outer.report()
        assert "there now: 1 of 800 B" in outer.report()
        outer.clear()
        assert outer.report().splitlines()[1:] == ["  nothing was allocated"]
        third = wp.zeros(3, dtype=float)
        assert "1 allocations of 12 B" in outer.report()
    assert len(second) + len(third) == 203


def test_the_option_tracks_the_program(monkeypatch, capsys):
    with pytest.raises(RuntimeError, match="no memory is tracked. help: wp.config.track_memory = True"):
        wp.print_memory_report()
    before = wp.zeros(77, dtype=float)
    monkeypatch.setattr(wp.config, "track_memory", True)
    arrays = [wp.zeros(n, dtype=wp.uint8) for n in (5, 3000, 20)]
    wp.print_memory_report()
    by_size = capsys.readouterr().out
    assert "3 allocations of 2.95 KB" in by_size
    assert [int(n) for n in re.findall(r"\((\d+),\)", by_size)] == [3000, 20, 5]
    wp.print_memory_report(sort="time", max_items=2)
    by_time = capsys.readouterr().out
    assert [int(n) for n in re.findall(r"\((\d+),\)", by_time)] == [5, 3000]
    assert by_time.splitlines()[-1] == "      and 1 more"
    with pytest.raises(ValueError, match="sort is 'name', expected 'size' or 'time'"):
        wp.print_memory_report(sort="name")
    monkeypatch.undo()
    with pytest.raises(RuntimeError, match="no memory is tracked"):
        wp.print_memory_report()
    with pytest.raises(TypeError, match="expected True or False"):
        wp.config.track_memory = "yes"
    assert len(before) + len(arrays) == 80


def test_nothing_is_tracked_where_it_is_not_active(capsys):
    with wp.ScopedMemoryTracker(active=False) as tracker:
        wp.zeros(10)
    assert capsys.readouterr().out == ""
    with pytest.raises(RuntimeError, match="has tracked nothing"):
        tracker.report()
    with wp.ScopedMemoryTracker("shown"):
        pass
    assert capsys.readouterr().out == "Memory of arrays (shown)\n  nothing was allocated\n"


def test_memory_that_a_graph_keeps_is_there_until_the_graph_goes():
    @wp.kernel
    def kernel(a: wp.array[float]):
        a[wp.tid()] += 1.0

    with wp.ScopedMemoryTracker(print=False) as tracker:
        with wp.ScopedCapture() as capture:
            a = wp.zeros(256, dtype=float)
            wp.launch(kernel, dim=256, inputs=[a])
        wp.capture_launch(capture.graph)
        assert np.all(a.numpy() == 1.0)
        del a
        assert "array[float32, (256,)]" in tracker.report()
        del capture
        gc.collect()
        assert "array[float32, (256,)]" not in tracker.report()
