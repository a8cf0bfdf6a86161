"""The model's choice of independent joints, said in formats whose reader might choose others.

SDF counts positions from where its links stand, and MJCF says some joints and loops as several.
"""

from __future__ import annotations

from dataclasses import replace

from robomodel.description import Description, Joint, JointCoupling
from robomodel.model import Cluster, Model
from robomodel.model.options import labels

_COMPOSED = ("screw", "planar", "floating")  # written as several of MuJoCo's joints


def with_chosen(model: Model) -> Description:
    """The description, with the model's choice of independent joints where the file made none.

    Of clusters that could be read back otherwise: those with loops, with a joint that is written as
    several, with couplings of joints (in which none follows), or with several freedoms. A planar
    joint, or one that floats on a link that moves, of which only some freedoms are independent
    cannot be said so; its cluster is left to the reader.
    """
    description = model.description
    joints = {joint.name: joint for joint in description.joints}
    held = {joint.child for joint in description.joints}
    root = next(link.name for link in description.links if link.name not in held)
    ties = (tie for tie in description.couplings if isinstance(tie, JointCoupling))
    summed = {name for tie in ties for name, _ in tie.terms}
    marks: dict[str, bool | tuple[bool, ...]] = {}
    for cluster in model.clusters:
        own = [joints[name] for name in cluster.joints if name in joints]
        if (
            cluster.kind == "loops"
            or len(cluster.independent) > 1
            or any(joint.type in _COMPOSED or joint.name in summed for joint in own)
        ):
            marks |= _marks(cluster, own, root)
    if not marks:
        return description
    chosen = (replace(j, independent=marks.get(j.name, j.independent)) for j in description.joints)
    return replace(description, joints=tuple(chosen))


def _marks(cluster: Cluster, joints: list[Joint], root: str) -> dict[str, bool | tuple[bool, ...]]:
    """What to say of a cluster's joints; nothing where the file has, or where nothing could be."""
    if cluster.kind == "joint" or any(joint.independent is not None for joint in joints):
        return {}
    found: dict[str, bool | tuple[bool, ...]] = {}
    for joint in joints:
        each = tuple(label in cluster.independent for label in labels(joint))
        if len(set(each)) == 1:
            found[joint.name] = each[0]
        elif joint.type == "spherical" or (joint.type == "floating" and joint.parent == root):
            found[joint.name] = each
        else:
            return {}
    return found
