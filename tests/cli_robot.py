"""A robot with something of everything that the command line shows."""

INERTIAL = (
    '<inertial><mass value="2"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
    "</inertial>"
)


def link(name):
    return f'<link name="{name}">{INERTIAL}</link>\n'


def joint(name, kind, parent, child, inner=""):
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f"{inner}</joint>\n"
    )


# a bit of everything; the axis on line 6 is not of unit length
MIXED = (
    '<robot name="m[ix]">\n'
    + "".join(link(name) for name in ("base", "a", "b", "c"))
    + joint("ja", "continuous", "base", "a",
            '<axis xyz="0 0 2"/><dynamics damping="0.1" friction="0.2"/>')
    + joint("jb", "continuous", "base", "b",
            '<axis xyz="0 0 1"/><mimic joint="ja" multiplier="-2" offset="0.1"/>')
    + joint("jc", "spherical", "a", "c")
    + '<transmission name="drive"><type>Simple</type><joint name="ja">'
    "<mechanicalReduction>2</mechanicalReduction></joint>"
    '<actuator name="motor"/></transmission>\n'
    + "</robot>\n"
)  # fmt: skip
