"""Install the project into an empty environment as a user would, and check what that leaves: size, and no torch."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MAX_BYTES = 250 * 1000 * 1000


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="octavo-install-") as folder:
        env = Path(folder) / "venv"
        venv.create(env, with_pip=True)
        python = env / "bin" / "python"
        subprocess.run([python, "-m", "pip", "install", "--quiet", str(ROOT)], check=True)
        size = sum(f.lstat().st_size for f in env.rglob("*") if f.is_file() and not f.is_symlink())
        listed = subprocess.run([python, "-m", "pip", "list"], capture_output=True, text=True, check=True).stdout
        version = subprocess.run([env / "bin" / "octavo", "--version"], capture_output=True, text=True, check=True)
    names = {line.split()[0].lower() for line in listed.splitlines()[2:] if line.strip()}
    print(f"{version.stdout.strip()}: {size / 1e6:.0f} MB in all, {len(names)} packages")
    if size > MAX_BYTES:
        print(f"more than {MAX_BYTES / 1e6:.0f} MB", file=sys.stderr)
        return 1
    if names & {"torch", "transformers"}:
        print("torch or transformers was installed", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
