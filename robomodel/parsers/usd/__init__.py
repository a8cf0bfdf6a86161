"""USD: robots as Isaac Sim, Newton and MuJoCo's converter write them, read and written.

``docs/usd.md`` describes every attribute.
"""

from robomodel.parsers.usd.robot import read_usd
from robomodel.parsers.usd.writer import to_usd

__all__ = ["read_usd", "to_usd"]
