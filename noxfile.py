"""The tests on every supported Python that the machine has: ``nox``, or ``nox -s tests-3.12``."""

import nox

nox.options.error_on_missing_interpreters = False


@nox.session(python=["3.11", "3.12", "3.13", "3.14"])
def tests(session: nox.Session) -> None:
    """Install the package with what its tests need, and run the quick ones."""
    session.install(".[test]")
    session.run("python", "-m", "pytest", *session.posargs)


@nox.session(python="3.11", venv_backend="uv")
def lowest(session: nox.Session) -> None:
    """The quick tests with every dependency and extra at the lowest version that is allowed."""
    session.install(".[test]", "--resolution=lowest-direct")
    session.run("python", "-m", "pytest", *session.posargs)
