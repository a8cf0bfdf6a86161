"""The robot that a step moves: the forces on it, and its loops, in tangent coordinates."""

from __future__ import annotations

from dataclasses import dataclass

from robomodel.dynamics.actuators.maps import saturated
from robomodel.dynamics.kinematics import frames
from robomodel.dynamics.kinematics.state import Configuration, Forces
from robomodel.dynamics.recursions.aba import aba
from robomodel.dynamics.recursions.passive import passive_force
from robomodel.dynamics.recursions.reduced import reduced
from robomodel.kernels.function import TracedFunction
from robomodel.model.configurations.functions import rates
from robomodel.model.derived import cached_on_model
from robomodel.model.model import Model
from robomodel.motion import servo as servos
from robomodel.motion import tangent
from robomodel.motion.integrator_functions import function
from robomodel.motion.servo import Servo
from robomodel.motion.tangent import in_tangents, linkages
from robomodel.scalars import Scalar, Vector, added

PLANT_CLOSINGS = 2  # Newton steps that close loops after a step


@dataclass(frozen=True, slots=True)
class Moving:
    """A state in tangent coordinates: q, z, the bases of the linkages."""

    q: Vector
    z: Vector
    bases: Vector


@dataclass(frozen=True)
class Plant:
    """A robot under forces, as the schemes of steps see it; scalars of any kind.

    Wrenches act on ``links``; motors limit forces if they are to ``saturate``; ``servo`` is the
    place of PD loops, whose gains and targets follow tau. Loops are closed by ``closing`` Newton
    steps, ``careful`` near change points: at each stage, and by more of them.
    """

    model: Model
    links: tuple[str, ...] = ()
    passive: bool = True
    saturate: bool = False
    servo: Servo | None = None
    closing: int = PLANT_CLOSINGS
    careful: bool = False

    @property
    def commands(self) -> int:
        """Length of tau, with gains and targets."""
        return self.model.nv + 3 * servos.size(self.model, self.servo)

    def chart(self, bases: Vector, *, refined: bool = False) -> Model:
        """The model in tangent coordinates with the fewest operations of forward dynamics."""
        return in_tangents(reduced(self.model, "aba"), bases, refined=refined)

    # ---- forces

    def demanded(self, q: Vector, v: Vector, tau: Vector) -> Vector:
        """Forces on the independent joints: tau and those of PD loops, within motors' limits."""
        if self.servo is not None:
            tau = servos.servo_forces(self.model, self.servo, q, v, tau)
        return saturated(self.model, q, v, tau)[0] if self.saturate else tau

    def acting(self, here: Model, q: Vector, v: Vector, tau: Vector) -> list[Scalar]:
        """Forces in tangent coordinates, from those on the independent joints."""
        return tangent.tangent_forces(self.model, Configuration(here, q), self.demanded(q, v, tau))

    def wrenches(self, numbers: Vector) -> Forces:
        """Wrenches on bodies, from numbers of the wrenches on links."""
        by_link = {link: numbers[6 * n : 6 * n + 6] for n, link in enumerate(self.links)}
        return frames.body_wrenches(self.model, by_link)

    def accelerations(
        self, here: Model, q: Vector, v: Vector, z: Vector, tau: Vector, wrenches: Vector
    ) -> list[Scalar]:
        """ż under forces on the independent joints, whose velocities limit motors."""
        acting = self.acting(here, q, v, tau)
        if self.passive:
            acting = added(acting, passive_force(here, q, z))
        return aba(here, q, z, acting, self.wrenches(wrenches))

    def velocities(self, here: Model, q: Vector, z: Vector) -> list[Scalar]:
        """v of the independent joints within a step."""
        v = list(z)
        state = Configuration(here, q)
        for each in linkages(self.model):
            cluster = self.model.clusters[each.index]
            speeds = state.spanning(cluster, z[cluster.v])
            v[cluster.v] = [speeds[c] for c in cluster.columns]
        return v

    # ---- loops

    def closed(self, here: Model, q: Vector, more: int = 0) -> list[Scalar]:
        """q with loops closed, by ``more`` Newton steps than usual."""
        times = 8 if self.careful else self.closing  # careful: near change points
        return tangent.closed(here, q, times + more, careful=self.careful)


@cached_on_model
def flow(model: Model, links: tuple[str, ...] = (), *, passive: bool = True) -> TracedFunction:
    """(q, z and bases; tau; wrenches on the links) → q̇ and ż: the equations of motion."""
    plant = Plant(model, links, passive=passive)
    nq, nv = model.nq, model.nv

    def build(x: Vector, tau: Vector, wrenches: Vector = ()) -> list[Scalar]:
        here, q, z = plant.chart(x[nq + nv :], refined=True), x[:nq], x[nq : nq + nv]
        return [*rates(here, q, z), *plant.accelerations(here, q, (), z, tau, wrenches)]

    more = (6 * len(links),) if links else ()
    sizes = (nq + nv + tangent.numbers(model), nv, *more, nq + nv)
    return function(model, f"flow {links!r} {passive}", sizes, build)
