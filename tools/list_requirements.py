"""Print the requirements of one kind (build, dev) from pyproject.toml, one a line, for pip."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"


def main() -> int:
    kind = sys.argv[1]
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))
    if kind == "build":
        names = [*project["build-system"]["requires"], "cmake>=3.20", "ninja>=1.11"]
    else:
        names = project["project"]["optional-dependencies"][kind]
    print("\n".join(names))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
