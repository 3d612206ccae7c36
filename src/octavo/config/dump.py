"""Write a configuration as a file that `--config` reads back."""

from __future__ import annotations

from octavo.config.resolved import ResolvedConfig
from octavo.config.schema import GROUP_TITLES, SERVER_GROUPS, all_options


def dump_config(resolved: ResolvedConfig) -> str:
    """YAML with every `auto` resolved. Secrets and options that were not given are left out.

    Given back through `--config` on the same machine, it resolves to the same configuration.
    """
    import yaml

    lines = [f"# memory: {resolved.budget}"]
    group = None
    for name, option in all_options().items():
        value = getattr(getattr(resolved.options, option.group), name)
        is_elsewhere = option.group in SERVER_GROUPS and resolved.options.usage != "server"
        if value is None or option.declaration.secret or is_elsewhere:
            continue
        if option.group != group:
            group = option.group
            lines += ["", f"# {GROUP_TITLES[group]}"]
        plain = list(value) if isinstance(value, tuple) else dict(value) if option.declaration.kind == "json" else value
        lines.append(yaml.safe_dump({name: plain}, default_flow_style=False, width=1000).rstrip())
    return "\n".join(lines) + "\n"
