"""Copies of a linkage: what is found of one is where the others' analysis starts, and no more."""

from __future__ import annotations

import warnings
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from agreement import close
from linkage_family import instance
from texts import joint, link, loop, robot

import robomodel as rm
from robomodel.mechanism.continuation import Limits
from robomodel.mechanism.copies import images
from robomodel.mobility import exploration
from robomodel.mobility.decision import Decided, decided_as, decision_on
from robomodel.mobility.exploration import ClosedConfigurations, NamelessProblem, explore
from robomodel.model.build import _Builder
from robomodel.reach.displacements import poses
from robomodel.reach.groups import split

MOVED = np.array([0.3, -2.0, 0.4])
MIRROR = np.diag([1.0, -1.0, 1.0])


def numbers(text: str | None) -> np.ndarray:
    """The three numbers of an attribute."""
    return np.array([float(x) for x in (text or "0 0 0").split()])


def written(x: Sequence[float]) -> str:
    """Numbers as an attribute, with all digits."""
    return " ".join(repr(float(each)) for each in x)


def with_copy(
    text: str, *, mirrored: bool = False, noise: float = 0.0, reordered: bool = False
) -> str:
    """A robot's text with a copy of all its links on the base: moved, or mirrored and moved.

    ``noise``: how far the copy's places are off. ``reordered``: its joints stand the other way
    round in the file, and its loops go from their other ends.
    """
    rng = np.random.default_rng(0)
    root = ET.fromstring(text)
    for element in list(root)[:: -1 if reordered else 1]:
        copy = ET.fromstring(ET.tostring(element))
        if copy.get("name") == "base":
            continue
        for each in copy.iter():
            for key in ("name", "link"):
                if each.get(key) not in (None, "base"):
                    each.set(key, each.get(key) + "'")
            if mirrored and each.tag == "axis":
                each.set("xyz", written(MIRROR @ numbers(each.get("xyz"))))
            if each.tag != "origin":
                continue
            xyz, (r, p, y) = numbers(each.get("xyz")), numbers(each.get("rpy"))
            if mirrored:
                xyz, r, y = MIRROR @ xyz, -r, -y
            each.set("xyz", written(xyz + noise * rng.uniform(-1.0, 1.0, 3)))
            each.set("rpy", written((r, p, y)))
        carriers = [copy] if copy.tag == "joint" else copy.findall("predecessor")
        for carrier in carriers:
            parent = carrier.find("parent") if carrier.tag == "joint" else carrier
            if parent is not None and parent.get("link") == "base":
                origin = carrier.find("origin")
                if origin is None:
                    origin = ET.SubElement(carrier, "origin", xyz="0 0 0", rpy="0 0 0")
                origin.set("xyz", written(numbers(origin.get("xyz")) + MOVED))
        if reordered:
            for end in copy.iter():
                end.tag = {"predecessor": "successor", "successor": "predecessor"}.get(
                    end.tag, end.tag
                )
        root.append(copy)
    return ET.tostring(root, encoding="unicode")


def loaded(text: str, **options: object) -> rm.Model:
    """The model, its warnings ignored."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rm.DescriptionWarning)
        return rm.load(text, **options)


def shafts(count: int, *ratios: float) -> rm.Model:
    """So many wheels on each shaft that turn with the first by ratios from these on."""
    parts = list[str]()
    for n, ratio in enumerate(ratios):
        for k in range(count):
            mimic = f'<mimic joint="j{n}_0" multiplier="{ratio + 0.1 * k}"/>' if k else ""
            place = f"{0.3 * n} 0 {0.02 * k}"
            parts += [link(f"l{n}_{k}"), joint(f"j{n}_{k}", "base", f"l{n}_{k}", place, more=mimic)]
    return rm.load(robot(*parts))


def test_wheels_on_one_axis_are_compared_in_few_orders() -> None:
    """Each could take any other's place: there are 12! orders."""
    for ratio, alike in ((1.5, True), (1.7, False)):
        one, other = shafts(12, 1.5, ratio).clusters
        assert bool(list(images(one.geometry, other.geometry))) == alike


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("reordered", [False, True])
@pytest.mark.parametrize("name", ["planar four-bar", "rod between balls", "spherical four-bar"])
def test_copies_are_where_the_isometry_takes_the_original(
    name: str, *, mirrored: bool, reordered: bool
) -> None:
    """Links of one are placed as the other's, moved or mirrored, and the loops close."""
    text, mobility = instance(name, 3, 0.0)
    model = loaded(with_copy(text, mirrored=mirrored, reordered=reordered))
    one, other = model.clusters
    assert [one.nv, other.nv] == [mobility] * 2
    image = next(images(one.geometry, other.geometry))
    same = [one.joints[n] + "'" == other.joints[m] for n, m in enumerate(image.links)]
    assert all(same)
    assert (list(image.links) != sorted(image.links)) == reordered
    q = np.array([model.spanning_positions(model.random_configuration(k)) for k in range(5)],
                 dtype=float)[:, one.spanning_q]  # fmt: skip
    there = image.positions(q)
    assert np.max(other.geometry.gap(there)) < 1e-12
    turn = MIRROR if mirrored else np.eye(3)
    original, copy = (poses(*each)[..., 3] for each in ((one, q), (other, there)))
    close(copy[list(image.links)], original @ turn + MOVED, 1e-12)
    step = np.random.default_rng(1).uniform(-1.0, 1.0, (5, one.geometry.nv))
    moved = image.positions(one.geometry.integrate(q, step))
    close(other.geometry.difference(there, moved), step @ image.ways.T, 1e-12)


def test_what_is_longer_is_no_copy() -> None:
    text, _ = instance("planar four-bar", 3, 0.0)
    model = loaded(with_copy(text, noise=1e-3))
    assert not list(images(*(cluster.geometry for cluster in model.clusters)))


@pytest.mark.parametrize("mirrored", [False, True])
def test_copies_of_a_rounded_linkage_are_decided_by_their_own_numbers(*, mirrored: bool) -> None:
    """Each copy's conditions agree after its own frames have moved, as if it were alone."""
    text, mobility = instance("spherical four-bar", 6, 1e-7)
    with pytest.warns(rm.DescriptionWarning, match="is rounded: frames of") as told:
        model = rm.load(with_copy(text, mirrored=mirrored, noise=2e-8))
    assert len(told) == 2  # of each, with its own loops
    assert [cluster.nv for cluster in model.clusters] == [mobility] * 2
    q = np.array([model.random_configuration(k) for k in range(8)])
    assert np.max(np.abs(model.residual(q))) < 1e-11
    assert np.min(np.ptp(q, axis=0)) > 0.05
    one, other = model.clusters
    assert [name + "'" for name in one.independent] == list(other.independent)


def problem(model: rm.Model, index: int) -> NamelessProblem:
    """A cluster's problem, from the file's numbers."""
    builder = _Builder.of(model.description, False, {})
    bodies = builder.groups[index]
    posed = builder._constrained(bodies).problem(builder.tree_constraints_on[bodies.start])
    return NamelessProblem.of(posed)


def test_rounded_linkages_that_are_drawn_closed_are_searched_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Axes that are off by a millionth are parallel where it is drawn, and nowhere else."""
    turned = joint("pin", "crank", "coupler", "0 0.5 0", rpy="1e-6 0 0")
    closing = loop("closing", "revolute", "coupler", "rocker", "1.1 0 0", "0.1 0.5 0")
    closing = closing.replace('xyz="1.1 0 0"', 'xyz="1.1 0 0" rpy="-1e-6 0 0"')
    text = robot(*map(link, ("crank", "coupler", "rocker")), joint("a", "base", "crank"), turned,
                 joint("b", "base", "rocker", "1 0 0"), closing)  # fmt: skip
    one = problem(loaded(text, mend=False), 0).problem
    assert float(one.geometry.gap(one.start)) < 1e-12
    counted, tries = exploration.close, list[int]()

    def closing_counted(*given: Any, **options: Any) -> Any:
        tries.append(options.get("iterations", 0))
        return counted(*given, **options)

    monkeypatch.setattr(exploration, "close", closing_counted)
    found = exploration.sample(one)
    assert len(found.drawn) == 1
    assert tries.count(30) == 1


def test_analyses_start_from_those_of_copies() -> None:
    """Configurations of one, closed again, and its rank: without another search."""
    model = loaded(with_copy(instance("spherical four-bar", 6, 1e-7)[0], noise=2e-8), mend=False)
    one, other = (problem(model, n) for n in range(2))
    before: dict[NamelessProblem, ClosedConfigurations] = {}
    first, second = explore(one.problem, before), explore(other.problem, before)
    assert first.original is None
    assert [*before.values()] == [first, second]
    assert explore(other.problem, before) is second
    assert second.original is not None
    assert second.original[0] is first
    assert np.max(np.abs(second.drawn - second.original[1].positions(first.drawn))) < 1e-3
    assert second.rank == explore(other.problem).rank
    decision = decision_on(one, mend=True)
    assert decision is not None
    assert decision.rank == 2
    copied = decided_as(Decided(one.problem, decision), other.compiled, mend=True)
    alone = decision_on(other, mend=True)
    assert copied is not None
    assert alone is not None
    assert copied.rank == alone.rank
    assert copied.frames is not None
    assert np.max(np.abs(copied.frames - decision.frames)) > 0.0  # its own


def test_a_rank_that_the_copy_does_not_have_is_not_taken() -> None:
    """A rank that leaves out a condition that counts fails in the copy's trial."""
    model = loaded(with_copy(instance("spherical four-bar", 6, 1e-7)[0], noise=2e-8), mend=False)
    one, other = (problem(model, n) for n in range(2))
    decision = decision_on(one, mend=True)
    assert decision is not None
    wrong = Decided(one.problem, replace(decision, rank=decision.rank - 1))
    assert decided_as(wrong, other.compiled, mend=True) is None


def limited(text: str, names: Sequence[str], ends: tuple[float, float]) -> str:
    """The text with limits of these joints."""
    root = ET.fromstring(text)
    for element in root.findall("joint"):
        if element.get("name") in names:
            element.set("type", "revolute")
            ET.SubElement(element, "limit", lower=str(ends[0]), upper=str(ends[1]))
    return ET.tostring(root, encoding="unicode")


@pytest.mark.parametrize("mirrored", [False, True])
def test_what_copies_reach_is_the_original_set_closed_again(*, mirrored: bool) -> None:
    """Points of the copy's pool are closed, within its limits, and paths of its own lead there."""
    text = with_copy(instance("rod between balls", 3, 0.0)[0], mirrored=mirrored, noise=1e-8)
    model = loaded(limited(text, ["j0", "j0'"], (-0.4, 0.4)))
    (first,), (group,) = (split(model, n).groups for n in range(2))
    assert group.original is not None
    pool = group.pool.q
    assert len(pool) > 0.99 * len(first.pool.q)
    assert np.max(model.clusters[1].geometry.gap(pool)) < 1e-12
    assert np.max(group.along.limits.beyond(pool)) <= 1e-9
    alone = replace(group, original=None)
    assert np.all(alone.contains(pool[::40]))
    place = model.clusters[1].geometry.links[0].q
    close(np.std(pool[:, place]), np.std(alone.pool.q[:, place]), 0.03)


@pytest.mark.slow
@pytest.mark.parametrize("mirrored", [False, True])
def test_what_the_original_misses_is_not_sought_again(
    monkeypatch: pytest.MonkeyPatch, *, mirrored: bool
) -> None:
    """The copy answers as it does alone, from what the original's search has found."""
    text = with_copy(instance("rod between balls", 3, 0.0)[0], mirrored=mirrored, noise=1e-8)
    far = split(loaded(text), 0).groups[0].pool.q
    model = loaded(limited(text, ["j0", "j0'"], (-0.4, 0.4)))
    (first,), (group,) = (split(model, n).groups for n in range(2))
    place = model.clusters[0].geometry.links[0].q
    far = far[np.abs(far[:, place]) > 0.6][:2]
    monkeypatch.setattr(Limits, "farthest", lambda *_: np.inf)  # else such are not sought at all
    assert group.original is not None
    q = group.along.corrected(
        group.along.at(group.original[1].positions(far)), np.zeros((2, group.along.columns))
    )[0]
    assert not first.contains(far[1:]).any()  # leaves nothing behind
    assert not first.leads_to(far[0])
    assert not replace(group, original=None).contains(q[:1]).any()
    searches = []
    monkeypatch.setattr(type(group), "_met", lambda _, q: searches.append(q) or [False] * len(q))
    assert not group.leads_to(q[0])
    assert not searches
    assert not group.leads_to(q[1])
    assert not group.contains(q).any()
    assert [len(each) for each in searches] == [1, 2]
    np.testing.assert_array_equal(searches[0], q[1:])
    assert group.leads_to(group.pool.q[40])
    assert group.contains(group.pool.q[::40]).all()


def test_linkages_with_other_limits_are_walked_by_themselves() -> None:
    text = limited(with_copy(instance("rod between balls", 3, 0.0)[0]), ["j0"], (-0.4, 0.4))
    model = loaded(limited(text, ["j0'"], (-0.4, 0.5)))
    assert [each.original for n in range(2) for each in split(model, n).groups] == [None, None]


def test_limbs_of_copies_are_alike() -> None:
    text, _ = instance("planar four-bar", 3, 0.0)
    for mirrored in (False, True):
        model = loaded(with_copy(text, mirrored=mirrored))
        one, other = rm.limb_joints(model)
        assert other == one + "'"
        assert rm.limb_joints(loaded(text)) == (one,)


def test_limbs_of_copies_without_mass_are_chosen_in_silence() -> None:
    """No size of inertias that tells whether these are alike."""
    root = ET.fromstring(with_copy(instance("planar four-bar", 3, 0.0)[0]))
    for each in root.findall("link"):
        for inertial in each.findall("inertial"):
            each.remove(inertial)
    model = loaded(ET.tostring(root, encoding="unicode"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = rm.limb_joints(model)
    assert found == (found[0], f"{found[0]}'")
