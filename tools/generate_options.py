"""Write docs/options.md from the schema. `--check` only says whether the committed page is current."""

from __future__ import annotations

import sys
from pathlib import Path

from octavo.config.option import Option
from octavo.config.schema import GROUP_TITLES, all_options
from octavo.config.values import describe_values
from octavo.config.vllm_names import NOT_HERE

PAGE = Path(__file__).resolve().parent.parent / "docs" / "options.md"

INTRODUCTION = """\
# Options

Made by `tools/generate_options.py` from `src/octavo/config/schema.py`; do not edit by hand.

An option is given as a flag (`--max-model-len 8k`; `-` and `_` are the same), as a keyword of `LLM(...)`
(`max_model_len=8192`), as a line of a file for `--config` (`max_model_len: 8k`) or in the environment
(`OCTAVO_MAX_MODEL_LEN=8k`). Flags and keywords win over the environment, the environment over the file, the file over
the defaults.

A file for `--config` looks like this, and `octavo serve --config octavo.yaml` reads it:

```yaml
model: smollm2-135m-instruct
max_model_len: 4K
max_num_seqs: 16
kv_cache_memory_bytes: 2G
```

Counts may be written `8192`, `8k` (8,000) or `8K` (8,192), sizes `4G`, `512M` or in bytes. A switch `--x` has `--no-x`.
`auto` is replaced once, when the model and the machine are known; `--print-config` prints the outcome as a file that
`--config` reads back. `--help=all`, `--help=GROUP` and `--help=max-model-len` show this page's contents in a terminal.

An unknown name, a malformed value or values that do not go together end the start with every problem listed, each with
its remedy. Variables `OCTAVO_...` that name no option are ignored, unless they are a slip away from one.
"""


def render() -> str:
    """The page."""
    parts = [INTRODUCTION]
    options = list(all_options().values())
    for group, title in GROUP_TITLES.items():
        parts += [f"## {title}\n", "| flag | values | default | |", "|---|---|---|---|"]
        parts += [_row(option) for option in options if option.group == group]
        parts.append("")
    parts += ["## Where Octavo differs from vLLM\n", "| flag | difference and reason |", "|---|---|"]
    parts += [f"| `{o.flag}` | {o.declaration.differs} |" for o in options if o.declaration.differs]
    parts += ["", "## Options of vLLM that are refused here\n"]
    parts += [
        "Values that ask for nothing (`None`, vLLM's default) are accepted. "
        "A flag that is neither here nor above is refused too, as one that is not known.\n",
        "| flag | what to do |",
        "|---|---|",
    ]
    parts += [f"| `--{name.replace('_', '-')}` | {remedy} |" for name, (_, remedy) in NOT_HERE.items()]
    return "\n".join(parts) + "\n"


def _row(option: Option) -> str:
    declaration = option.declaration
    default = "" if option.default in (None, (), {}) else f"`{_plain(option.default)}`"
    doc = declaration.doc
    if declaration.auto:
        doc += f" auto: {declaration.auto}."
    unit = f" ({declaration.unit})" if declaration.unit else ""
    flag = f"`{option.flag}`" + (f", `{declaration.short_flag}`" if declaration.short_flag else "")
    return f"| {flag} | {describe_values(option)}{unit} | {default} | {doc} |".replace(" |  | ", " | | ")


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def main() -> int:
    page = render()
    if "--check" in sys.argv[1:]:
        is_current = PAGE.exists() and PAGE.read_text(encoding="utf-8") == page
        print("docs/options.md is current" if is_current else "docs/options.md: run tools/generate_options.py")
        return 0 if is_current else 1
    PAGE.write_text(page, encoding="utf-8")
    print(f"wrote {PAGE.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
