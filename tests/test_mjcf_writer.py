"""MJCF that is written: MuJoCo loads it, and it reads back as the same robot."""

import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from mechanisms import KINDS, mechanisms, random_mechanism
from mujoco_side import assert_same_dynamics

import robomodel as rm
from robomodel.writers.mjcf import to_mjcf

UNSAYABLE = {  # what MuJoCo takes no body for
    "jvrc1": "rotor",
    "mini_cheetah": "hip_link",
    "puma560": "link3",
    "tello": "crank",
    "tello_with_arms": "crank",
}


def same_coordinates(text, model):
    """The model of a text with the independent coordinates of another one."""
    chosen = [
        name
        for cluster in model.clusters
        if cluster.kind != "joint"
        for name in cluster.independent
    ]
    known = set(rm.load(text).dof_names)
    return rm.load(text, independent=chosen if chosen and known.issuperset(chosen) else None)


def written(model):
    text, lost = to_mjcf(model.description)
    assert lost == []
    mujoco.MjModel.from_xml_string(text)
    return text


@pytest.mark.parametrize("name", sorted(set(rm.robots.names()) - set(UNSAYABLE)))
def test_shipped_robots_read_back(name):
    model = rm.robots.load(name)
    assert_same_dynamics(model, same_coordinates(written(model), model))


@pytest.mark.parametrize("name", sorted(UNSAYABLE))
def test_what_mujoco_takes_no_body_for_is_told_and_loads(name):
    model = rm.robots.load(name)
    text, lost = to_mjcf(model.description)
    assert lost
    assert all(UNSAYABLE[name] in each for each in lost)
    mujoco.MjModel.from_xml_string(text)
    other = same_coordinates(text, model)
    assert other.nv == model.nv
    if "tello" in name:  # massless cranks: a picogram changes nothing that is seen
        assert_same_dynamics(model, other)


@pytest.mark.filterwarnings("ignore::robomodel.DescriptionWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_random_mechanisms(kind):
    for seed in range(4):
        mechanism = random_mechanism(np.random.default_rng(seed), [kind])
        check_mechanism(mechanism, seed)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::robomodel.DescriptionWarning")
@settings(deadline=None, max_examples=150)
@given(mechanisms())
def test_more_mechanisms(mechanism):
    check_mechanism(mechanism, 0)


def check_mechanism(mechanism, seed):
    model = rm.load(mechanism.text)
    text, lost = to_mjcf(model.description)
    mujoco.MjModel.from_xml_string(text)
    kinds = {loop.type for loop in model.description.loops}
    if kinds & {"prismatic", "planar"}:
        assert any("loop" in each for each in lost)
        return
    assert all("without a mass" in each for each in lost)
    if not lost:
        assert_same_dynamics(model, same_coordinates(text, model), tolerance=2e-11, seed=seed)
