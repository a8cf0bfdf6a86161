"""The tests on every supported Python that the machine has: ``nox``, or ``nox -s tests-3.12``."""

import nox

nox.options.error_on_missing_interpreters = False


@nox.session(python=["3.11", "3.12", "3.13", "3.14"])
def tests(session: nox.Session) -> None:
    """Install the package with what its tests need, and run the quick ones."""
    session.install(".[test]")
    session.run("python", "-m", "pytest", *session.posargs)


@nox.session(python="3.11")
def lowest(session: nox.Session) -> None:
    """The quick tests with every dependency at the lowest version that pyproject.toml allows."""
    project = nox.project.load_toml("pyproject.toml")["project"]
    session.install(".[test]", *(each.replace(">=", "==") for each in project["dependencies"]))
    session.run("python", "-m", "pytest", *session.posargs)
