"""Motions of one robot in time: integrators, time stepping with contact, what is recorded."""
