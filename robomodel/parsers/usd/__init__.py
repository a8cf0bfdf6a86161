"""USD: robots as Isaac Sim, Newton and MuJoCo's converter write them, read and written.

``robot`` reads, ``writer`` writes, ``stages`` opens files; they are imported when they are needed.
``docs/usd.md`` describes every attribute.
"""
