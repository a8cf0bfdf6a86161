"""Joints and closed loops of a cluster: its graph, its constraints and how they are closed.

``graph`` has the spanning tree and the clusters, ``tree_constraints`` which joints the loops,
couplings and mimics relate, ``internal_frames`` the frames in which joints move along coordinate
axes. ``joints`` has S and q̇ of a joint; ``constraints`` K, G and g over scalars of any kind;
``couplings`` eliminates linear ones; ``closure`` is the same on arrays, with Newton's method that
closes loops; ``continuation`` and ``walks`` follow them, up to ``roots``; ``springs`` between
links.
"""
