"""USD as converters of URDF and MJCF write it: Newton's and MuJoCo's attributes, old and new."""

from __future__ import annotations

import math
import warnings
from pathlib import Path

import numpy as np
import pytest

import robomodel as rm
from robomodel import DescriptionError, DescriptionWarning
from robomodel.description import Inertial, Joint, Shape, ShapeKind
from robomodel.description.shapes import shell
from robomodel.files import LFS

pytest.importorskip("pxr")

MOMENTS = (0.6, 0.7, 0.8, 0.01, 0.02, 0.03)  # Ixx Iyy Izz Ixy Ixz Iyz
TENSOR = f"double[] newton:inertia = {list(MOMENTS)}"
RADIANS = 'def PhysicsScene "s" { uniform token mjc:compiler:angle = "radian"\n}'


def stage(
    *,
    first: str = "",
    second: str = "",
    body: str = "float3 physics:diagonalInertia = (0.3, 0.25, 0.02)",
    schema: str = "",
    more: str = RADIANS,
    meta: str = "metersPerUnit = 1",
) -> str:
    """Two hinges about x in a row; ``first`` and ``second`` are attributes of them."""

    def link(name: str, words: str, *schemas: str) -> str:
        names = ", ".join(f'"{x}"' for x in ("PhysicsRigidBodyAPI", *filter(None, schemas)))
        return f'def Xform "{name}" (prepend apiSchemas = [{names}]) {{ {words}\n}}'

    fixed = "float3 physics:diagonalInertia = (0.3, 0.25, 0.02)"
    mass = "float physics:mass = 2; point3f physics:centerOfMass = (0, 0, 0)"
    hinges = [
        f'def PhysicsRevoluteJoint "{name}" (prepend apiSchemas = ["MjcJointAPI"]) {{ {ends}\n'
        f'uniform token physics:axis = "X"\n{words}\n}}'
        for name, ends, words in (
            ("j1", "rel physics:body1 = </r/a>", first),
            ("j2", "rel physics:body0 = </r/a>\nrel physics:body1 = </r/b>", second),
        )
    ]
    return "\n".join(
        (
            f'#usda 1.0\n(defaultPrim = "r"; {meta}; upAxis = "Z")\ndef Xform "r" {{',
            link("a", f"{mass}\n{body}", "PhysicsMassAPI", schema),
            link("b", f"{mass}\n{fixed}", "PhysicsMassAPI"),
            *hinges,
            f"}}\n{more}",
        )
    )


def inertial(text: str) -> Inertial:
    (link,) = (each for each in rm.load(text).description.links if each.name == "a")
    assert link.inertial is not None
    return link.inertial


def hinge(text: str, name: str = "j1") -> Joint:
    (joint,) = (each for each in rm.load(text).description.joints if each.name == name)
    return joint


# ---- inertias ------------------------------------------------------------------------------------


def test_newtons_tensor_counts_where_its_schema_is_applied() -> None:
    """Over moments about principal axes, and with the moments of colliders left aside."""
    cube = 'def Cube "c" (prepend apiSchemas = ["PhysicsCollisionAPI"]) { double size = 1\n}'
    xx, yy, zz, xy, xz, yz = MOMENTS
    for words in (TENSOR, f"{TENSOR}\n{cube}"):
        own = inertial(stage(body=words, schema="NewtonMassAPI"))
        assert own.inertia == (xx, xy, xz, yy, yz, zz)
        assert own.mass == 2.0
    axes = "float3 physics:diagonalInertia = (0.3, 0.25, 0.02)"
    with pytest.warns(DescriptionWarning, match="apart; the first counts"):
        own = inertial(stage(body=f"{axes}\n{TENSOR}", schema="NewtonMassAPI"))
    assert own.inertia == (xx, xy, xz, yy, yz, zz)
    with pytest.warns(DescriptionWarning, match="only where NewtonMassAPI is applied"):
        assert inertial(stage(body=f"{axes}\n{TENSOR}")).inertia == (0.3, 0.0, 0.0, 0.25, 0.0, 0.02)
    values, vectors = np.linalg.eigh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    vectors *= np.sign(np.linalg.det(vectors))
    w = math.sqrt(1.0 + np.trace(vectors)) / 2.0
    x, y, z = ((vectors[j, i] - vectors[i, j]) / (4 * w) for i, j in ((1, 2), (2, 0), (0, 1)))
    same = (
        f"float3 physics:diagonalInertia = {tuple(map(float, values))}\n"
        f"quatf physics:principalAxes = ({w}, {x}, {y}, {z})\n{TENSOR}"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert inertial(stage(body=same, schema="NewtonMassAPI")).inertia[0] == xx
    centimetres = stage(
        body="double[] newton:inertia = [6000, 7000, 8000, 0, 0, 0]", schema="NewtonMassAPI",
        meta="metersPerUnit = 0.01",
    )  # fmt: skip
    assert inertial(centimetres).inertia == pytest.approx((0.6, 0, 0, 0.7, 0, 0.8))


@pytest.mark.parametrize(
    ("numbers", "message"), [("[1, 2]", "not 6 numbers"), ("[-1, 1, 1, 0, 0, 0]", "negative")]
)
def test_faults_of_newtons_tensor(numbers: str, message: str) -> None:
    with pytest.raises(DescriptionError, match=message):
        rm.load(stage(body=f"double[] newton:inertia = {numbers}", schema="NewtonMassAPI"))


# sizes, words in USD, sizes of MuJoCo's geom
SHELLS: dict[ShapeKind, tuple[tuple[float, ...], str, str]] = {
    "sphere": ((0.3,), 'Sphere "c" {} {{ double radius = 0.3\n{}\n}}', "0.3"),
    "box": (
        (0.4, 0.4, 0.4),
        'Cube "c" {} {{ double size = 0.4\n{}\n}}',
        "0.2 0.2 0.2",
    ),
    "cylinder": (
        (0.1, 0.6),
        'Cylinder "c" {} {{ double radius = 0.1; double height = 0.6\n{}\n}}',
        "0.1 0.3",
    ),
    "capsule": (
        (0.1, 0.6),
        'Capsule "c" {} {{ double radius = 0.1; double height = 0.6\n{}\n}}',
        "0.1 0.3",
    ),
}
_APPLIED = '(prepend apiSchemas = ["PhysicsCollisionAPI", "PhysicsMassAPI", "NewtonMassAPI"])'


@pytest.mark.parametrize("kind", SHELLS)
def test_shells_are_mujocos_and_walls_the_difference_of_two_solids(kind: ShapeKind) -> None:
    mujoco = pytest.importorskip("mujoco")
    sizes, words, geom = SHELLS[kind]
    text = (
        f'<mujoco><worldbody><body><freejoint/><geom type="{kind}" size="{geom}" density="3" '
        'shellinertia="true"/></body></worldbody></mujoco>'
    )
    theirs = mujoco.MjModel.from_xml_string(text)
    thin = shell(Shape("collision", kind, sizes))
    assert 3 * thin.mass == pytest.approx(theirs.body_mass[1], rel=1e-12)
    own = sorted(3 * thin.inertia[k] for k in (0, 3, 5))
    np.testing.assert_allclose(own, sorted(theirs.body_inertia[1]), rtol=1e-12)
    hollow = 'float physics:density = 3\nuniform token newton:massModel = "shell"'
    surface = f"def {words.format(_APPLIED, hollow)}"
    bare = stage(body=surface, more="").replace("float physics:mass = 2;", "", 1)
    with pytest.warns(DescriptionWarning, match="mass per area"):
        assert inertial(bare).mass == pytest.approx(theirs.body_mass[1], rel=1e-12)
    weighed = inertial(stage(body=surface))  # the body's mass says how thick it is
    assert weighed.mass == 2.0
    own = sorted(weighed.inertia[k] * theirs.body_mass[1] / 2.0 for k in (0, 3, 5))
    np.testing.assert_allclose(own, sorted(theirs.body_inertia[1]), rtol=1e-12)
    walled = surface.replace('= "shell"', '= "shell"; float newton:shellThickness = 0.0625')
    of_wall = inertial(stage(body=walled, more="").replace("float physics:mass = 2;", "", 1))
    inner = {
        "sphere": (0.2375,), "box": (0.275,) * 3, "cylinder": (0.0375, 0.475),
        "capsule": (0.0375, 0.6),
    }[kind]  # fmt: skip
    outer, hole = (_solid(kind, size) for size in (sizes, inner))
    assert of_wall.mass == pytest.approx(3 * (outer[0] - hole[0]), rel=1e-6)
    assert of_wall.inertia[5] == pytest.approx(3 * (outer[1] - hole[1]), rel=1e-6)
    with pytest.raises(DescriptionError, match="fills"):
        rm.load(stage(body=walled.replace("0.0625", "0.5")))


def _solid(kind: ShapeKind, size: tuple[float, ...]) -> tuple[float, float]:
    """Volume, and moment about z at density 1, by the textbook."""
    if kind == "box":
        a, b, c = size
        return a * b * c, a * b * c * (a * a + b * b) / 12
    r = size[0]
    ball = 4 / 3 * math.pi * r**3
    if kind == "sphere":
        return ball, 0.4 * ball * r * r
    tube = math.pi * r * r * size[1]
    more = (ball, 0.4 * ball * r * r) if kind == "capsule" else (0.0, 0.0)
    return tube + more[0], tube * r * r / 2 + more[1]


def test_a_shell_of_triangles(tmp_path: Path) -> None:
    """A cube as a mesh has the shell of a box."""
    corners = [(x, y, z) for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)]
    faces = [0, 1, 3, 2, 4, 6, 7, 5, 0, 4, 5, 1, 2, 3, 7, 6, 0, 2, 6, 4, 1, 5, 7, 3]
    mesh = (
        f'def Mesh "c" {_APPLIED} {{ point3f[] points = {corners}\nint[] faceVertexIndices = '
        f"{faces}\nint[] faceVertexCounts = [4, 4, 4, 4, 4, 4]\n"
        'uniform token newton:massModel = "shell"; float newton:shellThickness = 0.5\n'
        "float physics:density = 4\n}"
    )
    path = tmp_path / "mesh.usda"
    path.write_text(stage(body=mesh, more="").replace("float physics:mass = 2;", "", 1))
    own = inertial(str(path))
    assert own.mass == pytest.approx(4 * 0.5 * 6.0)
    # a cube's surface of side a: I = m a² 5/18
    np.testing.assert_allclose(np.array(own.inertia)[[0, 3, 5]], own.mass * 5 / 18, rtol=1e-12)
    np.testing.assert_allclose(np.array(own.inertia)[[1, 2, 4]], 0.0, atol=1e-12)


# ---- couplings -----------------------------------------------------------------------------------

TARGET = "rel mjc:target = </r/j1>"
LEADER = "rel newton:mimicJoint = </r/j1>"


@pytest.mark.parametrize(
    "words",
    [
        f"uniform double mjc:coef0 = 0.15; uniform double mjc:coef1 = 2.5\n{TARGET}",
        f"uniform double mjc:coef0 = 0.15; uniform double mjc:coef1 = 2.5\n{TARGET}\n{LEADER}\n"
        "uniform float newton:mimicCoef0 = 0.15; uniform float newton:mimicCoef1 = 2.5",
        f"uniform float newton:mimicCoef0 = {math.degrees(0.15)}; "
        f"uniform float newton:mimicCoef1 = 2.5\n{LEADER}",
    ],
    ids=["MuJoCo's alone", "both in radians", "Newton's in degrees"],
)
def test_couplings_of_all_generations_of_converters(words: str) -> None:
    """q2 = 0.15 + 2.5 q1, as Newton 1.8 reads the first, and MuJoCo what the second was made of."""
    model = rm.load(stage(second=words))
    assert model.nv == 1
    positions = model.joint_positions(model.configuration({"j1": 0.2}))
    assert positions["j2"] == pytest.approx(0.65, abs=1e-6)


@pytest.mark.parametrize(
    ("creator", "offset"),
    [
        ("MuJoCo USD Converter v0.4.0", 0.15), ("MuJoCo USD Converter v0.4.1", math.radians(0.15)),
        ("URDF USD Converter v0.3.1", 0.15), ("URDF USD Converter v0.3.2", math.radians(0.15)),
        ("someone else", math.radians(0.15)),
    ],
)  # fmt: skip
def test_offsets_of_signed_layers_that_hold_radians(creator: str, offset: float) -> None:
    meta = f'customLayerData = {{ string creator = "{creator}" }}; metersPerUnit = 1'
    text = stage(second=f"uniform float newton:mimicCoef0 = 0.15\n{LEADER}", meta=meta)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mimic = hinge(text, "j2").mimic
    assert mimic is not None
    assert mimic.offset == pytest.approx(offset, rel=1e-6)
    assert any("in radians" in str(each.message) for each in caught) == (offset == 0.15)


def test_couplings_that_are_off_or_lead_nowhere() -> None:
    off = f"uniform double mjc:coef1 = 2\n{TARGET}\nbool newton:mimicEnabled = 0"
    assert rm.load(stage(second=off)).nv == 2
    with pytest.warns(DescriptionWarning, match="as some converters write"):
        assert rm.load(stage(second=f"{off}\nbool physics:jointEnabled = 0")).nv == 2
    alone = stage(second="uniform double mjc:coef1 = 2").replace(
        '"j2" (prepend apiSchemas = ["MjcJointAPI"', '"j2" (prepend apiSchemas = ["NewtonMimicAPI"'
    )
    with pytest.warns(DescriptionWarning, match="names no joint that it follows"):
        assert rm.load(alone).nv == 2


# ---- limits and references -----------------------------------------------------------------------


def span(name: str, low: float, high: float) -> str:
    return f"uniform double {name}:min = {low}; uniform double {name}:max = {high}"


FORCES = span("mjc:actuatorfrcrange", -6, 6)


@pytest.mark.parametrize(
    ("words", "effort"),
    [
        (FORCES, 6.0),
        (f'{FORCES}; uniform token mjc:actuatorfrclimited = "false"', math.inf),
        ("custom float urdf:limit:effort = 8", 8.0),
        (f"custom float urdf:limit:effort = 8; {FORCES}", 6.0),
        (f"{FORCES}; float drive:angular:physics:maxForce = 5", 5.0),
        (f"{FORCES}; float drive:angular:physics:maxForce = inf", 6.0),
        (span("mjc:actuatorfrcrange", 0, 0), math.inf),
    ],
)
def test_limits_of_efforts(words: str, effort: float) -> None:
    assert hinge(stage(first=words)).limits.effort == effort


def test_limits_of_efforts_that_differ_both_ways() -> None:
    """Of a joint, of a joint with a drive, and of an actuator by its force, control and gain."""
    uneven = span("mjc:actuatorfrcrange", -2, 6)
    for words, ends in (
        (uneven, (-2.0, 6.0)),
        (f"{uneven}; float drive:angular:physics:maxForce = 5", (-2.0, 5.0)),
        (f"{uneven}; float drive:angular:physics:maxForce = 1", (None, 1.0)),
    ):
        limits = hinge(stage(first=words)).limits
        assert (limits.effort_lower, limits.effort) == ends
    with pytest.warns(DescriptionWarning, match="the larger end is its limit of effort both ways"):
        limits = hinge(stage(first=span("mjc:actuatorfrcrange", 2, 6))).limits
    assert (limits.effort_lower, limits.effort) == (None, 6.0)
    control = f"{span('mjc:ctrlRange', -2, 1)}; uniform double[] mjc:gainPrm = [-4, 0]"
    assert motor(control) == {"effort": 8.0, "effort_lower": -4.0}
    assert motor(span("mjc:forceRange", 0, 3)) == {"effort": 3.0, "effort_lower": 0.0}


def test_limits_that_do_not_limit() -> None:
    scene = RADIANS.replace("{", "{ uniform bool mjc:compiler:autoLimits = 0;")
    assert hinge(stage(first=FORCES, more=scene)).limits.effort == math.inf
    wrong = f'{span("mjc:actuatorfrcrange", 6, -6)}; uniform token mjc:actuatorfrclimited = "true"'
    with pytest.raises(DescriptionError, match="give a range"):
        rm.load(stage(first=wrong))


def motor(actuator: str, kind: str = "MjcActuator", word: str = "mjc:target") -> object:
    prim = f'{RADIANS}\ndef {kind} "act" {{ rel {word} = </r/j1>\n{actuator}\n}}'
    (transmission,) = rm.load(stage(more=prim)).description.transmissions
    (only,) = transmission.actuators
    return only.motor and {
        k: getattr(only.motor, k)
        for k in ("effort", "effort_lower", "velocity", "stall_torque", "no_load_speed")
        if getattr(only.motor, k) not in (None, math.inf)
    }


@pytest.mark.parametrize(
    ("words", "effort"),
    [
        (span("mjc:forceRange", -3, 3), 3.0),
        (f'{span("mjc:forceRange", -3, 3)}; uniform token mjc:forceLimited = "false"', None),
        (f"{span('mjc:ctrlRange', -2, 2)}; uniform double[] mjc:gainPrm = [-4, 0]", 8.0),
        (f'{span("mjc:ctrlRange", -2, 2)}; uniform token mjc:ctrlLimited = "false"', None),
        (f'{span("mjc:ctrlRange", -2, 2)}; uniform token mjc:biasType = "affine"', None),
        (f"{span('mjc:ctrlRange', -2, 2)}; {span('mjc:forceRange', -1, 1)}", 1.0),
        (f'{span("mjc:actRange", -2, 2)}; uniform token mjc:dynType = "integrator"', 2.0),
        (f'{span("mjc:actRange", -2, 2)}; uniform token mjc:dynType = "filter"', 2.0),
        (f'{span("mjc:actRange", -2, 2)}; {span("mjc:ctrlRange", -1, 1)}; '
         'uniform token mjc:dynType = "filterexact"', 1.0),
    ],
)  # fmt: skip
def test_forces_of_mujocos_actuators(words: str, effort: float | None) -> None:
    assert motor(words) == (None if effort is None else {"effort": effort})


@pytest.mark.parametrize(
    ("words", "numbers"),
    [
        ("float newton:maxMotorEffort = 5; float newton:saturationEffort = 8; "
         "float newton:velocityLimit = 300",
         {"effort": 5.0, "stall_torque": 8.0, "no_load_speed": 300.0}),
        ("float newton:maxMotorEffort = 5; float newton:maxEffort = 4", {"effort": 4.0}),
        ("float newton:saturationEffort = 8", {"effort": 8.0}),
        ("float newton:maxMotorEffort = 5; float newton:velocityLimit = 30",
         {"effort": 5.0, "velocity": 30.0}),
        ("float newton:maxEffort = inf", None),
    ],
)  # fmt: skip
def test_motors_of_newtons_clamps(words: str, numbers: dict[str, float] | None) -> None:
    assert motor(words, "NewtonActuator", "newton:targets") == numbers


def test_efforts_by_position_and_negative_ones() -> None:
    table = "float[] newton:lookupPositions = [0, 1]; float[] newton:lookupEfforts = [2, 7]"
    with pytest.warns(DescriptionWarning, match="depends on the position"):
        clamped = motor(table, "NewtonActuator", "newton:targets")
    assert clamped == {"effort": 7.0}
    with pytest.raises(DescriptionError, match="not negative"):
        motor("float newton:maxEffort = -1", "NewtonActuator", "newton:targets")


def test_positions_count_from_where_the_stage_shows_the_joint() -> None:
    """MuJoCo's ref is what it calls that position; Newton 1.8 subtracts it as well."""
    limits = "float physics:lowerLimit = -57.29578; float physics:upperLimit = 57.29578"
    spring = "uniform double mjc:stiffness = 3; uniform double mjc:springref = 0.1"
    ref = "uniform double mjc:ref = 0.4"
    with pytest.warns(DescriptionWarning, match=r"mjc:ref is 0.4.*shifted"):
        model = rm.load(stage(first=f"{limits}\n{spring}\n{ref}"))
    own = model.description.joints[0].limits
    assert (own.lower, own.upper) == pytest.approx((-1.4, 0.6), abs=1e-7)
    for q, force in ((-0.3, 0.0), (0.0, -0.9)):
        assert rm.passive_force(model, [q, 0.0], [0.0, 0.0])[0] == pytest.approx(force, abs=1e-12)
    with pytest.warns(DescriptionWarning, match=r"mjc:ref is 0.4"):
        bare = rm.load(stage(first=f"uniform double mjc:stiffness = 3\n{ref}"))
    assert bare.description.joints[0].reference == -0.4  # MuJoCo's default rest is its zero
    with pytest.warns(DescriptionWarning, match="springdamper"):
        rm.load(stage(first="uniform double[] mjc:springdamper = [0.1, 1]"))


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("double mjc:compiler:setTotalMass = 14", "setTotalMass = 14"),
        ("double mjc:compiler:boundMass = 0.5", "boundMass = 0.5"),
        ("double mjc:compiler:boundInertia = 0.01", "boundInertia = 0.01"),
        ("bool mjc:compiler:balanceInertia = 1", "balanceInertia = true"),
        ('token mjc:compiler:inertiaFromGeom = "true"', "inertiaFromGeom = true"),
    ],
)
def test_inertias_that_a_compiler_would_change_are_named(words: str, named: str) -> None:
    """MuJoCo USD Converter writes masses before its compiler, and the setting beside them."""
    with pytest.warns(DescriptionWarning, match=f"{named}: MuJoCo's compiler changes masses"):
        model = rm.load(stage(more=f'def PhysicsScene "s" {{ uniform {words}\n}}'))
    assert [body.mass for body in model.bodies] == [2.0, 2.0]


def test_settings_of_a_compiler_that_change_no_inertia_are_not_named() -> None:
    words = (
        "uniform double mjc:compiler:setTotalMass = 0; uniform bool mjc:compiler:balanceInertia = 0"
        '\nuniform token mjc:compiler:inertiaFromGeom = "auto"'
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error", DescriptionWarning)
        rm.load(stage(more=f'def PhysicsScene "s" {{ {words}\n}}'))


def test_damping_in_the_words_of_both() -> None:
    """Of MuJoCo's and Newton's damping, MuJoCo's counts: one converter wrote both per radian."""
    both = "float newton:damping = 0.7; uniform double mjc:damping = 0.7"
    assert hinge(stage(first=both)).damping == 0.7
    newton = hinge(stage(first=f"float newton:damping = {0.7 * math.pi / 180}"))
    assert newton.damping == pytest.approx(0.7, rel=1e-6)


# ---- files ---------------------------------------------------------------------------------------


def test_layers_that_are_pointers_or_no_utf_8(tmp_path: Path) -> None:
    main = tmp_path / "main.usda"
    main.write_text(stage().replace("(defaultPrim", "(subLayers = [@./more.usda@]; defaultPrim"))
    pointer = LFS + b"/v1\noid sha256:0\nsize 1\n"
    (tmp_path / "more.usda").write_bytes(pointer)
    with pytest.raises(DescriptionError, match=r"the layer @./more.usda@ is a pointer of Git LFS"):
        rm.load(main)
    latin = "#usda 1.0\n# caf\xe9\n".encode("latin-1")
    (tmp_path / "more.usda").write_bytes(latin)
    with pytest.raises(DescriptionError, match="save the file as UTF-8") as caught:
        rm.load(main)
    assert (Path(caught.value.file).name, caught.value.line) == ("more.usda", 2)
    main.write_bytes(latin)
    with pytest.raises(DescriptionError, match="save the file as UTF-8") as caught:
        rm.load(main)
    assert caught.value.line == 2
    with pytest.raises(DescriptionError, match="surrogate pair"):
        rm.load(stage().replace('"j2"', '"j\ud800"'))


@pytest.mark.parametrize("ending", ["usda", "usd", "usdz"])
def test_what_cannot_be_written_is_an_error_of_the_system(ending: str, tmp_path: Path) -> None:
    model = rm.robots.load("four_bar")
    with pytest.raises(OSError, match="too long"):
        rm.write_usd(model, tmp_path / f"{'x' * 250}.{ending}")
    assert not list(tmp_path.iterdir())
