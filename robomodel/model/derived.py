"""What is made of a model once, and kept with it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from robomodel.model.model import Model

F = TypeVar("F", bound=Callable[..., Any])


def cached_on_model(make: F) -> F:
    """A function of a model, and of further hashable arguments, that is run once for each.

    Its results are in :attr:`Model.derived` by (the function, the further arguments …).
    """

    @wraps(make)
    def kept(model: Model, *arguments: Any, **named: Any) -> Any:
        key = (kept, *arguments, *named.items())
        if key not in model.derived:
            model.derived[key] = make(model, *arguments, **named)
        return model.derived[key]

    return cast(F, kept)
