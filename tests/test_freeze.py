"""Public names, results and operation counts, against benchmarks/freeze.json on small robots."""

from benchmarks.freeze import main


def test_the_frozen_table_holds():
    assert main(["crank_rocker", "mit_humanoid_leg"]) == 0
