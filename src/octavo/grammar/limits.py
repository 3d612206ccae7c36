"""How large a grammar may be. Each limit answers to something that was measured (docs/log.md, docs/decisions).

Owns: the numbers.   Does not own: the checks.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GrammarLimits:
    """Limits of what a request may ask for, and of what the library may spend on it."""

    max_bytes: int = 128 << 10
    """Of the text of a grammar."""
    max_depth: int = 100
    """Brackets within brackets in JSON, a grammar or an expression."""
    max_schema_levels: int = 200
    """Schemas within schemas, counted through references: the library walks them on the thread's stack."""
    max_schema_nodes: int = 10_000
    """Schemas in one document."""
    max_pointer_chars: int = 8 << 20
    """Of their JSON pointers together: a long name counts again for every schema below it."""
    max_alternatives: int = 500
    """Branches of one anyOf, oneOf or allOf."""
    max_branches: int = 1_500
    """Alternatives of one rule, which are items in one row of the parser. Terminals may have any number."""
    max_optional_properties: int = 400
    """Of one object: each costs four items in a row of the parser, which holds 2000."""
    max_properties: int = 2000
    """Of one object."""
    max_literal_bytes: int = 20_000
    """Of one constant text: whatever is forced is walked in one step."""
    max_expression_size: int = 20_000
    """Characters of the longest way through an expression, with its counted repetitions written out."""
    max_multiple: int = 10_000
    """Least common multiple of all multipleOf: an automaton has that many states."""
    max_rules: int = 500
    """Of a grammar: the library walks chains of rules on the thread's stack."""
    max_tag_rules: int = 4_000
    """Rules a structural tag is written as."""
    max_error_searches: int = 64
    """Compilations that look for the keyword at fault ..."""
    max_error_search_s: float = 0.3
    """... and their processor time."""
    max_verdict_bytes: int = 8 << 20
    """Of constraints that are remembered together with what they became, or why they were refused."""

    initial_lexer_fuel: int = 1_000_000
    step_lexer_fuel: int = 200_000
    step_max_items: int = 50_000
    max_items_in_row: int = 2_000
    max_lexer_states: int = 50_000
    """One or two KB each, in the matcher of one text."""
    max_grammar_size: int = 200_000
    """Symbols."""
    step_cpu_s: float = 0.02
    """Processor time a matcher may use for each token on the average ..."""
    spare_cpu_s: float = 1.0
    """... and beyond that once."""
