"""Exact dynamics of a model: the functions users call, on NumPy arrays with batch axes.

Each algorithm stands once, on scalars of any kind, in a module of its own; here its arguments are
checked and handed to a compiled kernel, or to the NumPy path, which runs the same source on arrays.
Conventions: q (..., nq), v, a and tau (..., nv); SI units; spatial vectors angular first; leading
axes broadcast. ``backend``: "compiled" (kernels are made at the first call on a model and kept on
disk; robots of more than 200 bodies, and machines without LLVM, are served by NumPy), or
"numpy". ``check``: refuse what is no state, as :meth:`robomodel.Model.check` does (open loops,
quaternions that are not of unit length, numbers that are not finite), instead of computing with it.
"""

from __future__ import annotations

from robomodel.dynamics.functions import actuators as _actuators
from robomodel.dynamics.functions import contact as _contact
from robomodel.dynamics.functions import derivatives as _derivatives
from robomodel.dynamics.functions import frames as _frames
from robomodel.dynamics.functions import motion as _motion
from robomodel.dynamics.functions import quantities as _quantities
from robomodel.dynamics.functions.actuators import *
from robomodel.dynamics.functions.contact import *
from robomodel.dynamics.functions.derivatives import *
from robomodel.dynamics.functions.frames import *
from robomodel.dynamics.functions.motion import *
from robomodel.dynamics.functions.quantities import *

# Where type checkers and the reference see no list, they follow the imports.
_parts = (_actuators, _contact, _derivatives, _frames, _motion, _quantities)
globals()["__all__"] = [name for part in _parts for name in part.__all__]
