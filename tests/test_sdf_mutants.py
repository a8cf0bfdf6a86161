"""Mutated SDF files are read or refused with a line."""

import copy
import random

import pytest
from lxml import etree
from sdf_texts import (
    DATA,
    WORLD,
    four_bar,
    gears,
)

import robomodel as rm
from robomodel.errors import DescriptionError
from robomodel.model import build
from robomodel.parsers import read
from robomodel.parsers.sdf.writer import to_sdf
from robomodel.writing import shown_positions

# ---- mutations -----------------------------------------------------------------------------------

VALUES = (
    "",
    "  ",
    "nan",
    "-inf",
    "1e999",
    "0",
    "-1",
    "true",
    "x",
    "0 0 0",
    "1 2 3 4 5 6",
    "9" * 400,
    "world",
    "__model__",
    "::",
    "a::b",
    "1e300 0 0 0 0 1e300",
    "1,5",
    "٣",
)

KINDS = ("revolute", "prismatic", "screw", "fixed", "ball", "universal", "revolute2", "gearbox")


def sources_of_mutants():
    kinds = ("ball", "universal", "revolute", "prismatic")
    second = "</axis><axis2><xyz>0 1 0</xyz></axis2></joint>"
    shipped = [rm.robots.load(name).description for name in ("four_bar", "belt_leg")]
    return [
        (DATA / "frames" / "old.sdf").read_text(),
        WORLD,
        four_bar("crank", "elbow", "rocker", "close"),
        four_bar("rocker", "crank", "elbow", "close", kinds=kinds).replace(
            "</axis></joint>", second
        ),
        gears(),
        gears(reference="motor", parent="base"),
        *(to_sdf(each, shown_positions(each))[0] for each in shipped),
    ]


def mutate(root, rng):
    """Delete, repeat, move, rename or rewrite something."""
    elements = list(root.iter())
    one, other = rng.choice(elements), rng.choice(elements)
    names = [each.get("name") for each in elements if each.get("name")]
    texts = [each.text for each in elements if (each.text or "").strip()]
    match rng.randrange(8):
        case 0 if one is not root:
            one.getparent().remove(one)
        case 1 if one is not root:
            one.getparent().append(copy.deepcopy(one))
        case 2:
            other.append(copy.deepcopy(one))
        case 3:
            one.text = rng.choice([*VALUES, *names, *texts])
        case 4 if one.attrib:
            one.set(rng.choice(list(one.attrib)), rng.choice([*VALUES, *names, *KINDS]))
        case 5 if one.attrib:
            del one.attrib[rng.choice(list(one.attrib))]
        case 6:
            one.tag = other.tag
        case 7:
            joint = rng.choice([each for each in elements if each.tag == "joint"] or [one])
            joint.set("type", rng.choice(KINDS))


def check_mutants(seed, count):
    """What comes out is a description that can be written, or an error that says where."""
    rng = random.Random(seed)
    parsed = [etree.fromstring(text.encode()) for text in sources_of_mutants()]
    refusals = []
    for _ in range(count):
        root = copy.deepcopy(rng.choice(parsed))
        for _ in range(rng.choice([1, 1, 2, 4, 8])):
            mutate(root, rng)
        text = etree.tostring(root, encoding="unicode")
        try:
            description = read(text)
            build(description)
        except DescriptionError as error:
            refusals.append(error)
            continue
        again, lost = to_sdf(description, shown_positions(description))
        links = {each.name for each in read(again).links}
        assert lost or links >= {each.name for each in description.links}
    assert all(each.line is not None and "\n" not in str(each) for each in refusals)
    return len(refusals)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::robomodel.DescriptionWarning")
def test_mutants_are_read_or_refused():
    assert 40 < check_mutants(0, 150) < 110


@pytest.mark.tables
@pytest.mark.filterwarnings("ignore::robomodel.DescriptionWarning")
def test_more_mutants_are_read_or_refused():
    assert check_mutants(1, 1000)
