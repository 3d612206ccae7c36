import pytest

from octavo.base.errors import ValidationError
from octavo.loading import template as template_module
from octavo.loading.template import compile_template, render_template


def render(source, **variables):
    return render_template(compile_template(source), variables)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("  {% if true %}\nx\n  {% endif %}\ny", "x\ny"),
        ("{% for i in range(9) %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}", "01"),
        ("{{ {'b': '<é>', 'a': 1} | tojson }}", '{"b": "<é>", "a": 1}'),
        ("{{ [1] | tojson(indent=2) }}", "[\n  1\n]"),
        ("{% generation %}a{{ 1 }}{% endgeneration %}b", "a1b"),
        ("{{ 'a' ~ 1 ~ none }}", "a1None"),
        ("{{ 'ab' * 2 + 'c' }}", "ababc"),
        ("{{ 7 % 4 }} {{ 2 ** 8 }} {{ '%s-%03d' % ('a', 5) }}", "3 256 a-005"),
        ("{{ '%s' | format('x') }}{{ '{:>4}'.format('y') }}", "x   y"),
        ("{% set ns = namespace(n=1) %}{% set ns.n = ns.n + 1 %}{{ ns.n }}", "2"),
        ("{{ missing }}", ""),
        ("{{ (1).__class__ }}", ""),
        ("{{ strftime_now('%%') }}", "%"),
        ("{{ 'x' | center(3) }}|{{ 'a\nb' | indent(1) }}", " x |a\n b"),
    ],
)
def test_templates_mean_what_hugging_face_means_by_them(source, expected):
    assert render(source) == expected


@pytest.mark.parametrize(
    "source",
    [
        "{% if %}",
        "{{ 'x'",
        "{% for %}",
        "{% unknown %}",
        "{{ 1 | nofilter }}",
        "x" * (template_module.MAX_TEMPLATE_CHARS + 1),
    ],
)
def test_what_is_no_template_is_refused(source):
    with pytest.raises(ValidationError, match="chat_template") as caught:
        compile_template(source)
    assert caught.value.parameter == "chat_template"


def test_a_template_complains_in_its_own_words():
    with pytest.raises(ValidationError, match="roles must alternate") as caught:
        render("{{ raise_exception('roles must alternate') }}")
    assert caught.value.parameter == "messages"


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ messages.append(1) }}",
        "{{ messages.__init__.__globals__ }}",
        "{{ raise_exception.__globals__['os'] }}",
        "{{ range(1000000000) | list }}",
        "{{ 1 / 0 }}",
        "{{ 'a' + 1 }}",
        "{{ undefined_name.x }}",
        "{{ missing() }}",
    ],
)
def test_a_template_cannot_reach_out_or_break_us(source):
    with pytest.raises(ValidationError):
        render(source, messages=[])


@pytest.mark.parametrize(
    "source",
    [
        "{{ 'x' * 10**10 }}",
        "{{ 10**10 * 'x' }}",
        "{{ [0] * 10**10 }}",
        "{{ 10 ** (10 ** 10) }}",
        "{% set x = 'x' * 10**7 %}{{ x + x }}",
        "{% set x = 'x' * 10**7 %}{{ x ~ x }}",
        "{% set x = 'x' * 10**7 %}{{ x }}{{ x }}",
        "{{ '%1000000000d' % 1 }}",
        "{{ '%*d' % (1000000000, 1) }}",
        "{{ '{:>1000000000}'.format(1) }}",
        "{{ '{:>{}}'.format(1, 1000000000) }}",
        "{{ '%1000000000d' | format(1) }}",
        "{{ 'x' | center(1000000000) }}",
        "{{ 'x' | indent(1000000000, true) }}",
        "{{ 'x'.ljust(1000000000) }}",
        "{{ 'x'.zfill(1000000000) }}",
        "{{ [1] | tojson(indent=1000000000) }}",
        "{% for i in range(99999) %}{{ 'x' * 99999 }}{% endfor %}",
    ],
)
def test_a_template_cannot_make_large_values(source):
    with pytest.raises(ValidationError):
        render(source)
