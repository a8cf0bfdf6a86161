"""The bounds of the checks: from where on a number of a robot file is a finding.

They were set together, on published files with and without seeded faults: ``docs/validate.md`` has
the shares of faults that are named and the false alarms with these values, as
``python -m benchmarks.validation`` measures them. Who changes one measures them again. Constants of
how something is computed, as numbers of samples, stand beside the methods that use them.
"""

from __future__ import annotations

import math
from typing import NamedTuple


class Bounds(NamedTuple):
    """Bounds by check, with their units and reasons."""

    # loops, limits and independent coordinates
    rounded_gap: float = 1e-3  # of a cluster's size: the largest gap that rounding of a file leaves
    five_digits: float = 2e-5  # of the robot's size: gap that five digits of numbers leave
    not_closed: float = 5e-3  # of the robot's size: loops farther open are not meant to be closed
    beyond_limits: float = 0.1  # rad or m: singularities no farther beyond the limits are findings
    better_conditioned: float = 10.0  # times: other independent coordinates are a finding
    limit_rounded: float = 0.01  # of a range: a file's limits count as its ends within this
    start_condition: float = 10.0  # times the usual condition: a start that is nearly singular
    backdrive_margin: float = 0.05  # above the bound of backdrive: a drive that is near it
    mimic_lever: float = 2.0  # largest ratio of a lever to the joint that it mimics
    balanced_centre: float = 1e-3  # m: a centre of mass nearer to the axis counts as on it

    # units
    joints_apart: float = 20.0  # m: larger distances between joints are in another unit
    endless_slide: float = 1e4  # m: larger limits of a slide stand for none
    turns: tuple[float, float] = (4 * math.pi, 3600.0)  # rad: limits beyond are odd; none
    turns_in_degrees: float = 1440.0  # rad: four turns in degrees, for limits not whole
    hinges_below_turns: float = 0.8  # share of the other hinges that makes one beyond odd
    heaviest_link: float = 2000.0  # kg
    steel: float = 7850.0  # kg/m³: no link outweighs a cube of it as long as the longest link

    # masses and inertias
    triangle_warned: float = 4 / 3  # larger excesses over the inequality are warned of when read
    triangle_noted: float = 0.01  # an excess that is noted, but does no harm
    centre_outside: float = 0.5  # of a body's extent: a centre of mass farther out is a finding
    marker_size: float = 0.1  # of the longest link: smaller shapes may only mark a place
    gyration_size: float = 3.0  # of the longest link: limit of radii of gyration and centres
    point_radius: float = 1e-8  # m: smaller radii of gyration stand for none
    densest: float = 22600.0  # kg/m³, osmium
    felt_inertia: float = 0.1  # of the inertia that a body carries: a link's share that matters
    dummy_mass: float = 1e-4  # of the robot's mass: lighter links are without real mass
    dummy_inertia: float = 1e-5  # of the robot's mass times size²: the same of inertias

    # inertias beside shapes: logarithms of ratios of radii of gyration
    shapes_compared: int = 4  # links with shapes, or rotors, from which one can stand out
    shell_ratio: float = math.log(1.7)  # more than that of a thin shell and its solid
    core_ratio: float = math.log(4.0)  # that of a heavy core in a solid, as a motor in its cover
    matter_ratios: tuple[float, float] = (math.log(0.1), math.log(2.3))  # no matter inside has more
    shape_deviations: float = 5.0  # standard deviations from the robot's other links
    shape_spread: float = 0.03  # least standard deviation of these ratios
    signs_differ: float = 0.05  # of an inertia's trace: least difference by the products' signs
    signs_leave: float = 0.4  # of a difference: the most that its cause may leave
    signs_telling: float = 3.0  # times the median link's difference from its shapes

    # rotors, gears and gains. Shares are a rotor's reflected inertia in what its joint carries,
    # parts its inertia in the robot's mass times size². Of the robots tried, an iiwa's last joint
    # reflects most, 1200 times what it carries, and JVRC-1's hips least, 1e-4; the belt leg's
    # rotors are the largest part, 2e-3, and those of two iiwas on a table the smallest, 4e-7.
    rotor_radius: tuple[float, float] = (5e-4, 0.25)  # m: least and greatest radius of gyration
    rotor_length: tuple[float, float] = (1e-3, 20.0)  # radii: of a rotor as a solid of steel
    weightless_rotor: float = 1e-9  # kg: smaller masses are for simulators that ask for one
    rotor_share_large: float = 10.0
    rotor_share_largest: float = 1e4
    rotor_part_large: float = 0.01
    rotor_share_small: float = 1e-3
    rotor_part_small: float = 1e-7
    # Armatures files often choose for the solver: of 866 in 47 MJCF files of public packages the
    # shares are from 1e-3 up, and above 1e4 only if the joint carries almost nothing.
    armature_share_least: float = 1e-6
    armature_part_least: float = 1e-5
    rotor_deviations: float = 4.0  # standard deviations of the logarithms of the rotors' inertias
    rotor_spread: float = 0.5  # least standard deviation: rotors of one robot are of few sizes
    placeholder_ratio: float = 1.0  # reduction of transmissions that exist for their names only
    velocity_gain: float = 1.0  # times step over inertia: more reverses the velocity in a step
    position_gain: float = 4.0  # times step² over inertia: more diverges from any start of the step
    shaped_links: float = 0.8  # of links with visual shapes: share that has collision shapes, too
    ratio_warned: float = 1.5  # times: ratios farther from a reference's are warnings

    # which limbs are twins: mirror images or copies
    limbs_similar: float = 0.6  # share of joints that correspond, for limbs to be compared
    limbs_alike: float = 0.6  # share of the quantities that agree: twins
    copies_alike: float = 0.8  # the same if only they say so: not placed as the body has them
    copied_joints: int = 3  # of limbs that are compared though they are not placed so
    rods_alike: float = 0.97  # share from which fewer joints do: rods of a parallelogram
    kinematics_alike: float = 0.5  # the same of their places and axes alone
    evidence: float = 2.5  # quantities that agree, for twins
    placed_weight: float = 0.03  # of the share: what the place of a limb counts between maps
    voted_weight: float = 0.01  # the same of another pair under the same map, up to three
    other_map: float = 3.0  # quantities that must agree better for a limb to take another map
    agreeing: float = 0.1  # relative difference at which a quantity says nothing for agreement
    agreeing_place: float = 0.02  # of the robot's size: the same for places
    same_centre: float = 2e-3  # of the robot's size: nearer centres and places say nothing
    judged_within: float = 0.15  # of the share of a limb's best twin: others do not judge it
    image_distance: float = 0.5  # of the robot's size: so far from the image none corresponds
    fewer_distance: float = 0.3  # of image_distance, for a subtree of another size

    # how twins differ
    different: float = 0.1  # relative difference from which a number differs
    measured_equal: float = 0.02  # relative difference of numbers which may be measured
    mirrored_signs: float = 0.01  # relative: inertias' differences that products' signs explain
    other_place: float = 0.01  # of the robot's size: distance from which a place differs
    other_shape: float = 0.1  # of the robot's size: the same of a collision shape
    other_axis: float = 0.05  # sine of the angle from which an axis differs
    twin_cause_leaves: float = 0.1  # of a difference: the most that its cause may leave
    beside: float = 0.25  # of two limbs' distance: farther from the image is another place
    other_part: int = 3  # of mass, centre, inertia, place and axis: more make it another part
    unpaired: float = 0.5  # cost from which a fixed link has no other of the other body
    sure: float = 10.0  # of doubts: no other reason is needed
    scatter: float = 5.0  # times the median difference of a kind: differs there anyway
    doubt_margin: float = 1.0  # of doubts: least difference that decides which of two is wrong
    aligned: float = 0.99  # cosine of the angle between parallel axes
    axes_voting: int = 3  # pairs of joints from which one stands out by its axis's sign
    twin_ratio: float = 0.02  # relative difference from which ratios differ

    # written numbers, and numbers of scripts and data sheets beside the model's
    axis_length: float = 1e-3  # relative: lengths of axes that rounding does not explain
    askew: float = 5e-5  # rad: less, as of 1.5708, moves nothing by a tenth of a millimetre
    sheet_limit: float = 0.05  # relative: data sheets round limits, 23.5 beside 23.7 N m
    sheet_armature: float = 0.25  # relative difference from which a script's armature is another
    joint_names: float = 0.8  # of a list's names: then it is a list of joints


BOUNDS = Bounds()
