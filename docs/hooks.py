"""What pages need beyond Markdown: MathML, links for docstrings' roles."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

from latex2mathml.converter import convert

_ROLE = re.compile(r":(?:func|class|meth|mod|attr|data|exc):<code>~?([\w.]+)</code>")
_MATH = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)


def on_page_content(html: str, **_: Any) -> str:
    """``:func:`rnea``` becomes code, linked where the reference has it; formulas become MathML."""
    html = _ROLE.sub(_link, html)
    return _MATH.sub(_formula, html)


def _link(found: re.Match[str]) -> str:
    path = found[1]
    name = path.rsplit(".", 1)[-1]
    target = path if path.startswith("robomodel") else f"robomodel.{path}"
    return f'<autoref optional identifier="{target}"><code>{name}</code></autoref>'


def _formula(found: re.Match[str]) -> str:
    return convert(unescape(found[3]), display="inline" if found[2] == "(" else "block")
