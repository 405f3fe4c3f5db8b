from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", ["kernel", "launch"])
def test_pictures_of_the_architecture_are_drawn_by_the_script(tool, name):
    text = (ROOT / f"docs/pictures/{name}.svg").read_text()
    assert text == tool("draw_ways").svg(getattr(tool("draw_ways"), name.upper()))
    ElementTree.fromstring(text)


def test_every_arrow_joins_two_boxes_and_ends_at_their_sides(tool):
    draw = tool("draw_ways")
    for picture in (draw.KERNEL, draw.LAUNCH):
        for source, target, _ in picture["arrows"]:
            for name, (x, y) in zip(
                (source, target), draw.ends(*(picture["boxes"][n] for n in (source, target))), strict=True
            ):
                left, top = draw.corner(picture["boxes"][name])
                assert x in (left, left + draw.BOX[0]) or y in (top, top + draw.BOX[1])
                assert left <= x <= left + draw.BOX[0]
                assert top <= y <= top + draw.BOX[1]
