"""A decision on a cluster applied to its description: moved frames; and in words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from robomodel.arrays import Array
from robomodel.description import Anchor, Description, Joint, Pose
from robomodel.description.poses import about, compose, inverse, rows3, vec
from robomodel.errors import argument
from robomodel.mechanism.graph import SpanningTree
from robomodel.mechanism.joints import Revolute
from robomodel.mobility import ClusterProblem, ReducedProblem, condition_names
from robomodel.mobility.decision import Decision, pose_of
from robomodel.spatial import UNIT
from robomodel.tolerances import CLOSED


@dataclass(frozen=True, slots=True)
class MovedFrames:
    """Small motions of joints on their parents, and of the ends of loops on their links, by name.

    A joint's motion is in the axes of its child; a loop's two motions are in those of its links.
    """

    joints: Mapping[str, Pose]
    loops: Mapping[str, tuple[Pose, Pose]]

    @staticmethod
    def of(
        problem: ClusterProblem,
        decision: Decision,
        tree: SpanningTree,
        frames: Sequence[Pose],
        bodies: range,
        ends: Mapping[str, tuple[Anchor, Anchor]],
    ) -> MovedFrames:
        """The moved frames of a decision on a cluster's core.

        Args:
            problem: The whole cluster's problem.
            decision: With ``frames``.
            tree: The tree in the bodies' internal frames.
            frames: These frames in the bodies' links.
            bodies: The cluster's.
            ends: The anchors of its loops, by name.
        """
        assert decision.frames is not None
        reduced = ReducedProblem.of(problem)
        gone = {link for link, _ in reduced.followers}
        links = [i for i in range(len(problem.geometry.links)) if i not in gone]
        joints: dict[str, Pose] = {}
        for i, frame in zip(links, decision.frames, strict=False):
            at, joint = frames[bodies[i]], problem.geometry.links[i].joint
            if isinstance(joint, Revolute) and joint.offset:
                at = compose(at, Pose(rotation=about(UNIT[joint.k], -joint.offset)))
            joints[tree.joints[bodies[i]].name] = _turned(at, _pose(frame))
        loops: dict[str, tuple[Pose, Pose]] = {}
        left = iter(decision.frames[len(links) :])
        for loop in reduced.problem.geometry.loop_joints:
            moved = []
            for anchor, end in zip(
                (loop.predecessor, loop.successor), ends[loop.name], strict=True
            ):
                on_body = tree.places[end.link].pose
                about_point = _turned(Pose(vec(anchor.point)), _pose(next(left)))
                moved.append(_turned(inverse(on_body), about_point))
            loops[loop.name] = moved[0], moved[1]
        return MovedFrames(joints, loops)

    def applied(self, description: Description) -> Description:
        """The description with its joints and loops moved."""

        def moved(joint: Joint) -> Joint:
            by = self.joints.get(joint.name)
            return joint if by is None else replace(joint, origin=compose(joint.origin, by))

        loops = list(description.loops)
        for n, loop in enumerate(loops):
            if loop.name in self.loops:
                first, second = (
                    replace(end, origin=compose(by, end.origin))
                    for end, by in zip(
                        (loop.predecessor, loop.successor), self.loops[loop.name], strict=True
                    )
                )
                loops[n] = replace(loop, predecessor=first, successor=second)
        return replace(
            description, joints=tuple(map(moved, description.joints)), loops=tuple(loops)
        )


def _turned(at: Pose, motion: Pose) -> Pose:
    """A motion in a frame with the pose ``at``, as a motion in the frame of that pose."""
    return compose(compose(at, motion), inverse(at))


def _pose(frame: Array) -> Pose:
    turn, shift = pose_of(frame)
    return Pose(vec(shift), rows3(turn))


def words(problem: ClusterProblem, decision: Decision) -> str:
    """A decision on a cluster as the predicate of a sentence; "" where its conditions agree."""
    names = condition_names(problem)
    mobility = len(ReducedProblem.of(problem).problem.columns) - decision.rank
    if decision.frames is not None:
        shift = float(np.max(np.linalg.norm(decision.frames[:, :3], axis=1)))
        turn = float(np.max(2.0 * np.arcsin(np.linalg.norm(decision.frames[:, 3:6], axis=1))))
        return (
            f"is rounded: frames of {names} moved by at most {1e3 * shift:.2g} mm and "
            f"{math.degrees(turn):.2g}° so that its conditions agree, which leaves mobility "
            f"{mobility}; {argument('mend', False)} keeps the numbers"
        )
    if decision.letter is not None:
        return (
            f"has mobility {mobility - 1} exactly, {mobility} if its loops ({names}) may "
            f"open by {decision.gap:.2g} of the cluster's size "
            f"({1e3 * decision.gap * problem.scale:.2g} mm) within 0.3 rad. It is taken as "
            f"{mobility}, with its conditions met as well as they can be"
        )
    if decision.opens is not None:
        return (
            f"has mobility {mobility}, but only because of one nearly redundant constraint: with "
            f"dimensions a little different it would be {mobility + 1}, as its loops ({names}) "
            f"without that constraint open by {decision.opens:.2g} of the cluster's size "
            f"({1e3 * decision.opens * problem.scale:.2g} mm) within 0.3 rad"
        )
    if decision.gap <= CLOSED:
        return ""
    return (
        f"closes only nearly: with mobility {mobility}, {names} stay open by up to "
        f"{decision.gap:.2g} of the cluster's size ({1e3 * decision.gap * problem.scale:.2g} mm) "
        "within 0.3 rad; its conditions are met as well as they can be"
    )
