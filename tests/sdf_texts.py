"""SDF files as short texts: links, joints, gearboxes, four-bars; what is refused or warned of."""

import warnings
from importlib.util import find_spec
from pathlib import Path

import pytest

from robomodel.errors import DescriptionError, DescriptionWarning
from robomodel.parsers import read

DATA = Path(__file__).parent / "data" / "sdf"

UNIT = "<inertial><mass>1</mass><inertia><ixx>1</ixx><iyy>1</iyy><izz>1</izz></inertia></inertial>"


def sdf(*parts, version="1.11", model='name="m"'):
    """A file with one model: its parts stand in the lines from 3 on."""
    return "\n".join([f'<sdf version="{version}">', f"<model {model}>", *parts, "</model></sdf>"])


def link(name, pose="", more=UNIT):
    return f'<link name="{name}">{f"<pose>{pose}</pose>" if pose else ""}{more}</link>'


def joint(name, kind, parent, child, axis="0 0 1", more="", pose=""):
    placed = f"<pose>{pose}</pose>" if pose else ""
    about = f"<axis><xyz>{axis}</xyz></axis>" if axis else ""
    return (
        f'<joint name="{name}" type="{kind}"><parent>{parent}</parent><child>{child}</child>'
        f"{placed}{about}{more}</joint>"
    )


def named(things, name):
    (found,) = (each for each in things if each.name == name)
    return found


def refused(text, *words, line, element, **options):
    """Assert that a text (or path) is refused, there, in these words, under strict or not."""
    for strict in (False, True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DescriptionWarning)
            with pytest.raises(DescriptionError) as caught:
                read(text, strict=strict, **options)
        error = caught.value
        for word in words:
            assert word in error.message
        assert (error.line, error.element) == (line, element)
        assert "\n" not in str(error)


def warned(text, *words, line, element):
    """Assert that a text is warned of once, and refused under strict; what it is read as."""
    with pytest.warns(DescriptionWarning) as caught:
        description = read(text)
    assert len(caught) == 1
    message = str(caught[0].message)
    assert message.startswith(f"<text>:{line}: {element}: ")
    for word in words:
        assert word in message
    with pytest.raises(DescriptionError):
        read(text, strict=True)
    return description


WORLD = "\n".join(
    [
        '<sdf version="1.10"><world name="w"><gravity>0 0 -1.62</gravity>',
        f'<model name="table"><static>1</static>{link("top", "0 0 1 0 0 0")}</model>',
        f'<model name="arm"><pose>0 0 0.5 0 0 0</pose>{link("base")}{link("tip", "0 0 1 0 0 0")}',
        joint("hinge", "revolute", "base", "tip", "0 1 0") + "</model>",
        joint("bolt", "fixed", "table::top", "arm::base", ""),
        "</world></sdf>",
    ]
)


def including(uri, more=""):
    return sdf(f"<include><uri>{uri}</uri>{more}</include>", link("own"))


def include(folder, uri, more=""):
    path = folder / "model.sdf"
    path.write_text(including(uri, more))
    return path


CASSIE = (
    Path(next(iter(find_spec("cmeel").submodule_search_locations)) if find_spec("cmeel") else "")
    / ".."
    / "cmeel.prefix"
    / "share/example-robot-data/robots/cassie_description/robots"
)


def gears(ratio=3.0, inner="0 0 1", outer="0 0 1", reference="base", parent="motor"):
    return sdf(
        link("base"),
        link("motor", "0 0 0 0 0 0"),
        link("out", "1 0 0 0 0 0"),
        joint("w", "fixed", "world", "base", ""),
        joint("m", "revolute", "base", "motor", "0 0 1"),
        joint("o", "revolute", "base", "out", "0 0 1"),
        joint(
            "g",
            "gearbox",
            parent,
            "out",
            inner,
            f"<axis2><xyz>{outer}</xyz></axis2><gearbox_ratio>{ratio}</gearbox_ratio>"
            f"<gearbox_reference_body>{reference}</gearbox_reference_body>",
        ),
    )


def four_bar(*order, kinds=("revolute",) * 4, world="base"):
    """Ground 1.1, crank 0.5, upright; coupler to the rocker, upright too: a parallelogram."""
    joints = {
        "crank": joint("crank", kinds[0], world, "c"),
        "elbow": joint("elbow", kinds[1], "c", "k"),
        "rocker": joint("rocker", kinds[2], world, "r"),
        "close": joint("close", kinds[3], "k", "r", pose="0 0.5 0 0 0 0"),
    }
    return sdf(
        *(joints[name] for name in order),
        link("r", "1.1 0 0 0 0 0"),
        link("k", "0 0.5 0 0 0 0"),
        link("c"),
        link("base"),
        joint("ground", "fixed", "world", "base", axis=""),
    )
