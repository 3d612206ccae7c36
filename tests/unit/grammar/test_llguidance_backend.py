import json
import time

import msgspec
import pytest
from fakes.grammar_tokenizer import encode, eos_id, make_test_backend, make_tokenizer, vocab_size
from fakes.matching import compiled, mask_of, takes

from octavo.base.errors import ConfigError, GrammarError, LoadError, ValidationError
from octavo.grammar import make_backend
from octavo.grammar.library import guarded
from octavo.grammar.limits import GrammarLimits
from octavo.grammar.llguidance_backend import LlguidanceBackend
from octavo.grammar.problem import SpecError
from octavo.proto.structured import GrammarSpec, PreparedGrammar


def _nested_one_of(depth):
    schema = {"type": "integer"}
    for level in range(depth):
        schema = {
            "oneOf": [
                {"type": "object", "properties": {"k": {"const": tag}, "v": schema}, "required": ["k", "v"]}
                for tag in (level, -level - 1)
            ]
        }
    return schema


def test_a_back_end_is_made_by_name():
    assert isinstance(make_backend("auto", make_tokenizer().to_str(), vocab_size(), [eos_id()]), LlguidanceBackend)


def test_an_unknown_name_is_a_config_error():
    with pytest.raises(ConfigError, match="auto, guidance"):
        make_backend("xgrammar", "{}", 10, [0])


@pytest.mark.parametrize("text", ["", "{}", "nonsense", '{"model": {"type": "BPE"}}'])
def test_a_tokenizer_that_cannot_be_used_is_a_load_error(text):
    with pytest.raises(LoadError):
        make_backend("auto", text, 10, [0])


def test_choices_are_the_only_texts():
    grammar = compiled(choice=['say "yes"', "no\n", "é/\\"])
    assert all(takes(grammar, text) for text in ('say "yes"', "no\n", "é/\\"))
    assert not takes(grammar, "no")


def test_a_thousand_choices_are_followed():
    grammar = compiled(choice=[f"city{i}" for i in range(1000)])
    assert takes(grammar, "city777")
    assert not takes(grammar, "city1000")


def test_any_object_is_any_object():
    grammar = compiled(json_object=True)
    assert takes(grammar, '{"a": [1, {"b": null}]}')
    assert not takes(grammar, "[1]")


@pytest.mark.parametrize("schema", [True, {}])
def test_the_empty_schema_is_any_json(schema):
    assert takes(compiled(json=schema), "[1,null]")


def test_what_a_constraint_became_is_remembered_as_are_the_faults_of_one_that_is_refused():
    backend = make_test_backend()
    spec = GrammarSpec("json", '{"type":"integer","minimum":3}')
    prepared = backend.prepare(spec)
    assert backend.prepare(spec) is prepared
    for _ in range(2):
        with pytest.raises(ValidationError, match="is no type") as caught:
            backend.prepare(GrammarSpec("json", '{"type":"x"}'))
        assert (caught.value.parameter, caught.value.value) == ("structured_outputs.json", "/type")


def test_memory_of_what_was_checked_is_bounded():
    limits = GrammarLimits(max_verdict_bytes=2000)
    backend = LlguidanceBackend(make_tokenizer().to_str(), vocab_size(), [eos_id()], limits)
    for index in range(10):
        backend.prepare(GrammarSpec("regex", f"a{{{index + 1}}}"))
    assert 0 < backend._verdicts.num_bytes <= 2000


def test_a_prepared_grammar_compiles_in_another_back_end_of_the_same_tokenizer():
    prepared = make_test_backend().prepare(GrammarSpec("json", '{"type":"object","properties":{"é":{"const":"\\n"}}}'))
    elsewhere = LlguidanceBackend(make_tokenizer().to_str(), vocab_size(), [eos_id()])
    assert takes(
        elsewhere.compile(msgspec.msgpack.decode(msgspec.msgpack.encode(prepared), type=PreparedGrammar)), "{}"
    )


@pytest.mark.parametrize("text", ["", "start: x", '{"grammars": 3}', "\0"])
def test_what_no_back_end_prepared_is_an_error_of_its_request(text):
    with pytest.raises(GrammarError, match="admitted before"):
        make_test_backend().compile(PreparedGrammar(text=text, num_bytes=1))


def test_a_grammar_that_becomes_too_long_is_refused(monkeypatch):
    monkeypatch.setattr("octavo.grammar.library_text.MAX_PREPARED_CHARS", 10)
    with pytest.raises(ValidationError, match="written out"):
        make_test_backend().prepare(GrammarSpec("regex", "b{1,77}"))


def test_a_grammar_serves_any_number_of_texts():
    grammar = compiled(regex="ab")
    first, second = grammar.start(), grammar.start()
    first.accept(encode("ab"))
    assert second.forced_tokens() == encode("ab")


def test_text_over_the_limit_is_refused():
    with pytest.raises(ValidationError, match="bytes"):
        make_test_backend().prepare(GrammarSpec("regex", "a|" * 100_000 + "b"))


def test_a_larger_grammar_counts_more_bytes():
    large = compiled(json={"properties": {f"p{i}": {"type": "string"} for i in range(200)}})
    assert large.num_bytes > compiled(json={}).num_bytes > 0


@pytest.mark.parametrize(
    "spec",
    [
        GrammarSpec("regex", "(a?){2000}a{2000}"),
        GrammarSpec("regex", "a{1,2}{1000}{9}"),
        GrammarSpec("grammar", 'root ::= "a" root'),
    ],
)
def test_a_beginning_that_the_first_step_could_not_take_is_refused(spec):
    with pytest.raises(ValidationError, match="what every text begins with") as caught:
        make_test_backend().prepare(spec)
    assert caught.value.parameter == f"structured_outputs.{spec.kind}"


@pytest.mark.parametrize("text", ["a", "city", "x" * 19_000])
def test_a_text_that_is_forced_as_a_whole_is_taken(text):
    assert takes(compiled(choice=[text]), text)


def test_a_panic_of_the_library_is_a_fault_of_the_grammar():
    class PanicException(BaseException):
        pass

    def panic():
        raise PanicException("unreachable")

    with pytest.raises(SpecError, match="fails on it"):
        guarded(panic)


HOSTILE = {
    "nested plus": GrammarSpec("regex", "(a+)+b"),
    "overlapping alternatives": GrammarSpec("regex", "(a|aa)*c"),
    "nested counts": GrammarSpec("regex", "((a{1,500}){1,500}){1,500}"),
    "a large count": GrammarSpec("regex", ".{0,100000}x"),
    "written-out counts": GrammarSpec("regex", "(a|b|ab){5000}[a-z]{3000}x"),
    "exponential states": GrammarSpec("regex", "[ab]*a[ab]{40}"),
    "many alternatives": GrammarSpec("regex", "a|" * 60_000 + "b"),
    "oneOf in oneOf": GrammarSpec("json", json.dumps(_nested_one_of(7))),
    "intersections": GrammarSpec("json", json.dumps({
        "allOf": [
            {"anyOf": [{"properties": {f"p{i}_{j}": {"type": "integer"}}, "required": [f"p{i}_{j}"]} for j in range(4)]}
            for i in range(10)
        ]})),
    "prime steps": GrammarSpec("json", '{"type":"integer","multipleOf":9973}'),
    "long arrays": GrammarSpec("json", '{"type":"array","minItems":90000,"maxItems":100000}'),
    "long strings": GrammarSpec("json", '{"type":"string","pattern":"^([a-z]+ ?)*$","minLength":5000}'),
    "doubling references": GrammarSpec("json", json.dumps({
        "$defs": {f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(40)}
        | {"d40": {"type": "null"}},
        "$ref": "#/$defs/d0"})),
    "references to each other": GrammarSpec("json", json.dumps({
        "$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"allOf": [{"$ref": "#/$defs/a"}]}},
        "$ref": "#/$defs/a"})),
    "doubling rules": GrammarSpec(
        "grammar", "start: a1\n" + "\n".join(f"a{i}: a{i + 1} a{i + 1}" for i in range(1, 60)) + '\na60: "a"'),
    "ambiguous rules": GrammarSpec("grammar", 'start: a\na: a a a | "x" | ""'),
    "counts of rules": GrammarSpec("grammar", 'start: (("a"{1,100}){1,100}){1,100}'),
    "tags of prime steps": GrammarSpec("structural_tag", json.dumps({"format": {
        "type": "json_schema", "json_schema": {"type": "integer", "multipleOf": 9967}}})),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_grammars_end_within_their_limits(name):
    """Compiled or refused, then followed for some tokens or given up: in bounded processor time."""
    begin_s = time.process_time()
    try:
        backend = make_test_backend()
        matcher = backend.compile(backend.prepare(HOSTILE[name])).start()
        for _ in range(30):
            allowed = mask_of(matcher)
            matcher.accept([int(allowed[len(allowed) // 2])])
    except (ValidationError, GrammarError):
        pass
    assert time.process_time() - begin_s < 5


@pytest.mark.needs_smollm2
def test_forced_tokens_agree_with_the_masks_of_a_real_tokenizer(smollm2_path):
    import numpy as np

    from octavo.loading import open_checkpoint

    with open_checkpoint(smollm2_path) as checkpoint:
        tokenizer, width = checkpoint.load_tokenizer(), checkpoint.spec.vocab_size
    backend = make_backend("auto", tokenizer.to_json(), width, [tokenizer.eos_token_id])
    schema = {
        "type": "object",
        "properties": {"temperature": {"enum": ["celsius", "fahrenheit"]}, "longitude": {"type": "integer"}},
        "required": ["temperature", "longitude"],
        "additionalProperties": False,
    }
    spec = GrammarSpec("json", json.dumps(schema), (("disable_any_whitespace", True),))
    grammar = backend.compile(backend.prepare(spec))
    mask = np.zeros((width + 31) // 32, np.int32)
    ids = tokenizer.encode('{"temperature":"fahrenheit","longitude":-71}', add_special_tokens=False)
    matcher, num_forced = grammar.start(), 0
    for token_id in ids:
        ahead = matcher.fork()
        for forced in matcher.forced_tokens():
            ahead.fill_mask(mask)
            assert list(np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))) == [forced]
            ahead.accept([forced])
            num_forced += 1
        matcher.accept([token_id])
    assert num_forced > 3
    assert matcher.is_complete
