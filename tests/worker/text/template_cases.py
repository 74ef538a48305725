"""Chat templates and conversations for make_goldens.py: one feature each, written for kvsweep."""

NOW = "2024-02-29T17:05:09"

CONVERSATIONS = {
    "user": [{"role": "user", "content": "What is 2+2?"}],
    "system": [{"role": "system", "content": "Be brief.  "},
               {"role": "user", "content": "Say \"it's\" <b>&\\ ok\n\tdone"},
               {"role": "assistant", "content": "  It's ok 😀 日本 \x1f\x7f\u00a0"},
               {"role": "user", "content": ""}],
}

CASES = {
    "blocks": """\
{# a comment #}
{% for message in messages %}
    {% if message.role == 'user' %}
  [user] {{ message['content'] }}
    {%- elif message.role == "system" -%}
  [system] {{ message.content | trim }}
    {% else %}
[assistant]{{ message.content }}
    {% endif %}
{% endfor %}
{% if add_generation_prompt %}
[assistant]
{% endif %}

tail
""",
    "specials": (
        "{{ bos_token }}{% for m in messages %}{{ m['role'] + ': ' + m['content'] + eos_token }}"
        "{% endfor %}{{ pad_token }}{{ unknown_name }}{{ messages[0].nothing }}|{{ tools }}"),
    "generation": """\
{% for m in messages %}
  {% if m.role == 'assistant' %}
  {% generation %}
  {%- set word = 'inner' %}
<a>{{ m.content }}{{ word }}</a>
  {%- endgeneration -%}
  {% else %}
<{{ m.role }}>{{ m.content }}{{ word }}</>
  {% endif %}
{% endfor %}
""",
    "tojson": (
        "{{ messages | tojson }}\n{{ messages[0] | tojson(indent=2) }}\n"
        "{{ {'b': 1, 'a': [true, none, 1.5, 1e20, -0.00001, []], 'é': {}} | tojson }}\n"
        "{{ {'b': 1, 'a': [1, {}]} | tojson(indent=4, sort_keys=true) }}\n"
        "{{ messages | tojson(ensure_ascii=true) }}\n"
        "{{ [1, {'x': 2}] | tojson(separators=(',', ':')) }}{{ {1: 'int key'} | tojson }}"),
    "printing": (
        "{{ true }} {{ none }} {{ 1.0 }} {{ 0.1 }} {{ 1e-5 }} {{ 1e16 }} {{ 123456789.5 }} "
        "{{ 7 // 2 }} {{ [1, 'a', \"it's\", none] }} {{ {'k': [true, 2.5]} }} {{ 'q\"' }} "
        "{{ ['tab\\t'] }} {{ [1] | string }} {{ 3 | string + 'x' }} {{ 7 / 2 }} {{ -7 % 3 }} "
        "{{ 2 ** 10 }}"),
    "dates": (
        "{{ strftime_now('%d %b %Y') }}|{{ strftime_now('%A, %-d %B %y %H:%M:%S %I %p %j %%') }}"
        "|{% if strftime_now is defined %}yes{% endif %}"),
    "namespace": (
        "{% set ns = namespace(found=false, n=0) %}{% for m in messages %}"
        "{% set ns.n = ns.n + 1 %}"
        "{% if m.role == 'user' %}{% set ns.found = true %}{% endif %}"
        "{% endfor %}{{ ns.found }} {{ ns.n }}"),
    "loops": (
        "{% for m in messages[::-1] %}{{ loop.index }}/{{ loop.length }}{{ loop.first }}"
        "{{ loop.last }}{% if loop.index0 == 2 %}{% break %}{% endif %}{% if not loop.first %}"
        "{% continue %}{% endif %}:{{ m.role }};{% else %}none{% endfor %}"
        "{% for k, v in messages[0].items() %}{{ k }}={{ v }},{% endfor %}"
        "{% for i in range(3) if i != 1 %}{{ i }}{% endfor %}{{ messages[1:] | length }}"),
    "methods": (
        "{% set s = messages[-1].content %}{{ s.strip().upper() }}|"
        "{{ s.split(' ') | join('_') }}|{{ s.startswith('W') }}|{{ s.replace('2', '3') }}|"
        "{{ s.rstrip('?') }}|{{ 'a-b'.split('-')[-1] }}|"
        "{{ messages[0].get('name', 'nobody') }}|{{ messages[0].keys() | list }}|"
        "{{ 'x' in 'xyz' }}|{{ s.lstrip('W').title() }}|{{ 'abc'[1:] }}|"
        "{{ ' a '.strip() ~ 1 ~ 'b' }}|{{ s.find('is') }}"),
    "macros": (
        "{% macro turn(role, text='-') %}<{{ role }}>{{ text }}</{{ role }}>{% endmacro %}"
        "{% for m in messages %}{{ turn(m.role, text=m.content) }}{% endfor %}{{ turn('x') }}"),
    "filters": (
        "{{ messages | map(attribute='role') | join(',') }}|"
        "{{ messages | selectattr('role', 'equalto', 'user') | list | length }}|"
        "{{ messages | rejectattr('role', '==', 'user') | list | length }}|"
        "{{ (messages | first).role }}|{{ 'A' | lower }}|{{ none | default('d', true) }}|"
        "{{ missing | default('e') }}|{{ [3, 1, 2] | sort | join }}|"
        "{{ 'a b' | replace(' ', '') }}|{{ '%.2f' | format(2.5) }}|"
        "{% for k, v in {'b': 1, 'a': 2} | dictsort %}{{ k }}{{ v }}{% endfor %}|"
        "{{ 'ab' | capitalize }}"),
    "tests": (
        "{{ messages is iterable }}{{ messages[0] is mapping }}"
        "{{ messages[0].content is string }}{{ tools is none }}{{ tools is defined }}"
        "{{ nothing is not defined }}{{ 3 is odd }}{{ 1 if tools else 2 }}{{ true is true }}"
        "{{ messages is sequence }}{{ 1 is number }}"),
    "alternation": (
        "{% for m in messages %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}"
        "{{ raise_exception('Roles must alternate user/assistant!') }}{% endif %}"
        "{{ m.content }}{% endfor %}"),
    "escaping": (
        "{% raw %}{{ not a value }}{% endraw %}{{ '<b>' }}{{ '{{' }}{{ \"\\n\" }}"
        "{{ '\\u00e9' }}{%- if true +%}\n keep{% endif %}\n"),
}
