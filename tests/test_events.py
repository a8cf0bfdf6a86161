"""Events of contacts: on made-up motions, and on motions whose times mechanics tells."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

import robomodel as rm
from robomodel.motion.events import Event, contact_events

Array = NDArray[np.float64]
G = 9.81


def recorded(
    bears: list[int], rise: list[float] | None = None, slide: list[float] | None = None
) -> tuple[Array, Array, Array]:
    """Times, forces and velocities of one contact, 0.1 s a step."""
    steps = len(bears)
    forces, velocities = np.zeros((2, steps, 1, 3))
    forces[:, 0, 2] = bears
    velocities[:, 0, 2] = np.where(forces[:, 0, 2] > 0, 0.0, 1.0) if rise is None else rise
    velocities[:, 0, 0] = 0.0 if slide is None else slide
    return 0.1 * np.arange(steps + 1), forces, velocities


def said(events: list[Event]) -> list[tuple[float, str]]:
    return [(round(event.time, 9), event.kind) for event in events]


def test_touch_down_and_lift_off() -> None:
    """At the start of the first step with a force, and at the end of the last one."""
    events = contact_events(*recorded([0, 0, 5, 5, 5, 0, 0, 3]), ["foot"])
    assert said(events) == [(0.2, "touch-down"), (0.5, "lift-off"), (0.7, "touch-down")]
    assert events[0] == Event(events[0].time, "touch-down", "foot")
    assert said(contact_events(*recorded([1, 1]), ["foot"])) == [(0.0, "touch-down")]
    assert contact_events(*recorded([0, 0]), ["foot"]) == []
    assert contact_events(*recorded([]), ["foot"]) == []


def test_steps_without_force_that_do_not_rise_end_no_contact() -> None:
    forces = [1, 0, 0, 1, 0, 0]
    events = contact_events(*recorded(forces, [0, 4e-4, 4e-4, 0, 6e-4, 6e-4]), ["foot"])
    assert said(events) == [(0.0, "touch-down"), (0.4, "lift-off")]  # 0.08 mm, then 0.12 mm
    lower = recorded(forces, [0, 4e-4, 4e-4, 0, 6e-4, 6e-4])
    assert len(contact_events(*lower, ["foot"], clearance=1e-5)) == 4
    # what comes back before it has left does not add up
    events = contact_events(*recorded([1, 0, 0, 0, 0], [0, 8e-4, -9e-4, 8e-4, 1e-4]), ["foot"])
    assert said(events) == [(0.0, "touch-down")]


def test_slip_and_stick() -> None:
    """Above the speed it slips, below a tenth it sticks, and in between it does what it did."""
    slide = [0.0, 5e-4, 2e-3, 5e-4, 2e-4, 5e-5, 5e-4, 0.0]
    events = contact_events(*recorded([1] * 8, slide=slide), ["foot"])
    assert said(events) == [(0.0, "touch-down"), (0.3, "slip"), (0.6, "stick")]
    # a contact that lands sliding slips again; what slides in the air does not
    slide = [1.0, 1.0, 1.0, 0.0, 1.0, 1.0]
    events = contact_events(*recorded([0, 1, 1, 0, 0, 1], slide=slide), ["foot"])
    assert said(events) == [
        (0.1, "touch-down"), (0.2, "slip"), (0.3, "lift-off"), (0.5, "touch-down"), (0.6, "slip"),
    ]  # fmt: skip


def test_points_of_one_link_count_as_one() -> None:
    """It touches while one of its points does, and slides while all that touch slide."""
    times = 0.1 * np.arange(6)
    forces, velocities = np.zeros((2, 5, 3, 3))
    forces[:, 0, 2] = 1, 1, 1, 0, 0  # the heel, then the toe
    forces[:, 1, 2] = 0, 1, 1, 1, 0
    forces[:, 2, 2] = 0, 0, 1, 0, 0
    velocities[3:, 0, 2] = 1.0
    velocities[4:, 1, 2] = 1.0
    velocities[:, 0, 0] = 1.0  # the heel slides, the toe does not
    events = contact_events(times, forces, velocities, ["foot", "foot", "hand"])
    assert [(round(e.time, 9), e.kind, e.link) for e in events] == [
        (0.0, "touch-down", "foot"),
        (0.1, "slip", "foot"),
        (0.2, "stick", "foot"),
        (0.2, "touch-down", "hand"),
        (0.4, "lift-off", "foot"),
    ]


def test_speeds_are_along_the_surface_and_forces_along_its_normal() -> None:
    normal = np.array([0.6, 0.0, 0.8])
    times, forces, velocities = recorded([1, 1, 1])
    velocities[:, 0] = 0.5 * normal
    events = contact_events(times, forces[..., [2, 1, 0]], velocities, ["foot"], normals=normal)
    assert said(events) == [(0.0, "touch-down")]
    each = np.broadcast_to(normal, forces.shape)
    assert contact_events(times, forces, velocities, ["foot"], normals=each) == events
    assert contact_events(times, -forces, velocities, ["foot"], normals=each) == []


# ---- motions -------------------------------------------------------------------------------------


def body(geometry: str, inertia: float = 0.01) -> rm.Model:
    turns = f'ixx="{inertia}" iyy="{inertia}" izz="{inertia}" ixy="0" ixz="0" iyz="0"'
    return rm.load(
        f'<robot name="r"><link name="a"><inertial><mass value="2"/><inertia {turns}/></inertial>'
        f"<collision><geometry>{geometry}</geometry></collision></link></robot>",
        floating_base=True,
    )


@pytest.mark.slow
def test_a_block_slides_and_stops() -> None:
    """On its four corners: it slips from the start and sticks after v / (μ g)."""
    model = body('<box size="0.2 0.2 0.2"/>')
    q = model.neutral()
    q[2] = 0.1
    corners = [("a", (x, y, -0.1)) for x in (-0.1, 0.1) for y in (-0.1, 0.1)]
    motion = rm.simulate(
        model, q, [0, 0, 0, 1.0, 0, 0], duration=0.3, ground=rm.Ground(friction=0.5),
        contacts=corners,
    )  # fmt: skip
    slides, sticks = 1e-3, 1.0 / (0.5 * G)
    assert [event.kind for event in motion.events] == ["touch-down", "slip", "stick"]
    assert {event.link for event in motion.events} == {"a"}
    np.testing.assert_allclose(
        [event.time for event in motion.events], [0.0, slides, sticks], rtol=0, atol=1e-3
    )


@pytest.mark.parametrize(("spin", "across"), [(0.0, 0.0), (3.0, 0.5), (-4.0, 0.2)])
def test_a_ball_slides_until_it_rolls(spin: float, across: float) -> None:
    """A full ball: the slip s of its lowest point ends after 2 s / (7 μ g)."""
    model = body('<sphere radius="0.1"/>', 0.4 * 2.0 * 0.1**2)
    q = model.neutral()
    q[2] = 0.1
    motion = rm.simulate(
        model, q, [0, spin, 0, 1.0, across, 0], duration=0.2, ground=rm.Ground(friction=0.4)
    )
    rolls = 2.0 * math.hypot(1.0 - 0.1 * spin, across) / (7 * 0.4 * G)
    assert [event.kind for event in motion.events] == ["touch-down", "slip", "stick"]
    assert motion.events[-1].time == pytest.approx(rolls, abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("slope", [0.0, 0.3])
def test_a_ball_bounces(slope: float) -> None:
    """Every touch-down and lift-off where flights end, on a plane and on a slope of heights."""
    model, e = body('<sphere radius="0.1"/>'), 0.6
    grid = slope * 0.5 * np.arange(5)[:, None] * np.ones(5)
    ground = rm.Ground(0.0, e, grid if slope else 0.0, 0.5, (-1.0, -1.0))
    up = math.hypot(1.0, slope)  # the height above the surface : the distance from it
    q = model.neutral()
    q[2] = 2 * slope * 0.5 + (0.1 + 0.2 / up) * up
    step = 2.5e-4
    motion = rm.simulate(model, q, duration=0.7, step=step, ground=ground)
    speed, time, expected = math.sqrt(2 * G * 0.2) / up, math.sqrt(2 * 0.2 / G), []
    while time < 0.7:  # all rebounds are over at 0.81 s
        expected.append(time)
        speed *= e
        time += 2 * speed * up / G
    for kind in ("touch-down", "lift-off"):
        times = [event.time for event in motion.events if event.kind == kind]
        np.testing.assert_allclose(times[:4], expected[:4], rtol=0, atol=8 * step)
    assert ("slip" in {event.kind for event in motion.events}) == (slope > 0.0)


@pytest.mark.slow
def test_links_that_meet_and_motions_without_contact() -> None:
    """A link on one at rest: both names; before the first pair is near there is no event."""
    text = "".join(
        f'<link name="{name}"><inertial><mass value="2"/><inertia ixx="0.01" iyy="0.01" '
        'izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial><collision><geometry>'
        '<sphere radius="0.1"/></geometry></collision></link>'
        f'<joint name="of_{name}" type="prismatic"><parent link="world"/><child link="{name}"/>'
        '<axis xyz="1 0 0"/><limit lower="-9" upper="9" effort="1" velocity="9"/></joint>'
        for name in "ab"
    )
    model = rm.load(f'<robot name="two"><link name="world"/>{text}</robot>')
    motion = rm.simulate(model, [0.0, 0.7], [1.0, 0.0], duration=0.8, collisions=True)
    assert [event[1:] for event in motion.events] == [("touch-down", ("a", "b"))]
    assert motion.events[0].time == pytest.approx(0.5, abs=1.5e-3)
    assert rm.simulate(model, [0.0, 0.7], [1.0, 0.0], duration=0.1).events == ()
