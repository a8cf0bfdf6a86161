#!/usr/bin/env bash
# pink 4.4.0 and mink 1.3.0 have no class EqualityConstraint. Closed loops are tasks: mink has
# EqualityConstraintTask (of MuJoCo's equalities), pink JointCouplingTask (of linear couplings only).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet pin-pink==4.4.0 mink==1.3.0
"$work/venv/bin/python" - <<'PY'
from importlib.metadata import version

import mink
import pink
import pink.tasks

print("pink", version("pin-pink"), "mink", version("mink"))
for package in (pink, pink.tasks, mink):
    assert not hasattr(package, "EqualityConstraint")
assert hasattr(mink, "EqualityConstraintTask") and hasattr(pink.tasks, "JointCouplingTask")
assert not any("losure" in name or "qualityC" in name for name in dir(pink.tasks))
PY
