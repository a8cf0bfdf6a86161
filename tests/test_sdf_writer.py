"""The SDF writer: what it writes reads back as the same mechanism, loops, gears and all."""

import numpy as np
import pytest
from mechanisms import KINDS, random_mechanism
from shipped import ROBOTS
from test_sdf import CASSIE, DATA

import robomodel as rm
from robomodel.model import Model, build
from robomodel.parsers import read
from robomodel.writers.sdf import to_sdf


def placed(model: Model, q, other: Model):
    """The configuration of ``other`` in which every joint stands as in ``model`` at ``q``."""
    spanning = np.array([float(x) for x in model.spanning_positions(list(q))])
    at = {
        each.name: spanning[node.q : node.q + each.nq]
        for each, node in zip(model.joints, model.nodes, strict=True)
    }
    result = np.zeros(other.nq)
    for cluster in other.clusters:
        explicit = cluster.kind == "couplings" and not cluster.implicit
        names = cluster.independent if explicit else cluster.joints
        result[cluster.q] = np.concatenate([at[name] for name in names])
    return result


def assert_same(model: Model, other: Model, *, states=3, tolerance=1e-12):
    """The same inverse dynamics and inertia at the same states, joint by joint."""
    assert sorted(model.dof_names) == sorted(other.dof_names)
    assert model.gravity == other.gravity
    order = [other.dof_names.index(name) for name in model.dof_names]
    rng = np.random.default_rng(0)
    for _ in range(states):
        q = model.random_configuration(rng)
        v, a = rng.normal(size=(2, model.nv))
        q2, v2, a2 = placed(model, q, other), np.zeros(other.nv), np.zeros(other.nv)
        v2[order], a2[order] = v, a
        mine = rm.rnea(model, q, v, a, backend="numpy")
        its = rm.rnea(other, q2, v2, a2, backend="numpy")[order]
        M = rm.crba(model, q, backend="numpy")
        size = np.max(np.abs(mine)) + np.max(np.abs(M))
        np.testing.assert_allclose(its, mine, rtol=0, atol=tolerance * size)
        its = rm.crba(other, q2, backend="numpy")[np.ix_(order, order)]
        np.testing.assert_allclose(its, M, rtol=0, atol=tolerance * size)


def again(model: Model) -> Model:
    """The model that is read from what is written of this one, with the same coordinates."""
    text, lost = to_sdf(model.description)
    assert lost == []
    chosen = [name for each in model.clusters if each.kind != "joint" for name in each.independent]
    return build(read(text), independent=chosen or None)


SAYS = {  # what SDF cannot say of the shipped robots
    "teleop_arm": ("the coupling 'wrist-roll-belt' of 4 joints",),
    "tello": ("of 3 joints", "rod loop"),
    "tello_with_arms": ("of 3 joints", "rod loop"),
}


@pytest.mark.parametrize("name", ROBOTS)
def test_shipped_robots(name):
    model = rm.robots.load(name)
    if name in SAYS:
        text, lost = to_sdf(model.description)
        assert all(any(words in each for words in SAYS[name]) for each in lost)
        assert len(read(text).loops) == 0
        return
    assert_same(model, again(model))


@pytest.mark.skipif(not CASSIE.is_dir(), reason="example-robot-data is not installed")
@pytest.mark.filterwarnings("ignore::robomodel.DescriptionWarning")
@pytest.mark.parametrize("file", ["cassie.sdf", "cassie_v2.sdf"])
def test_cassie(file):
    model = rm.load(CASSIE / file)
    assert_same(model, again(model), states=2)


UNSAYABLE = ("planar joint", "planar loop", "rod loop", " joints", "floating joint")
NEVER_SAID = ("coupling", "rod_four_bar", "rod", "ankle")  # of three joints, or with rods


@pytest.mark.filterwarnings("ignore::robomodel.DescriptionWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_random_mechanisms(kind):
    """Of every kind that SDF can say, two: the first ones without planar joints, rods and sums."""
    said = 0
    for seed in range(16):
        rng = np.random.default_rng([seed, KINDS.index(kind)])
        model = rm.load(random_mechanism(rng, [kind], n_joints=6).text)
        text, lost = to_sdf(model.description)
        if lost:
            assert all(any(word in each for word in UNSAYABLE) for each in lost), lost
            read(text)
            continue
        assert_same(model, again(model), states=1)
        said += 1
        if said == 2:
            break
    assert (said == 0) == (kind in NEVER_SAID)


def test_files_that_were_read_are_written_again():
    """Nested and included models, frames, a universal joint, a screw, joint frames of their own."""
    model = rm.load(DATA / "frames" / "model.sdf")
    other = again(model)
    assert {each.name for each in other.description.links} == {
        each.name for each in model.description.links
    }
    assert_same(model, other)
