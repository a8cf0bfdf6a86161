"""Tolerances: below which size a number counts as rounding, and why.

Floats have 16 digits. A few products and sums leave :data:`ROUNDING`; what has gone through the
closing of a loop, a factorisation or a sum over a robot is as good as :data:`NOTHING`. Matrices of
a robot's geometry have ranks that :data:`RANK` and :data:`SINGULAR` decide: true zeros are below
1e-12, and small singular values of a real mechanism above 1e-7. Files have six to nine digits:
:data:`SAME`, :data:`WRITTEN`, :data:`PARALLEL`. Tolerances of one method (where its iteration
ends, what a step may miss) stand where the method is.
"""

TINY = 1e-300
"""Divisor, or argument of a logarithm, in the place of a zero."""

ROUNDING = 1e-13
"""Share of the terms of a sum that their rounding leaves: of a sine, an entry, a pivot."""

NOTHING = 1e-12
"""Share of the largest, or rad and lengths in sizes of the robot, that several steps leave."""

RANK = 1e-10
"""Singular values, or rows of length 1, below this share are zero, of exact coefficients."""

SINGULAR = 1e-9
"""Singular values, pivots, or sines between columns below this share are zero, where coefficients
come of loops that were closed, or of a file's numbers."""

SAME = 1e-9
"""Relative difference, or m, rad and sines, of numbers that are equal but for rounding, of a
file's last digit too."""

WRITTEN = 1e-6
"""The same of numbers that files write with six or seven digits: lengths, moments, unit vectors."""

PARALLEL = 1e-6
"""Sine of the angle up to which axes are parallel, or cosine of that up to which they are
perpendicular: files turn them by rpy of six digits."""

MOVES = 1e-6
"""Rate of a joint for unit rate of others (rad, or m in sizes of the robot), or singular value of
such rates, up to which it does not move: of exact motions rounding leaves 1e-9, and gears turn
joints by more than a thousandth."""

DIFFERENCE = 1e-6
"""Step of one-sided differences, of numbers near 1: near the root of rounding."""

WITHIN = 1e-9
"""rad, m, and these a second: so far beyond a limit counts as within, as positions that were set
at a limit are by rounding."""

CONVERGED = 1e-10
"""[rad, m] of the last step of Newton's, where an iteration has converged: the error is its
square."""

CLOSED = 1e-10
"""m, or sine of an angle: a smaller gap of a loop is closed; Newton's steps end at 1e-15."""

EXACTLY_CLOSED = 1e-12
"""The same of loops that a method closes itself, to the end."""

NEARLY_CLOSED = 1e-7
"""The same of guesses and typed configurations, which are closed anew."""

OPEN = 1e-6
"""The same that users are warned of, or that is closed anew: results are wrong by as much."""

HUGE = 1e300
"""What is beyond is no number: sums of squares that overflow."""

NO_LIMIT = 1e10
"""A limit of position or force beyond is none: MuJoCo's largest number; exporters write more."""
