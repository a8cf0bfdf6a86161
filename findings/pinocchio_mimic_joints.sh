#!/usr/bin/env bash
# Pinocchio 4.1.0 with mimic=True: three hinges in a row, the second follows the first twice as fast.
# crba gives the right mass matrix at the first call on a Data and another one at the second;
# computeCoriolisMatrix times the velocity is not the bias force that rnea gives; aba, its
# derivatives, the inverse mass matrix and the kinetic energy raise "does not support Joint Mimic".
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet pin==4.1.0 numpy==2.4.6
"$work/venv/bin/python" - <<'PY'
import numpy as np
import pinocchio as pin


def link(name):
    return (f'<link name="{name}"><inertial><origin xyz="0.1 0 0"/><mass value="1"/><inertia ixx="0.01" '
            'iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>')


def joint(name, parent, child, x, more=""):
    return (f'<joint name="{name}" type="revolute"><parent link="{parent}"/><child link="{child}"/>'
            f'<origin xyz="{x} 0 0"/><axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="5" '
            f'velocity="3"/>{more}</joint>')


urdf = ('<robot name="r"><link name="b"/>' + link("l") + link("k") + link("m") + joint("j", "b", "l", 0)
        + joint("k", "l", "k", 0.2, '<mimic joint="j" multiplier="2" offset="0.3"/>')
        + joint("m", "k", "m", 0.2) + "</robot>")
model = pin.buildModelFromXML(urdf, mimic=True)
q, v = np.array([0.4, 0.2]), np.array([1.0, 0.5])
print("pin", pin.__version__, "nv", model.nv)


def whole(upper):
    return np.triu(upper) + np.triu(upper, 1).T


data = model.createData()
first, second = whole(pin.crba(model, data, q)), whole(pin.crba(model, data, q))
still = pin.rnea(model, model.createData(), q, 0 * v, 0 * v)
by_rnea = np.stack([pin.rnea(model, model.createData(), q, 0 * v, e) - still for e in np.eye(2)], 1)
print("crba, first call:", first.tolist(), "second:", second.tolist(), "by rnea:", by_rnea.tolist())
assert np.allclose(first, by_rnea) and not np.allclose(second, by_rnea, rtol=0.1)
bias = pin.nonLinearEffects(model, model.createData(), q, v) - still
coriolis = pin.computeCoriolisMatrix(model, model.createData(), q, v) @ v
print("C v:", coriolis, "by rnea:", bias)
assert not np.allclose(coriolis, bias, rtol=0.1)
for name, arguments in (("aba", (q, v, v)), ("computeRNEADerivatives", (q, v, v)),
                        ("computeMinverse", (q,)), ("computeKineticEnergy", (q, v))):
    try:
        getattr(pin, name)(model, model.createData(), *arguments)
    except RuntimeError as error:
        assert "Mimic" in str(error)
        print(name, "raises:", str(error).strip().splitlines()[-1])
    else:
        raise SystemExit(f"{name} takes mimic joints now")
PY
