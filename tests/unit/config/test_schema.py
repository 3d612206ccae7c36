import dataclasses
import sys
import typing

import pytest

from octavo.config.schema import GROUP_TITLES, EngineConfig, all_options, group_types
from octavo.config.values import describe_values, read_value

OPTIONS = list(all_options().values())
PYTHON_TYPES = {"text": str, "choice": str, "count": int, "size": int, "fraction": float, "switch": bool}


def names(options):
    return [option.name for option in options]


def test_every_group_has_a_heading_and_every_heading_a_group():
    fields = {item.name for item in dataclasses.fields(EngineConfig)} - {"usage"}
    assert fields == set(GROUP_TITLES) == set(group_types())


def test_no_two_options_share_a_name_or_a_short_flag():
    declared = [item.name for group in group_types().values() for item in dataclasses.fields(group)]
    shorts = [option.declaration.short_flag for option in OPTIONS if option.declaration.short_flag]
    assert len(declared) == len(set(declared)) == len(OPTIONS)
    assert len(shorts) == len(set(shorts))


def test_the_engine_has_fewer_than_sixty_options_and_the_server_too():
    in_server = [option for option in OPTIONS if option.group == "server"]
    assert len(in_server) < 60
    assert len(OPTIONS) - len(in_server) < 60


@pytest.mark.parametrize("option", OPTIONS, ids=names(OPTIONS))
def test_documentation_is_one_line(option):
    doc = option.declaration.doc
    assert doc.strip() == doc
    assert doc.endswith(".")
    assert "\n" not in doc


@pytest.mark.parametrize("option", OPTIONS, ids=names(OPTIONS))
def test_the_default_is_a_value_that_could_be_given(option):
    if option.default not in (None, ()):
        assert read_value(option, option.default) == option.default


@pytest.mark.parametrize("option", OPTIONS, ids=names(OPTIONS))
def test_the_annotation_says_what_the_declaration_says(option):
    group_type = group_types()[option.group]
    hint = typing.get_type_hints(group_type, vars(sys.modules[group_type.__module__]))[option.name]
    members = typing.get_args(hint) if typing.get_origin(hint) not in (tuple, None) else (hint,)
    literals = {value for member in members for value in (typing.get_args(member) or (member,))}
    assert ("auto" in literals) == (option.has_auto or "auto" in option.declaration.choices)
    if option.declaration.kind == "choice":
        assert set(option.declaration.choices) | ({"auto"} if option.has_auto else set()) == literals
    elif option.declaration.kind in PYTHON_TYPES:
        assert PYTHON_TYPES[option.declaration.kind] in literals


@pytest.mark.parametrize("option", OPTIONS, ids=names(OPTIONS))
def test_its_values_can_be_described(option):
    assert describe_values(option)


def test_a_configuration_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        EngineConfig().model.seed = 1
    assert not hasattr(EngineConfig().model, "__dict__")
