"""Mirror images among a robot's bodies, such as those of a left and a right leg.

Parameters fitted to random states are only as symmetric as these states. If a body is the image of
another, with its joint and all that carries it, the mean of both is nearer to each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from robomodel.arrays import Array
from robomodel.description import JointCoupling, Vec3
from robomodel.description.poses import link_poses
from robomodel.mechanism.graph import WORLD
from robomodel.model.derived import neutral_positions
from robomodel.model.model import Model
from robomodel.model.parameters import ENTRIES, INERTIAL, of_joints, pseudo_inertia
from robomodel.tolerances import WRITTEN


@dataclass(frozen=True, eq=False)
class MirrorImages:
    """The mirror images among a tree's bodies, by its parameters ``nominal`` (p,).

    ``turns`` (4, 4) leads from a body's frame to that of its image, mirrored. ``places``: pairs of
    armatures among the parameters.
    """

    turns: Mapping[tuple[int, int], Array]
    places: Sequence[tuple[int, int]]

    @classmethod
    def of(cls, tree: Model, nominal: Array) -> MirrorImages:
        """The images by the first of the world's planes by which there are any."""
        size, count = len(INERTIAL), len(tree.bodies)
        tens = nominal[: size * count].reshape(count, size)
        at = neutral_positions(tree)
        placed = link_poses(tree.description, {n: (x,) for n, x in at.items() if not np.ndim(x)})
        poses = np.tile(np.eye(4), (count, 1, 1))
        for pose, link in zip(poses, (placed[body.name] for body in tree.bodies), strict=True):
            pose[:3, :3], pose[:3, 3] = link.rotation, link.xyz
        places = {n: size * count + i for i, (n, kind) in enumerate(of_joints(tree))
                  if kind == "armature"}  # fmt: skip
        for mirror in _planes(tens, poses):
            if images := _images(tree, tens, poses, mirror):
                turns = {(body, image): np.linalg.inv(poses[image]) @ mirror @ poses[body]
                         for body, image in images.items()}  # fmt: skip
                pairs = (images | _rotors(tree, images)).items()
                return cls(turns, [(places[body], places[image]) for body, image in pairs
                                   if body in places and image in places])  # fmt: skip
        return cls({}, [])

    def mean(self, values: Array) -> Array:
        """The parameters ``values`` (p,), averaged over images."""
        size, result = len(INERTIAL), values.copy()
        for (body, image), turn in self.turns.items():
            j = turn @ pseudo_inertia(values[size * body : size * (body + 1)].tolist()) @ turn.T
            inertia = np.trace(j[:3, :3]) * np.eye(3) - j[:3, :3]
            ten = np.array([j[3, 3], *j[:3, 3], *(inertia[i, k] for i, k in ENTRIES)])
            part = slice(size * image, size * (image + 1))
            result[part] = 0.5 * (values[part] + ten)
        for here, there in self.places:
            result[there] = 0.5 * (values[here] + values[there])
        return result


def _planes(tens: Array, poses: Array) -> list[Array]:
    """Reflections (4, 4) in planes normal to the world's axes.

    They go through the first body's origin, or through the robot's centre of mass.
    """
    mass = float(np.sum(tens[:, 0]))
    moments = np.einsum("bij,bj->bi", poses, np.concatenate([tens[:, 1:4], tens[:, :1]], axis=1))
    centers = [poses[0, :3, 3]]
    if mass > 0.0:
        centers.append(np.sum(moments[:, :3], axis=0) / mass)
    planes = []
    for axis in (1, 0, 2):  # most robots' left is y
        for center in centers:
            mirror = np.eye(4)
            mirror[axis, axis], mirror[axis, 3] = -1.0, 2.0 * center[axis]
            planes.append(mirror)
    return planes


def _images(tree: Model, tens: Array, poses: Array, mirror: Array) -> dict[int, int]:
    """The image of each body that has one; empty if each is its own image.

    A body on the world is its own image for the bodies that it carries, whatever its inertia.
    """
    world = np.array([x @ pseudo_inertia(ten.tolist()) @ x.T
                      for x, ten in zip(poses, tens, strict=True)])  # fmt: skip
    size = float(np.max(np.linalg.norm(poses[:, :3, 3] - poses[0, :3, 3], axis=1))) or 1.0
    images: dict[int, int] = {}
    same: set[int] = set()
    parents = [node.parent for node in tree.nodes]
    for body, joint in enumerate(tree.joints):
        carrier = parents[body] if parents[body] == WORLD else images.get(parents[body])
        across = mirror @ world[body] @ mirror.T
        for other, other_joint in enumerate(tree.joints):
            if (
                other_joint.type != joint.type
                or parents[other] != carrier
                or other in images.values()
            ):
                continue
            gap = np.linalg.norm(across - world[other])
            freedoms = tree.nodes[body].joint.nv
            if np.any(across) and gap <= WRITTEN * np.linalg.norm(across):
                ends = mirror @ poses[body], poses[other]
                if _one_line(*ends, freedoms, joint.axis, other_joint.axis, size):
                    images[body] = other
                    same.add(body)
                    break
        if carrier == WORLD and body not in images:
            images[body] = body
    for body in reversed(range(len(parents))):  # with all that they carry, or not at all
        if body not in same and np.any(world[body]) and parents[body] != WORLD:
            same.discard(parents[body])
    pairs = {body: images[body] for body in same if images[body] in same}
    return pairs if any(a != b for a, b in pairs.items()) else {}


def _one_line(
    one: Array, other: Array, freedoms: int, axis: Vec3, other_axis: Vec3, size: float
) -> bool:
    """True if joints at these poses move about, or along, one line; others share their origin."""
    apart = other[:3, 3] - one[:3, 3]
    if freedoms != 1:
        return bool(np.linalg.norm(apart) <= WRITTEN * size or freedoms == 6)
    a, b = one[:3, :3] @ np.asarray(axis), other[:3, :3] @ np.asarray(other_axis)
    lengths = np.linalg.norm(a) * np.linalg.norm(b)
    parallel = np.linalg.norm(np.cross(a, b)) <= WRITTEN * lengths
    off = np.linalg.norm(np.cross(apart, b)) <= WRITTEN * size * np.linalg.norm(b)
    return bool(parallel and off)


def _rotors(tree: Model, images: Mapping[int, int]) -> dict[int, int]:
    """Images of massless rotors: those that the images of their joints turn at the same ratio."""
    at = {joint.name: n for n, joint in enumerate(tree.joints)}
    turned = {}
    for each in tree.description.couplings:
        if isinstance(each, JointCoupling):
            (name, ratio), *others = each.terms
            turned[at[name]] = {(at[joint], round(abs(k / ratio), 9)) for joint, k in others}
    result = {}
    for rotor, by in turned.items():
        across = {(images.get(body, -1), k) for body, k in by}
        for other, other_by in turned.items():
            if other_by == across:
                result[rotor] = other
    return result
