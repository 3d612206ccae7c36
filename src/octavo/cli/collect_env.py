"""`octavo collect-env`: versions and hardware, as a bug report needs them. Nothing leaves the machine."""

from __future__ import annotations

import argparse
import json
import os
import platform
from pathlib import Path

PACKAGES = ("numpy", "tokenizers", "msgspec", "jinja2", "huggingface-hub", "pyyaml", "rich", "torch")
ENVIRONMENT = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "HF_HOME", "HF_HUB_OFFLINE")
CPU_FEATURES = ("avx2", "avx512", "avx512_bf16", "avx512_vnni", "amx_bf16")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    facts = collect()
    print(json.dumps(facts, indent=2) if args.json else format_facts(facts))
    return 0


def collect(root: Path = Path("/")) -> dict[str, dict[str, str]]:
    """Section -> fact -> text. A fact that cannot be read says why. `root` stands for / in tests."""
    return {
        "versions": _versions(),
        "processor": _processor(root),
        "memory": _memory(root),
        "environment": _environment(),
    }


def format_facts(facts: dict[str, dict[str, str]]) -> str:
    """Sections with one fact a line."""
    lines: list[str] = []
    for section, entries in facts.items():
        lines.append(section)
        width = max((len(name) for name in entries), default=0)
        lines += [f"  {name:<{width}}  {text}" for name, text in entries.items()] or ["  (nothing set)"]
    return "\n".join(lines)


def _versions() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    from octavo import __version__

    found = {
        "octavo": __version__,
        "python": platform.python_version(),
        "system": platform.platform(),
        "libc": " ".join(platform.libc_ver()),
    }
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def _processor(root: Path) -> dict[str, str]:
    from octavo.base.errors import OctavoError
    from octavo.config.machine import read_machine

    facts = {"model": _field(root / "proc/cpuinfo", "model name"), "machine": platform.machine()}
    facts["cores of the machine"] = str(os.cpu_count())
    try:
        facts["cores usable"] = str(read_machine(isa_levels=("scalar",), root=root).num_cores)
    except OctavoError as error:
        facts["cores usable"] = f"unknown: {error}"
    try:
        from octavo import _native
    except ImportError as error:
        facts["features"] = f"unknown: the native module does not load: {error}"
    else:
        features = _native.detect_cpu_features()
        facts["features"] = " ".join(name for name in CPU_FEATURES if getattr(features, name)) or "none"
    return facts


def _memory(root: Path) -> dict[str, str]:
    from octavo.base.errors import OctavoError
    from octavo.base.units import format_bytes
    from octavo.config.machine import read_machine

    try:
        machine = read_machine(isa_levels=("scalar",), root=root)
        facts = {
            "total": format_bytes(machine.memory_total_bytes),
            "available": format_bytes(machine.memory_available_bytes),
        }
    except OctavoError as error:
        facts = {"total": f"unknown: {error}"}
    facts["transparent huge pages"] = _first_line(root / "sys/kernel/mm/transparent_hugepage/enabled")
    facts["reserved huge pages"] = _field(root / "proc/meminfo", "HugePages_Total")
    facts["swap"] = _field(root / "proc/meminfo", "SwapTotal")
    return facts


def _environment() -> dict[str, str]:
    """Variables that change what the engine does; secrets are named, never shown."""
    from octavo.config.schema import all_options

    secret = {option.env_name for option in all_options().values() if option.declaration.secret}
    names = sorted(name for name in os.environ if name.startswith("OCTAVO_") or name in ENVIRONMENT)
    return {name: "(set)" if name in secret else os.environ[name] for name in names}


def _field(path: Path, name: str) -> str:
    """The first `name: value` of a file under /proc."""
    try:
        with path.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                key, _, value = line.partition(":")
                if key.strip() == name:
                    return value.strip()
    except OSError as error:
        return f"unknown: {error.strerror}"
    return "unknown"


def _first_line(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError as error:
        return f"unknown: {error.strerror}"
