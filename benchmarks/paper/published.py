"""What the paper says: Chignoli, Adrian, Kim and Wensing, recursive dynamics with kinematic loops.

The percentages are those of its tables II, III and IV. Its figures' numbers are not in its text;
the exponents are fitted to the times behind figures 11 and 13 that its authors keep with their
library (generalized_rbda, Benchmarking/Legacy/data), of whose files on robots the percentages are.
"""

from __future__ import annotations

from collections.abc import Mapping

SYSTEMS = ("GT", "PBT", "Mini Cheetah", "MIT Humanoid", "Tello", "JVRC-1")

TABLES: Mapping[str, str] = {"rnea": "II", "aba": "III", "efpa": "IV"}

PERCENT: Mapping[tuple[str, str], tuple[float, ...]] = {
    ("rnea", "approximate"): (-40.3, -36.2, -41.0, -42.0, -59.6, -37.7),
    ("rnea", "projection"): (38.0, 37.8, 36.7, 35.9, 22.4, 36.6),
    ("aba", "approximate"): (-34.1, -34.6, -35.3, -38.6, -49.4, -38.4),
    ("aba", "projection"): (86.8, 73.5, 21.0, 32.5, 22.2, 87.3),
    ("aba", "lagrange"): (133.1, 119.8, 76.3, 106.2, 82.7, 212.8),
    ("efpa", "approximate"): (-35.7, -52.1, -28.6, -37.4, -51.4, -22.54),
    ("efpa", "projection"): (51.8, 6.3, 19.0, 23.2, 7.80, 107.4),
}
"""Time of a method against the cluster algorithm's, by system: + is slower."""

NANOSECONDS: Mapping[str, tuple[float, ...]] = {
    "rnea": (12898, 12295, 14083, 20277, 29130, 35842),
    "aba": (29692, 31415, 34317, 51365, 60781, 86077),
    "efpa": (32789, 44994, 30064, 48198, 63004, 73260),
}
"""The cluster algorithms' times a state of the authors' C++, from the same files, by system."""

EXPONENTS: Mapping[tuple[str, str, str], float] = {
    ("aba", "geared", "cluster"): 0.98,
    ("aba", "geared", "projection"): 1.65,
    ("aba", "geared", "lagrange"): 1.69,
    ("aba", "geared", "approximate"): 1.00,
    ("aba", "belt", "cluster"): 0.98,
    ("aba", "belt", "projection"): 1.69,
    ("aba", "belt", "lagrange"): 1.71,
    ("aba", "belt", "approximate"): 0.95,
    ("efpa", "geared", "cluster"): 1.11,
    ("efpa", "geared", "projection"): 1.82,
    ("efpa", "geared", "approximate"): 1.05,
    ("efpa", "belt", "cluster"): 0.98,
    ("efpa", "belt", "projection"): 1.70,
    ("efpa", "belt", "approximate"): 0.92,
}
"""Growth of the authors' times with the number of links, 12 to 24 links: algorithm, chain, method.

Of 24 links the exponents of methods that are cubic in the end are still below two.
"""
