"""Where a robot can be: paths and ranges of joints, curves of linkages, random configurations."""

from robomodel.reach import drawing

__all__ = ["drawing"]
