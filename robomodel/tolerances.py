"""Tolerances: the sizes below which numbers count as rounding errors, and why.

Floats have 16 digits. A few products and sums leave errors of :data:`ROUNDING`; loop closing, a
factorisation or a sum over a robot leave :data:`NOTHING`. Ranks of matrices of a robot's geometry
are decided by :data:`RANK` and :data:`SINGULAR`: zeros are below 1e-12, and small singular values
of a real mechanism above 1e-7. Files have six to nine digits: :data:`SAME`, :data:`WRITTEN`,
:data:`PARALLEL`. Tolerances of one method (its convergence, its step errors) are in its module.
"""

TINY = 1e-300
"""Divisor, or argument of a logarithm, in place of a zero."""

ROUNDING = 1e-13
"""Rounding error of a sum, a sine, an entry or a pivot, relative to its terms."""

NOTHING = 1e-12
"""Error after several steps, relative to the largest number, or in rad and sizes of the robot."""

RANK = 1e-10
"""Relative size below which singular values, or rows of length 1, of exact numbers are zero."""

SINGULAR = 1e-9
"""Relative size below which singular values, pivots, or sines between columns are zero, if the
coefficients come from closed loops or from a file's numbers."""

SAME = 1e-9
"""Relative difference, or m, rad and sines, of numbers that are equal up to rounding, also in a
file's last digit."""

WRITTEN = 1e-6
"""The same of numbers that files write with six or seven digits: lengths, moments, unit vectors."""

PARALLEL = 1e-6
"""Largest sine between parallel axes, and cosine between perpendicular ones: files rotate them by
rpy of six digits."""

MOVES = 1e-6
"""Largest rate of a joint that does not move, per unit rate of others (rad, or m in sizes of the
robot), or singular value of such rates: rounding leaves 1e-9 in exact motions, and gears turn
joints by more than a thousandth."""

DIFFERENCE = 1e-6
"""Step of one-sided differences of numbers near 1: near the square root of the rounding error."""

WITHIN = 1e-9
"""Accepted violation of a limit [rad, m, and per second]: positions set at a limit exceed it by
rounding."""

CONVERGED = 1e-10
"""Size [rad, m] of the last Newton step of a converged iteration, whose error is its square."""

CLOSED = 1e-10
"""Largest gap of a closed loop [m, or sine of an angle]; Newton's method reaches 1e-15."""

EXACTLY_CLOSED = 1e-12
"""The same for loops that a method closes itself, to convergence."""

NEARLY_CLOSED = 1e-7
"""The same for guesses and typed configurations, which are closed again."""

OPEN = 1e-6
"""The same from which on users are warned, or loops are closed again: results have such errors."""

HUGE = 1e300
"""Numbers beyond count as not finite: sums of their squares overflow."""

NO_LIMIT = 1e10
"""Limits of position or force beyond are infinite: MuJoCo's largest number; some write more."""
