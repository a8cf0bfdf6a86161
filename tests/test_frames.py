"""Frames as users give them: links, points of links, and what is neither."""

from __future__ import annotations

import numpy as np
import pytest

import robomodel as rm
from robomodel.dynamics.kinematics.frames import frame_key, frame_keys

POINT = ("shin", (0.0, 0.0, -0.2))


@pytest.mark.parametrize(
    "frame", [("shin", [0, 0, -0.2]), ["shin", (0, 0, -0.2)], ("shin", np.array([0, 0, -0.2]))]
)
def test_points_in_any_sequence(frame: object) -> None:
    assert frame_key(frame) == POINT
    assert frame_keys(frame) == (POINT,)
    assert frame_keys([frame, "foot"]) == (POINT, "foot")


def test_one_or_several() -> None:
    assert frame_keys("shin") == ("shin",)
    assert frame_keys(["shin"]) == ("shin",)
    assert frame_keys(("shin", "foot")) == ("shin", "foot")
    assert frame_keys([]) == ()


@pytest.mark.parametrize(
    "frame",
    [["link1"], 3, None, 0.5, ("link1", 3), ("link1", "link2"), {"link1": 1}, ("a", "b", "c")],
)
def test_what_is_no_frame_is_told_in_words(frame: object) -> None:
    model = rm.robots.load("four_bar")
    q, v = model.neutral(), np.zeros(1)
    for call in (
        lambda: rm.jacobian(model, q, frame),
        lambda: rm.frame_pose(model, q, frame, backend="numpy"),
        lambda: rm.frame_velocity(model, q, v, frame),
        lambda: rm.efpa(model, q, [frame]),
        lambda: rm.impulse(model, q, v, [frame]),
        lambda: rm.compile(model, "efpa", frames=[frame]),
    ):
        with pytest.raises(TypeError, match=r"a frame is a link's name, or \(link, offset\), not"):
            call()
    if not isinstance(frame, list | tuple | dict):
        for several in (rm.efpa, rm.impulse):
            with pytest.raises(TypeError, match="frames are links' names"):
                several(model, q, *([v] if several is rm.impulse else []), frame)


@pytest.mark.parametrize(
    "offset", [(1, 2), (1, 2, 3, 4), (0, np.nan, 0), (0, 0, np.inf), (0, 0, None)]
)
def test_offsets_are_three_finite_numbers(offset: object) -> None:
    model = rm.robots.load("four_bar")
    for call in (rm.jacobian, rm.frame_pose, rm.efpa):
        with pytest.raises(
            ValueError, match="offset of a frame on 'link1' is three finite numbers"
        ):
            call(model, model.neutral(), ("link1", offset))
