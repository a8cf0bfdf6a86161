"""The words of robot files: XML, and the elements and attributes that several formats share.

In reading order: :mod:`~robomodel.vocabulary.xml` parses text safely and names file and line;
:mod:`~robomodel.vocabulary.markup` changes it in place; :mod:`~robomodel.vocabulary.schema`
declares each element with numbers once, for reading, writing and documentation. Then by subject,
with the words of Drake, ros_control and this package in URDF and SDF: ``frames``, ``springs``,
``motors``, ``rotors``, ``inertias``. :mod:`~robomodel.vocabulary.checks` looks at a description
whatever its format.
"""
