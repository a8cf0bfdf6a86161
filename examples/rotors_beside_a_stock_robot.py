"""Rotors beside a stock robot: Solo12 as pip delivers it, and what its twelve rotors change.

Needs the stock file: ``pip install example-robot-data``. The rotors are in ``solo12_rotors.xml``.
"""

from __future__ import annotations

from importlib.metadata import files
from pathlib import Path

import numpy as np

import robomodel as rm

ROTORS = Path(__file__).with_name("solo12_rotors.xml")


def stock_file() -> Path:
    """Where the package keeps Solo12's URDF."""
    paths = files("example-robot-data") or []
    return Path(next(path for path in paths if path.name == "solo12.urdf").locate())


def main() -> None:
    """Print the diagonal of the mass matrix without and with rotors, standing."""
    plain = rm.load(stock_file(), floating_base=True)
    geared = rm.load(stock_file(), extend=ROTORS, floating_base=True)
    bent = {"HAA": 0.0, "HFE": 0.8, "KFE": -1.6}
    stance = {f"{leg}_{name}": x for leg in ("FL", "FR", "HL", "HR") for name, x in bent.items()}
    without, having = (
        np.diag(rm.crba(model, model.configuration(stance))) for model in (plain, geared)
    )
    print(f"{'':14}{'stock':>12}{'with rotors':>14}{'difference':>14}    kg, kg m²")
    for name, a, b in zip(plain.dof_names, without, having, strict=True):
        print(f"{name:14}{a:12.6f}{b:14.6f}{b - a:14.3e}{100 * (b - a) / a:8.1f} %")
    same = plain.dof_names == geared.dof_names
    print(f"{len(geared.bodies)} bodies in place of {len(plain.bodies)}, coordinates alike: {same}")


if __name__ == "__main__":
    main()
