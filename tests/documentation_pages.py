"""The documentation's pages, and the robot files that those about formats show."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def robot_files(*pages: str) -> list[str]:
    """The XML examples of the pages that match, in order; patterns are relative to ``docs``."""
    found = [page for pattern in pages for page in sorted((ROOT / "docs").glob(pattern))]
    texts = (page.read_text(encoding="utf-8") for page in found)
    return [each for text in texts for each in re.findall(r"```xml\n(.*?)```", text, re.DOTALL)]


URDF_PAGES = ("format.md", "formats/*.md")
