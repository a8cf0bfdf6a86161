"""Clusters: operators and recursions of robots with kinematic loops, in the paper's notation (002).

After Chignoli, Adrian, Kim and Wensing, "Recursive Rigid-Body Dynamics Algorithms for Systems with
Kinematic Loops". :func:`operators` gives the matrices of every cluster at a state; :func:`rnea`,
:func:`aba` and :func:`efpa` are assembled from them as in the paper; :func:`gauss` is Gauss's
principle, from which the paper derives the articulated inertia.
"""

from robomodel.papers.clusters.cluster_operators import ClusterOperators, operators
from robomodel.papers.clusters.recursions import (
    CostToGo,
    GaussPrinciple,
    aba,
    approximate_aba,
    approximate_efpa,
    approximate_rnea,
    efpa,
    gauss,
    propagation,
    pv_osim,
    rnea,
)

__all__ = [
    "ClusterOperators",
    "CostToGo",
    "GaussPrinciple",
    "aba",
    "approximate_aba",
    "approximate_efpa",
    "approximate_rnea",
    "efpa",
    "gauss",
    "operators",
    "propagation",
    "pv_osim",
    "rnea",
]
