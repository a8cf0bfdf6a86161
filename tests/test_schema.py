"""Declared elements: every attribute in every format, bounds, tables of the documentation."""

import io

import pytest
from documentation_pages import PAGES

import robomodel as rm
from robomodel import description
from robomodel.parsers import read
from robomodel.vocabulary.schema import DECLARATIONS, FRICTION_LAW, Attribute

WRITERS = {"urdf": rm.write_urdf, "sdf": rm.write_sdf, "mjcf": rm.write_mjcf}
NEEDS = {  # numbers without which another one says nothing
    ("dynamics", "spring_reference"): {"spring_stiffness": 2.0},
    ("dynamics", "spring_deadband"): {"spring_stiffness": 2.0},
    ("motor", "stall_torque"): {"no_load_speed": 3.0},
    ("motor", "no_load_speed"): {"stall_torque": 3.0},
    ("motor", "voltage"): {"torque_constant": 0.1, "resistance": 2.0},
    ("motor", "current"): {"torque_constant": 0.1},
    ("spring", "length"): {"stiffness": 5.0},
    ("spring", "reference"): {"stiffness": 5.0},
    ("limit", "lower"): {"upper": 1.0},
    ("limit", "upper"): {"lower": -1.0},
}
LOST = {  # MuJoCo has no speed limits and no one-sided range of force of a joint
    ("limit", "velocity_lower", "mjcf"), ("limit", "effort_lower", "mjcf"),
    # MuJoCo's contacts have no restitution, SDF no rods, both no tolerance of loops
    ("surface", "restitution", "mjcf"), ("dynamics", "spring_deadband", "mjcf"),
    ("loop", "length", "sdf"),
    *(
        ("dynamics", each.name, form) for each in FRICTION_LAW for form in ("sdf", "mjcf")
    ),
    ("loop", "tolerance", "sdf"), ("loop", "tolerance", "mjcf"),
}  # fmt: skip
TEXT = """<robot name="r">
<link name="a"/>
<link name="b">{mass}<collision>{surface}<geometry><sphere radius="1"/></geometry></collision>
</link>
<link name="c">{mass}</link>
<joint name="j" type="revolute"><parent link="a"/><child link="b"/>{joint}</joint>
<joint name="k" type="revolute"><parent link="b"/><child link="c"/><origin xyz="0 0 1"/>
<axis xyz="0 1 0"/>{limit}</joint>{tie}</robot>"""
MASS = """<inertial><origin xyz="0 0.1 0"/><mass value="1"/>
<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>"""
LIMIT = '<limit lower="-2" upper="2" effort="9" velocity="9"/>'
APART = (
    '<predecessor link="a"><origin xyz="0 0 0.2"/></predecessor>'
    '<successor link="c"><origin xyz="0.3 0.2 0.1"/></successor>'
)
ENDS = '<predecessor link="a"/><successor link="c"/>'
TERMS = '<joint name="j"/><joint name="k" ratio="2"/>'


def element(tag: str, numbers: dict[str, float]) -> str:
    """The text of a robot that has an element with these numbers."""
    written = " ".join(f'{name}="{value!r}"' for name, value in numbers.items())
    parts = {"joint": "", "limit": LIMIT, "surface": "", "tie": ""}
    if tag == "spring":
        inner = TERMS if numbers.keys() & {"reference", "friction"} else ENDS
        parts["tie"] = f'<spring name="s" {written}>{inner}</spring>'
    elif tag == "coupling":
        parts["tie"] = f'<coupling name="s" {written}>{TERMS}</coupling>'
    elif tag == "loop":
        parts["tie"] = f'<loop name="s" type="rod" {written}>{APART}</loop>'
    elif tag == "surface":
        parts["surface"] = f"<surface {written}/>"
    elif tag == "mass":
        return element("limit", {"upper": 1.0, "lower": -1.0}).replace(
            '<mass value="1"', f"<mass {written}"
        )
    elif tag == "mimic":
        parts["joint"] = f'<mimic joint="k" {written}/>'
    else:
        parts["joint"] = f"<{tag} {written}/>"
    if tag != "limit":
        parts["joint"] += LIMIT
    return TEXT.format(mass=MASS, **parts)


def record(found: description.Description, tag: str) -> object:
    """What a description has of the element."""
    joint = next(each for each in found.joints if each.name == "j")
    shapes = [shape for link in found.links for shape in link.shapes if shape.role == "collision"]
    return {
        "dynamics": joint,
        "limit": joint.limits,
        "motor": joint.motor,
        "mimic": joint.mimic,
        "initial": joint,
        "armature": joint,
        "mass": found.links[-1].inertial,
        "spring": found.springs[0] if found.springs else None,
        "loop": found.loops[0] if found.loops else None,
        "surface": shapes[0],
    }[tag]


CASES = [
    (tag, each, form)
    for tag, declared in DECLARATIONS.items()
    # losses need a rotor: see test_losses.py;
    # a rotor becomes a link, a joint and a coupling: see test_rotors.py, and test_mjcf_writer.py
    # for screws and couplings, which other formats have in other words
    if tag not in ("rotor", "pitch", "ratio", "offset", "coupling")
    for each in declared.attributes
    for form in WRITERS
    if (tag, each.name, form) not in LOST
]


def case_name(value: object) -> str:
    return value.name if isinstance(value, Attribute) else str(value)


@pytest.mark.parametrize(("tag", "each", "form"), CASES, ids=case_name)
def test_every_number_is_read_and_written(tag: str, each: Attribute, form: str) -> None:
    value = {"tolerance": 0.075}.get(each.name, -0.75 if "lower" in each.name else 0.75)
    text = element(tag, NEEDS.get((tag, each.name), {}) | {each.name: value})
    assert getattr(record(read(text), tag), each.field) == value
    stream = io.StringIO()
    WRITERS[form](rm.load(text), stream)
    again = getattr(record(read(stream.getvalue()), tag), each.field)
    assert again == pytest.approx(value, rel=1e-12)


BEYOND = {
    "≥ 0": [-1.0], "> 0": [0.0, -1.0], "not 0": [0.0],
    "from 0 to 1": [-0.1, 1.1], "from 0 to 0.1": [-0.1, 0.2],
    "> 0, ≤ 1": [0.0, 1.1], "≤ 1": [1.1], "≤ 0": [0.1],
}  # fmt: skip
BOUNDS = [
    (tag, each, value)
    for tag, declared in DECLARATIONS.items()
    for each in declared.attributes
    for value in BEYOND.get(each.bound, ())
]


@pytest.mark.parametrize(("tag", "each", "value"), BOUNDS, ids=case_name)
def test_numbers_beyond_their_bounds_are_refused(tag: str, each: Attribute, value: float) -> None:
    numbers = {"inertia": 1.0} if tag == "rotor" else {}
    text = element(tag, numbers | NEEDS.get((tag, each.name), {}) | {each.name: value})
    with pytest.raises(rm.DescriptionError) as caught:
        read(text, strict=True)
    line = {"mass": 3, "surface": 4, "spring": 10, "loop": 10, "coupling": 10}.get(tag, 8)
    owners = {"mass": "link 'b'", "surface": "link 'b'", "spring": "spring 's'", "loop": "loop 's'"}
    owners["coupling"] = "coupling 's'"
    owner = owners.get(tag, "joint 'j'")
    assert (caught.value.line, caught.value.element) == (line, owner)
    assert f"{each.name} of <{tag}> is {value:g}" in caught.value.message


def test_the_documentation_has_the_table_of_every_declaration() -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    for tag, declared in DECLARATIONS.items():
        assert f"\n{declared.rows()}\n" in pages, f"rows of <{tag}>:\n{declared.rows()}"
