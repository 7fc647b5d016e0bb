"""Chat templates against Python's jinja2, set up as Hugging Face's apply_chat_template sets it up: whole chats through
three templates, random expressions and random statements; and what jinja2 does not know: how messages are normalised,
bounds, errors. CHATS and SNIPPETS say how many; every case comes from a seed, so a failure can be run again."""
import json, os, pathlib, random, subprocess, sys, time
import pytest

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = pathlib.Path(os.environ.get("QUARRY_SOURCE", HERE.parent.parent))
RENDER = pathlib.Path(os.environ.get("QUARRY_BUILD", SOURCE / "build")) / "chat_render"
TINY = SOURCE / "tests/models/tiny"
CASES = "2000,3000" if os.environ.get("QUARRY_SLOW") else "500,800"
CHATS, SNIPPETS = (int(n) for n in os.environ.get("QUARRY_CASES", CASES).split(","))
Q_EINPUT, Q_ELIMIT = 1, 3

jinja2 = pytest.importorskip("jinja2", reason="needs jinja2 to compare with")
from jinja2.ext import Extension, loopcontrols  # noqa: E402
from jinja2.sandbox import ImmutableSandboxedEnvironment  # noqa: E402
from jinja2 import nodes  # noqa: E402

pytestmark = [pytest.mark.filterwarnings("ignore::SyntaxWarning"),
              pytest.mark.skipif(not RENDER.exists(), reason=f"needs the program `chat_render` in {RENDER.parent}")]


class Generation(Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("_whole"), [], [], body).set_lineno(line)

    def _whole(self, caller):
        return caller()


class Raised(Exception):
    pass


def raise_exception(message):
    raise Raised(message)


def environment():
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols])
    env.filters["tojson"] = lambda x, ensure_ascii=False, indent=None, separators=None, sort_keys=False: json.dumps(
        x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)
    env.globals["raise_exception"] = raise_exception
    return env


ENV = environment()


def reference(template, case):
    """("text", text) or ("error", text of raise_exception or None)."""
    try:
        return "text", template.render(messages=case["messages"], tools=case.get("tools"), documents=None,
                                       add_generation_prompt=case.get("add_generation_prompt", False), **case.get("options", {}))
    except Raised as e:
        return "error", str(e)
    except Exception:
        return "error", None


def ours(cases, *args):
    """Answers of chat_render, one a case. What the template sees goes as JSON text, so that 1.0 stays 1.0."""
    def line(i, case):
        text = {k: json.dumps(case[k], ensure_ascii=i % 2 == 0) for k in ("messages", "tools", "options") if k in case and type(case[k]) is not str}
        return json.dumps({**case, **text}) + "\n"
    text = "".join(line(i, c) for i, c in enumerate(cases))
    p = subprocess.run([RENDER, *args], input=text.encode(), capture_output=True, timeout=600)
    assert p.returncode == 0, p.stderr.decode()[-2000:]
    return [json.loads(line) for line in p.stdout.decode().split("\n") if line]


def one(**case):
    return ours([case])[0]


def agree(case, want, got, source=""):
    what = f"\n{source}\n{json.dumps(case, ensure_ascii=False)}\nwant {want}\n got {got}"
    if want[0] == "text":
        assert got.get("text") == want[1], what
    else:
        assert got.get("code") == Q_EINPUT, what
        if want[1] is not None:
            line = "".join("?" if ord(c) < 32 or ord(c) == 127 else c for c in want[1])
            assert got["error"] == "template: " + line, what


# --- random chats -------------------------------------------------------------------------------------------------------

WORDS = ["hello", "안녕하세요", "東京", "naïve", "🙂👍🏽", "a\u0301", "<|im_end|>", "<think>", "</think>", "<tool_call>", "'", '"', "\\",
         "{{ x }}", "{% raw %}", "\t", "\u00a0", "\u3000", "\u2028", "\x7f", "0", "-1", "None", "<result>", "</result>", "\n\n", "end."]


def words(r, most=8):
    s = "".join(r.choice(WORDS) + r.choice(["", " ", "\n", "  "]) for _ in range(r.randint(0, most)))
    return r.choice(["", "", " ", "\n", "\u2003"]) + s


def value(r, depth=2):
    kind = r.randint(0, 8 if depth else 5)
    if kind == 0: return r.choice([0, 1, -5, 10**6, 2**62, 2**70, -(2**63)])
    if kind == 1: return r.choice([0.0, 1.5, -0.1, 1e300, 1e-7, 3.0, 1e16, 123456.789, 1e22, 5e-324])
    if kind == 2: return r.choice([True, False, None])
    if kind <= 5: return words(r, 3)
    if kind == 6: return [value(r, depth - 1) for _ in range(r.randint(0, 3))]
    return {words(r, 1) or "k": value(r, depth - 1) for _ in range(r.randint(0, 3))}


def tool(r):
    f = {"name": r.choice(["save", "find", "날씨"]), "description": words(r, 4)}
    if r.random() < .8:
        f["parameters"] = {"type": "object", "properties": {k: r.choice([{"type": "string"}, {"type": ["string", "null"], "enum": ["a", None]},
                           {"type": "integer", "default": 1.0, "items": {"type": "object"}}]) for k in r.sample(["path", "본문", "n", "items"], r.randint(0, 3))},
                           "required": r.choice([[], ["path"], ["path", "n"]])}
    return {"type": "function", "function": f}


def parts(r):
    some = lambda: r.choice([{"type": "text", "text": words(r)}, {"type": "text", "text": words(r)}, {"text": "only text"},
                             {"type": "image"}, {"type": "image_url", "image_url": {"url": "data:,"}}, {"type": "video", "video": "v"},
                             {"type": "odd"} if r.random() < .1 else {"type": "text", "text": ""}])
    return [some() for _ in range(r.randint(0, 4))]


def content(r):
    return words(r) if r.random() < .75 else parts(r)


def assistant(r):
    m = {"role": "assistant", "content": r.choice([words(r), "", "<think>\nhm\n</think>\n\n" + words(r), parts(r)])}
    if r.random() < .3: m["content"] = None
    if r.random() < .5: m["reasoning_content"] = r.choice([words(r), "", None])
    if r.random() < .4:
        calls = [{"name": r.choice(["save", "find"]), "arguments": {(words(r, 1) or "k"): value(r) for _ in range(r.randint(0, 3))}}
                 for _ in range(r.randint(0, 3))]
        m["tool_calls"] = [{"id": f"c{i}", "type": "function", "function": c} if r.random() < .8 else c for i, c in enumerate(calls)]
    return m


def chat(r):
    messages = []
    if r.random() < .4: messages.append({"role": "system", "content": content(r)})
    for _ in range(r.randint(0, 5)):
        messages.append({"role": "user", "content": content(r)})
        for _ in range(r.randint(0, 3)):
            messages.append(assistant(r))
            messages += [{"role": "tool", "content": content(r), "tool_call_id": "c", "name": "save"} for _ in range(r.randint(0, 2))]
    if r.random() < .05: messages.append({"role": r.choice(["critic", "system"]), "content": "x"})
    options = {}
    if r.random() < .5: options["enable_thinking"] = r.choice([True, False, None])
    if r.random() < .5: options["preserve_thinking"] = r.choice([True, False, None])
    if r.random() < .2: options["add_vision_id"] = True
    if r.random() < .1: options["reasoning_effort"] = r.choice(["low", "high", "absurd"])
    return {"messages": messages, "tools": r.choice([None, [], [tool(r) for _ in range(r.randint(1, 3))]]),
            "options": options, "add_generation_prompt": r.random() < .5, "as_is": True}


TEMPLATES = {"tiny": TINY / "chat_template.jinja", "turns": HERE / "chat_templates/turns.jinja",
             "keeps_thoughts": HERE / "chat_templates/keeps_thoughts.jinja"}
TEMPLATES.update({p.stem: p for p in map(pathlib.Path, filter(None, os.environ.get("QUARRY_TEMPLATES", "").split(":")))})


@pytest.mark.parametrize("name", TEMPLATES)
def test_chats(name):
    source = TEMPLATES[name].read_text(encoding="utf-8")
    r = random.Random("chats " + name)
    cases = [chat(r) for _ in range(CHATS)]
    cases[0]["template"] = source
    template = ENV.from_string(source)
    wants = [reference(template, c) for c in cases]
    for case, want, got in zip(cases, wants, ours(cases)):
        agree(case, want, got)
    assert sum(w[0] == "text" for w in wants) > CHATS // 3


def test_the_tiny_models_own_chats():
    sys.path.insert(0, str(TINY))
    try:
        import corpus
    finally:
        sys.path.pop(0)
    r, cases, wants = random.Random(11), [], []
    for i in range(600):
        messages, tools = corpus.one_chat(r, .02, (8, 10))
        while messages and messages[-1]["role"] == "assistant" and i % 2: messages.pop()
        gen, think = bool(i % 2), i % 4 < 2
        cases.append({"messages": messages, "tools": tools, "add_generation_prompt": gen, "options": {} if think else {"enable_thinking": False}})
        wants.append(corpus.render(messages, tools, think, gen)[0])
    cases[0]["template"] = TEMPLATES["tiny"].read_text(encoding="utf-8")
    for case, want, got in zip(cases, wants, ours(cases)):
        assert got.get("text") == want, case


# --- what clients send, and what templates are to see --------------------------------------------------------------------

SAVE = {"type": "function", "function": {"name": "save", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}}


def called(arguments, **more):
    return {"role": "assistant", **more, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "save", "arguments": arguments}}]}


OK = {"role": "tool", "tool_call_id": "c1", "content": "ok"}
ASK = {"role": "user", "content": "Capital of Korea?"}
CUT = '<tool_call>\n{"name": "save", "arguments": {"path":}\n</tool_call>'
SENT = {  # name: sent, seen by a template that refuses later system messages
    "several instructions": ([{"role": "developer", "content": "One word."}, {"role": "system", "content": "Be kind."}, {"role": "user", "content": "hi"},
                              {"role": "system", "content": "Lower case."}, ASK], [{"role": "system", "content": "One word.\n\nBe kind.\n\nLower case."}, {"role": "user", "content": "hi"}, ASK]),
    "parts": ([{"role": "system", "content": [{"type": "text", "text": "Be "}, {"type": "text", "text": "kind."}]}, {"role": "user", "content": [{"type": "text", "text": "hi"}]},
               {"role": "assistant", "content": [{"type": "text", "text": "a"}, {"type": "refusal", "refusal": "b"}]}, ASK],
              [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "hi"}, {"role": "assistant", "content": "ab"}, ASK]),
    "arguments": ([ASK, called('{"path": "a", "n": 1.50, "yes": true, "o": {"k": [null]}}', content=None), {**OK, "content": [{"type": "text", "text": "ok"}]}, ASK],
                  [ASK, called({"path": "a", "n": 1.5, "yes": True, "o": {"k": [None]}}, content=""), OK, ASK]),
    "no arguments": ([ASK, called(""), OK, called("null"), OK, called("{}", content=None), OK, called(None), OK], [ASK] + 4 * [called({}, content=""), OK]),
    "a call cut short": ([ASK, called('{"path":', content="Yes."), OK, called('{"path":', content=None), OK, ASK],
                         [ASK, {"role": "assistant", "content": "Yes.\n\n" + CUT}, OK, {"role": "assistant", "content": CUT}, OK, ASK]),
    "no calls": ([ASK, {"role": "assistant", "content": "a", "tool_calls": []}, ASK], [ASK, {"role": "assistant", "content": "a"}, ASK]),
    "reasoning": ([ASK, {"role": "assistant", "content": "a", "reasoning": "R"}], [ASK, {"role": "assistant", "content": "a", "reasoning_content": "R"}]),
    "users in a row": ([ASK, ASK], [ASK, ASK]),
}


@pytest.mark.parametrize("name", ["tiny", "turns"])
@pytest.mark.parametrize("what", SENT)
def test_what_clients_send(name, what):
    sent, seen = SENT[what]
    source = TEMPLATES[name].read_text(encoding="utf-8")
    case = {"template": source, "tools": [SAVE], "add_generation_prompt": True}
    got = one(**case, messages=sent)
    want = reference(ENV.from_string(source), {**case, "messages": seen})
    if what == "arguments": want = want[0], want[1].replace("1.5\n", "1.50\n")  # numbers stay as they were written
    agree({**case, "messages": sent}, want, got)


# --- random snippets ----------------------------------------------------------------------------------------------------

OPTIONS = {"n": 3, "neg": -7, "zero": 0, "f": 2.5, "big": 1e16, "s": "héllo wörld", "t": "a,b,,c", "e": "", "u": "안녕 🙂", "w": "  x\ty \n",
           "yes": True, "no": False, "nil": None, "l": [3, 1, 2, 1], "ls": ["b", "A", "a", "c"], "m": [1, "x", None, 2.0, True, [1, "y"]],
           "d": {"k": "v", "n": 1, "items2": [1, 2], "nest": {"a": {"b": 5}}}, "dd": {},
           "rows": [{"role": "user", "n": 2, "o": {"x": 1}}, {"role": "tool", "n": 1, "o": {"x": 2}}, {"role": "User", "n": 3}]}


class Snippets:
    """A grammar over OPTIONS. Left out: what the subset leaves out, values that only print differently (iterators), and where
    this program is laxer (`x is string if y`, unknown filters that are never reached) or stricter (tuples as keys), and Markup."""

    def __init__(self, r):
        self.r = r

    def pick(self, *makers):
        return self.r.choice(makers)()

    def literal(self):
        r = self.r
        return r.choice(["0", "1", "-1", "2", "10", "1.5", "0.1", "1e3", "true", "False", "none", "''", "'a'", '"b\\n"', "'\\u00e9'", "'é🙂'", "'l'", "[]", "{}"])

    def name(self):
        return self.r.choice(list(OPTIONS) + ["missing"])

    def number(self, d):
        r = self.r
        if d <= 0: return r.choice(["n", "neg", "zero", "f", "1", "2", "3", "-2", "0.5", "yes"])
        e = lambda: self.number(d - 1)
        return self.pick(lambda: f"{e()} {r.choice(['+', '-', '*', '/', '//', '%'])} {e()}", lambda: f"({e()})", lambda: f"-{e()}",
                         lambda: f"{e()} ** {r.choice(['2', '3', '0', '-1'])}", lambda: f"({e()})|{r.choice(['abs', 'int', 'float', 'round', 'round(1)', 'string|length'])}",
                         lambda: f"{self.seq(d - 1)}|{r.choice(['length', 'count', 'sum', 'first', 'last', 'max', 'min'])}",
                         lambda: f"({self.string(d - 1)}).{r.choice(['find', 'rfind', 'count'])}({self.string(0)})", lambda: f"{self.string(d - 1)}|length")

    def string(self, d):
        r = self.r
        if d <= 0: return r.choice(["s", "t", "e", "u", "w", "'a'", "','", "'l'", "'ö'", "' '", "'AbC'"])
        e = lambda: self.string(d - 1)
        return self.pick(
            lambda: f"{e()} ~ {self.any(d - 1)}", lambda: f"{e()} + {e()}", lambda: f"({e()})", lambda: f"{e()}|{r.choice(['trim', 'upper', 'lower', 'title', 'capitalize', 'string', 'string', 'reverse', 'tojson', 'indent', 'indent(2, true)', 'replace(chr, chr)'])}".replace("chr", r.choice(["'l'", "'b'", "''", "u"])),
            lambda: f"({e()}).{r.choice(['upper()', 'lower()', 'strip()', 'lstrip()', 'rstrip()', 'title()', 'capitalize()', 'strip(t)', 'lstrip(s)', 'rstrip(u)', 'zfill(6)', 'ljust(7)', 'rjust(7, chr)', 'removeprefix(chr)', 'removesuffix(chr)'])}".replace("chr", r.choice(["'l'", "'x'"])),
            lambda: f"({e()}).replace({e()}, {e()})", lambda: f"({e()}).replace({self.string(0)}, '-', {self.number(0)})", lambda: f"({e()}).join({self.seq(d - 1)})", lambda: f"{self.seq(d - 1)}|join({r.choice(['', self.string(0)])})",
            lambda: f"({e()}){self.slice()}", lambda: f"{e()} * {self.number(0)}", lambda: f"({e()}).{r.choice(['partition', 'rpartition', 'rsplit', 'split'])}({self.string(0)})[{r.choice([0, -1, 1])}]",
            lambda: f"{self.any(d - 1)}|tojson", lambda: f"{self.any(d - 1)}|string", lambda: f"{self.any(d - 1)}|tojson(indent={r.choice([0, 2])})")

    def slice(self):
        p = lambda: self.r.choice(["", "", "0", "1", "-1", "2", "-2", "5", "100", "-100", "n"])
        return self.r.choice([f"[{p()}:{p()}]", f"[{p()}:{p()}:{self.r.choice(['1', '-1', '2', '-2', '', 'n'])}]", "[::-1]", f"[{self.r.choice(['0', '-1', '1', '7'])}]"])

    def seq(self, d):
        r = self.r
        if d <= 0: return r.choice(["l", "ls", "m", "rows", "t.split(',')", "[1, 2]", "['x', s]", "(1, 'a')", "range(n)|list", "d.keys()|list", "[]"])
        e = lambda: self.seq(d - 1)
        return self.pick(
            lambda: f"({e()}){self.slice()}", lambda: f"{e()} + {e()}", lambda: f"{e()}|{r.choice(['sort', 'unique|list', 'list', 'reverse|list', 'sort(reverse=true)', 'sort(case_sensitive=true)', 'unique(true)|list'])}",
            lambda: f"rows|{r.choice(['map(attribute=attr)|list', 'selectattr(attr)|list', 'rejectattr(attr)|list', 'sort(attribute=attr)', 'selectattr(attr, test, 1)|list', 'selectattr(attr, test2)|list', 'map(attribute=attr, default=0)|list', 'unique(attribute=attr)|list', 'sum(attribute=attr)'])}"
                    .replace("attr, test2", f"'{r.choice(['role', 'o', 'n'])}', '{r.choice(['defined', 'undefined', 'string', 'number', 'lower'])}'").replace("attr, test", f"'n', '{r.choice(['eq', 'gt', 'lt', 'ne', '==', '>=', 'odd'])}'").replace("=attr", "='" + r.choice(["role", "n", "o.x", "zz"]) + "'").replace("attr)", "'" + r.choice(["role", "n", "o", "zz"]) + "')"),
            lambda: f"{e()}|{r.choice(['select', 'reject'])}({r.choice(['', repr('string'), repr('number'), repr('none'), repr('in') + ', l', repr('eq') + ', 1'])})|list", lambda: f"{e()}|map('{r.choice(['string', 'upper', 'length', 'tojson', 'trim', 'int'])}')|list",
            lambda: f"({self.string(d - 1)}).{r.choice(['split()', 'splitlines()', 'split(None, 1)', 'split(x)', 'split(x, 1)', 'rsplit(x, 1)', 'split(sep=x, maxsplit=2)', 'splitlines(true)'])}".replace("x", self.string(0)), lambda: f"{r.choice(['d', 'dd', 'd.nest'])}|{r.choice(['items', 'dictsort', 'list'])}|list",
            lambda: f"[{self.any(d - 1)}, {self.any(d - 1)}]", lambda: f"range({r.choice(['n', '1, 5', '5, 0, -2', 'zero', '2, n'])})|list", lambda: f"{e()} * {self.number(0)}")

    def dict(self, d):
        r = self.r
        return self.pick(lambda: r.choice(["d", "dd", "d.nest", "rows[0]", "rows[-1]"]), lambda: "{%s: %s, 'z': %s}" % (self.string(0), self.any(d - 1), self.any(d - 1)), lambda: f"dict(a={self.any(d - 1)}, b=1)")

    def boolean(self, d):
        r = self.r
        a = lambda: self.any(d - 1)
        return self.pick(
            lambda: f"{a()} {r.choice(['==', '!=', '<', '>', '<=', '>=', 'in', 'not in'])} {a()}", lambda: f"not {a()}", lambda: f"{a()} and {a()}", lambda: f"{a()} or {a()}", lambda: f"{self.number(d - 1)} {r.choice(['<', '<=', '>', '>=', '=='])} {self.number(d - 1)} < {self.number(0)}",
            lambda: f"{a()} is {r.choice(['', 'not '])}{r.choice(['defined', 'undefined', 'none', 'string', 'mapping', 'iterable', 'sequence', 'number', 'integer', 'float', 'boolean', 'true', 'false'])}",
            lambda: f"{self.number(d - 1)} is {r.choice(['odd', 'even', 'divisibleby 3', 'eq 3', 'in l', 'lt(2)', 'gt 1'])}", lambda: f"({self.string(d - 1)}).{r.choice(['startswith', 'endswith'])}({r.choice([self.string(0), '(s, t)'])})", lambda: f"{self.string(d - 1)} in {self.string(d - 1)}", lambda: f"({self.string(d - 1)}).{r.choice(['isdigit()', 'isspace()', 'isupper()', 'islower()'])}")

    def any(self, d):
        r = self.r
        if d <= 0: return self.pick(self.literal, self.name, self.name)
        d1 = d - 1
        return self.pick(
            lambda: self.number(d1), lambda: self.string(d1), lambda: self.seq(d1), lambda: self.dict(d1), lambda: self.boolean(d1), self.name, self.literal,
            lambda: f"({self.any(d1)}) if ({self.any(d1)}) else {self.any(d1)}", lambda: f"(({self.any(d1)}) if ({self.boolean(d1)}))", lambda: f"{self.dict(d1)}.{r.choice(['k', 'nest', 'role', 'zz', 'get(s)', 'get(e, 1)', 'items()|list', 'values()|list', 'keys()|list'])}",
            lambda: f"{self.dict(d1)}[{self.any(0)}]", lambda: f"({self.any(d1)})|{r.choice(['default(1)', 'd(s, true)', 'default(boolean=true, default_value=5)', 'list', 'first', 'last', 'length', 'string', 'int', 'float(0.5)', 'int(7)', 'trim', 'abs', 'items|list', 'join'])}", lambda: f"({self.any(d1)}).{r.choice(['k', 'zz', 'zz.y', 'upper()', '0'])}",
            lambda: f"{self.name()}{self.slice()}")

    def ws(self):
        return self.r.choice(["", "", "-", "+"])

    def tag(self, inside):
        return "{%" + self.ws() + " " + inside + " " + self.r.choice(["", "", "-", "+"]) + "%}"

    def text(self):
        return self.r.choice(["", " ", "\n", "x", "\n  ", "a b\n", "\t", "  \n\n  y", "{# note #}", "{#- n -#}\n", "  {# c +#}\n", "{% raw %}{{ n }}\n{% endraw %}\n", " {%- raw -%} {% x %} {%- endraw -%} "])

    def output(self, d):
        return "{{" + self.r.choice(["", "", "-"]) + " " + self.any(d) + " " + self.r.choice(["", "", "-"]) + "}}"

    def target(self):
        return self.r.choice(["x", "y", "x, y", "ns.v"])

    def statement(self, d):
        r, t = self.r, self.tag
        if d <= 0: return self.pick(lambda: self.output(2), self.text, lambda: t(f"set {self.target()} = {self.any(1)}"))
        body = lambda: self.body(d - 1)
        return self.pick(
            lambda: self.output(3), lambda: self.output(2), self.text, lambda: t(f"set {self.target()} = {self.any(2)}"), lambda: t("set x, y = [1, s]"), lambda: t(f"set x{d}{r.choice(['', ' | upper', ' | trim | title'])}") + body() + t("endset") + "{{ x%d }}" % d,
            lambda: t(f"if {self.any(2)}") + body() + (t(f"elif {self.boolean(1)}") + body() if r.random() < .4 else "") + (t("else") + body() if r.random() < .5 else "") + t("endif"),
            lambda: t(f"for {r.choice(['x', 'x', 'k, v'])} in {r.choice([self.seq(1), self.any(1), 'd|items', 'd.items()', 'd', 's', 'rows'])}" + (f" if {self.boolean(1)}" if r.random() < .2 else "")) + body() + self.loop_part(d) + (t("else") + body() if r.random() < .3 else "") + t("endfor"),
            lambda: t(f"macro mac(x, y={self.any(1)})") + body() + t("endmacro") + "{{ mac(" + r.choice(["", "1", "s, n", "y=2", "1, y=l", "1, 2, 3", "z=1"]) + ") }}", lambda: t("filter upper") + body() + t("endfilter"))

    def loop_part(self, d):
        t = self.tag
        return self.r.choice(["", "{{ loop.index }}{{ loop.last }},", "{{ loop.revindex0 ~ loop.first ~ loop.length }}", "{{ loop.previtem }}|{{ loop.nextitem is defined }}", t("if loop.index > 1") + t("break") + t("endif"), t("if loop.first") + t("continue") + t("endif") + "{{ x }}", "{{ loop.cycle('a', 'b') }}", t("set ns.v = loop.index0")])

    def body(self, d):
        return "".join(self.statement(d) for _ in range(self.r.randint(0, 3)))


def run_snippets(name, make):
    r = random.Random(name)
    cases = [{"template": make(Snippets(r)), "messages": [], "options": OPTIONS, "as_is": True} for _ in range(SNIPPETS)]
    texts = bad = 0
    failures = []
    for case, got in zip(cases, ours(cases)):
        try:
            want = reference(ENV.from_string(case["template"]), case)
        except jinja2.TemplateSyntaxError:
            want = "error", None
        texts += want[0] == "text"
        if want[0] == "error" and got.get("code") == Q_EINPUT: continue
        if want[0] == "error" or got.get("text") != want[1]: failures.append((case["template"], want, got))
    if failures:
        failures.sort(key=lambda f: len(f[0]))
        pytest.fail(f"{len(failures)} of {SNIPPETS} differ:\n" + "\n".join(f"{t!r}\n  want {w}\n  got  {g}" for t, w, g in failures[:12]))
    assert texts > SNIPPETS // 5


def test_expressions():
    run_snippets("expressions", lambda g: "{{ " + g.any(4) + " }}")


def test_statements():
    run_snippets("statements", lambda g: "{% set ns = namespace(v=0) %}" + g.r.choice(["", "{% set s = s|upper if s is defined else 1 %}"]) + g.body(3) + g.body(3) + g.r.choice(["", "\n", "\n\n"]) + "{{ x }}{{ ns.v }}")
