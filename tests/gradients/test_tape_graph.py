"""Groups on a tape, and the picture of it."""

import re

import pytest
import warp as wp
from tapes import doubles, multiply, square


def arrays(count):
    return [doubles([1.0], requires_grad=True) for _ in range(count)]


def test_groups_lie_in_groups_and_empty_ones_disappear():
    a, b, c = arrays(3)
    tape = wp.Tape()
    with tape:
        tape.record_scope_begin("outer", metadata={"step": 3})
        tape.record_scope_begin("empty")
        tape.record_scope_end()
        tape.record_scope_begin("kept")
        tape.record_scope_end(remove_scope_if_empty=False)
        tape.record_scope_begin("inner")
        wp.launch(multiply, dim=1, inputs=[a, b, c])
        tape.record_scope_end()
        tape.record_scope_end()
    ended = (None, None)
    assert tape.scopes == [
        (0, "outer", {"step": 3}), (0, "kept", {}), (0, *ended), (0, "inner", {}), (1, *ended), (1, *ended)
    ]  # fmt: skip
    with pytest.raises(RuntimeError, match="no group has been begun"):
        tape.record_scope_end()
    tape.reset()
    assert tape.scopes == []


def test_timers_make_groups_while_a_tape_records(capsys):
    a, b, c = arrays(3)
    with wp.Tape() as tape:
        with wp.ScopedTimer("timed"):
            wp.launch(multiply, dim=1, inputs=[a, b, c])
        with wp.ScopedTimer("skipped", skip_tape=True):
            wp.launch(multiply, dim=1, inputs=[a, b, c])
        with wp.ScopedTimer("empty"):
            pass
        with wp.ScopedTimer("off", active=False):
            wp.launch(multiply, dim=1, inputs=[a, b, c])
        with wp.ScopedTimer("reset"):
            copy = list(tape.scopes)
            tape.reset()
    with wp.ScopedTimer("outside"):
        pass
    assert [name for _, name, _ in copy] == ["timed", None, "reset"]
    assert tape.scopes == []


def recorded():
    a, b, c = arrays(3)
    with wp.Tape() as tape:
        tape.record_scope_begin('the "first" step')
        wp.launch(multiply, dim=1, inputs=[a, b, c])
        tape.record_scope_end()
        for _ in range(3):
            wp.launch(square, dim=1, inputs=[c])
    return tape, a, b, c


def test_the_tape_as_a_graph(tmp_path):
    tape, a, b, c = recorded()
    text = tape.visualize(str(tmp_path / "tape.dot"), array_labels={a: "first"})
    assert (tmp_path / "tape.dot").read_text() == text
    assert text.startswith("digraph") and text.count("{") == text.count("}")
    assert 'label="the \\"first\\" step"' in text and "subgraph cluster" in text
    assert 'label="first\\nfloat64 (1,)"' in text and 'label="b\\nfloat64 (1,)"' in text
    assert len(re.findall("shape=box", text)) == 2  # three launches of one kernel on one array are one box
    assert text.count("->") == 4  # a and b to multiply, that to c, and square to c
    assert len(re.findall("shape=box", tape.visualize(simplify_graph=False))) == 4


def test_options_of_the_graph():
    tape, a, b, c = recorded()
    text = tape.visualize(
        hide_readonly_arrays=True, ignore_graph_scopes=True, track_outputs=[c], track_output_names=["result"],
        graph_direction="TB",
    )  # fmt: skip
    assert "rankdir=TB" in text and "cluster" not in text
    assert text.count("style=") == 1 and 'label="result\\n' in text and "fillcolor" in text
    marked = tape.visualize(track_inputs=[a, b], track_input_names=["in", "weight"])
    assert 'label="in\\n' in marked and 'label="weight\\n' in marked
    assert 'label="x\\n' in tape.visualize(choose_longest_node_name=False, array_labels={c: "x"})
    with pytest.raises(ValueError, match="track_input_names has 1 names for 2 arrays"):
        tape.visualize(track_inputs=[a, b], track_input_names=["in"])


def test_arrays_in_structs_have_the_names_of_their_fields():
    @wp.struct
    class State:
        position: wp.array[wp.float64]

    @wp.kernel
    def move(state: State):
        i = wp.tid()
        state.position[i] = wp.float64(2.0) * state.position[i]

    state = State()
    state.position = doubles([1.0], requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(move, dim=1, inputs=[state])
    assert 'label="state.position\\nfloat64 (1,)"' in tape.visualize()
