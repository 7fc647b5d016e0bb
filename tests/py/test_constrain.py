"""Constrained output against independent judges: random schemas, whose walks jsonschema must find valid and whose valid values must be taken in
every way of writing them; random regular expressions against Python's; and `quarry run` from end to end."""
import json
import os
import random
import re
import subprocess

import pytest

from programs import BUILD, TINY, environment, quarry, refused, verb

jsonschema = pytest.importorskip("jsonschema", reason="needs PyPI jsonschema")


class Probe:
    def __init__(self, model=TINY):
        self.p = subprocess.Popen([BUILD / "constrain_probe", model], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment())

    def ask(self, *words):
        self.p.stdin.write(" ".join(map(str, words)).encode() + b"\n")
        self.p.stdin.flush()
        return self.p.stdout.readline().decode().split(" ", 2)

    def build(self, kind, text):
        answer = self.ask(kind, text.encode().hex())
        return None if answer[0] == "ok\n" else answer[2].strip()

    def takes(self, text):
        return self.ask("takes", text.encode().hex())[0].startswith("yes")

    def walk(self, seed, soft=40, most=400):
        """The text of a random walk; None: it was cut before its end, but is UTF-8 up to a character."""
        how, text = (self.ask("walk", seed, soft, most) + [""])[:2]
        assert how in ("done", "cut"), (how, text)
        text = bytes.fromhex(text.strip())
        return text.decode() if how == "done" else None


@pytest.fixture(scope="module")
def probe():
    p = Probe()
    yield p
    p.p.stdin.close()
    assert p.p.wait(10) == 0


# --- random schemas and values of them --------------------------------------------------------------------------------

KEYS = ["a", "b", "name", "한글", 'q"uote', "a/b", "na", "é\n"]
TEXTS = ["", "x", "hello world", "한글 é 😀", 'quote " back \\ slash /', "line\nend\ttab", "\x7f\u2028"]
PATTERNS = [("^[a-f]{2,4}$", lambda r: "".join(r.choices("abcdef", k=r.randint(2, 4)))),
            ("^\\d+(\\.\\d+)?$", lambda r: f"{r.randint(0, 999)}.{r.randint(0, 9)}"),
            ("ab|^c", lambda r: r.choice(["xaby", "cc", "ab"])), ("^(한|글)*$", lambda r: "".join(r.choices("한글", k=r.randint(0, 5))))]


def leaf(r):
    kind = r.randrange(12)
    if kind == 0:
        return {"type": "string"}, lambda: r.choice(TEXTS)
    if kind == 1:
        low, more = r.randint(0, 5), r.randint(0, 60)
        return {"type": "string", "minLength": low, "maxLength": low + more}, lambda: "".join(r.choices("ab한é😀\n\"", k=r.randint(low, low + more)))
    if kind == 2:
        pattern, make = r.choice(PATTERNS)
        return {"type": "string", "pattern": pattern}, lambda: make(r)
    if kind == 3:
        low, high = sorted((r.randint(-2000, 2000), r.randint(-2000, 2000)))
        return {"type": "integer", "minimum": low, "maximum": high}, lambda: r.randint(low, high)
    if kind == 4:
        low, high = sorted((round(r.uniform(-50, 50), r.randint(0, 3)), round(r.uniform(-50, 50), r.randint(0, 3))))
        return {"type": "number", "minimum": low, "maximum": high}, lambda: min(high, max(low, round(r.uniform(low, high), r.randint(0, 4))))
    if kind == 5:
        return {"type": "integer"}, lambda: r.randint(-10**15, 10**15)
    if kind == 6:
        return {"type": "number"}, lambda: r.choice([0, -1.5, 3e20, 1e-7, r.random(), r.uniform(-1e6, 1e6)])
    if kind == 7:
        return {"type": "boolean"}, lambda: r.random() < 0.5
    if kind == 8:
        values = r.sample([1, "a", None, [1, {"k": "v"}], "한/\n", True, -2.5], r.randint(1, 5))
        return {"enum": values}, lambda: r.choice(values)
    if kind == 9:
        return {"type": ["string", "null"]}, lambda: r.choice(TEXTS + [None])
    if kind == 10:
        form = r.choice(["date", "time", "date-time", "uuid"])
        make = {"date": lambda: f"{r.randint(1900, 2100)}-{r.randint(1, 12):02}-{r.randint(1, 28):02}",
                "uuid": lambda: "%08x-%04x-%04x-%04x-%012x" % tuple(r.getrandbits(b) for b in (32, 16, 16, 16, 48)),
                "time": lambda: f"{r.randint(0, 23):02}:{r.randint(0, 59):02}:{r.randint(0, 59):02}Z"}
        return {"type": "string", "format": form}, (lambda: make["date"]() + "T" + make["time"]()) if form == "date-time" else make[form]
    return True, lambda: r.choice([1, None, "x", [1, [2]], {"a": {"b": []}}])


def schema_and_value(r, depth=3):
    """A schema, and a function that makes a value of it."""
    kind = r.randrange(5) if depth else 4
    if kind == 0:
        keys = r.sample(KEYS, r.randint(0, 5))
        parts = {k: schema_and_value(r, depth - 1) for k in keys}
        needed = [k for k in keys if r.random() < 0.5]
        more = schema_and_value(r, 0) if r.random() < 0.3 else None
        schema = {"type": "object", "properties": {k: s for k, (s, _) in parts.items()}, "required": needed}
        if more:
            schema["additionalProperties"] = more[0]

        def make():
            value = {k: m() for k, (_, m) in parts.items() if k in needed or r.random() < 0.5}
            if more:
                value |= {k: more[1]() for k in ("zz", "nam", "names", "") if r.random() < 0.3}
            return value

        return schema, make
    if kind == 1:
        item, make_item = schema_and_value(r, depth - 1)
        low, high = r.randint(0, 2), r.randint(2, 5)
        return {"type": "array", "items": item, "minItems": low, "maxItems": high}, lambda: [make_item() for _ in range(r.randint(low, high))]
    if kind == 2:
        parts = [schema_and_value(r, depth - 1) for _ in range(r.randint(1, 3))]
        low = r.randint(0, len(parts))
        schema = {"prefixItems": [s for s, _ in parts], "type": "array", "minItems": low, "items": False}
        return schema, lambda: [m() for _, m in parts[:r.randint(low, len(parts))]]
    if kind == 3:
        parts = [schema_and_value(r, depth - 1) for _ in range(r.randint(1, 3))]
        return {"anyOf": [s for s, _ in parts]}, lambda: r.choice(parts)[1]()
    return leaf(r)


def judge(schema):
    cls = jsonschema.Draft202012Validator
    return cls(schema, format_checker=cls.FORMAT_CHECKER)


def spellings(value):
    ways = {"separators": (",", ":"), "ensure_ascii": False}, {}, {"indent": 2, "ensure_ascii": False}, {"indent": "\t"}
    return [json.dumps(value, **way) for way in ways]


@pytest.mark.parametrize("seed", range(60))
def test_random_schemas(probe, seed):
    r = random.Random(seed)
    schema, make = schema_and_value(r)
    valid = judge(schema)
    assert probe.build("schema", json.dumps(schema, ensure_ascii=r.random() < 0.5)) is None
    for _ in range(4):
        value = make()
        valid.validate(value)
        for text in spellings(value):
            assert probe.takes(text), (schema, text)
    ended = 0
    for k in range(8):
        text = probe.walk(seed * 100 + k)
        if text is not None:
            valid.validate(json.loads(text))
            ended += 1
    assert ended >= 4
    assert probe.ask("check", seed, 24)[0] == "same", schema


RECURSIVE = [
    {"$defs": {"node": {"type": "object", "properties": {"v": {"type": "integer"}, "kids": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
                        "required": ["v", "kids"], "additionalProperties": False}}, "$ref": "#/$defs/node"},
    {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"$ref": "#"}}]},
    {"definitions": {"a": {"type": "object", "properties": {"b": {"anyOf": [{"$ref": "#/definitions/a"}, {"type": "null"}]}}}}, "type": "object",
     "properties": {"x": {"$ref": "#/definitions/a"}, "y": {"allOf": [{"$ref": "#/definitions/a"}, {"required": ["b"]}]}}, "required": ["y"]},
    {"type": "object"}, True,
]


@pytest.mark.parametrize("schema", RECURSIVE, ids=range(len(RECURSIVE)))
def test_recursive_schemas(probe, schema):
    assert probe.build("schema", json.dumps(schema)) is None
    texts = [t for t in (probe.walk(k, 60, 800) for k in range(30)) if t is not None]
    assert len(texts) >= 15
    for text in texts:
        judge(schema).validate(json.loads(text))


def test_what_pydantic_writes(probe):
    text = {"title": "Text", "type": "string"}
    schema = {"$defs": {"Kind": {"enum": ["left", "right"], "title": "Kind", "type": "string"},
                        "Step": {"properties": {"explanation": text, "output": text},
                                 "required": ["explanation", "output"], "title": "Step", "type": "object", "additionalProperties": False}},
              "properties": {"steps": {"items": {"$ref": "#/$defs/Step"}, "title": "Steps", "type": "array"},
                             "kind": {"$ref": "#/$defs/Kind", "description": "which"},
                             "score": {"anyOf": [{"maximum": 1, "minimum": 0, "type": "number"}, {"type": "null"}],
                                       "default": None, "title": "Score"}},
              "required": ["steps", "kind", "score"], "title": "Answer", "type": "object", "additionalProperties": False}
    assert probe.build("schema", json.dumps(schema)) is None
    value = {"steps": [{"explanation": "a", "output": "b"}], "kind": "right", "score": 0.25}
    assert all(probe.takes(text) for text in spellings(value))
    for k in range(20):
        text = probe.walk(k, 60, 800)
        if text is not None:
            judge(schema).validate(json.loads(text))


# --- regular expressions ----------------------------------------------------------------------------------------------


def pattern(r, depth=3):
    kind = r.randrange(7) if depth else r.randrange(3)
    if kind == 0:
        return r.choice(["a", "b", "한", "\\.", "\\d", "[a-c]", "[^a]", "\\w", "x"])
    if kind <= 2:
        return r.choice(["a", "b", "[ab]", "ab"])
    if kind == 3:
        return pattern(r, depth - 1) + pattern(r, depth - 1)
    if kind == 4:
        return f"({pattern(r, depth - 1)}|{pattern(r, depth - 1)})"
    return f"(?:{pattern(r, depth - 1)}){r.choice(['*', '+', '?', '{2}', '{1,3}', '{3,9}', '{0,20}', '{2,}', '*?'])}"


@pytest.mark.parametrize("seed", range(40))
def test_random_patterns(probe, seed):
    r = random.Random(seed)
    p = pattern(r)
    whole, anywhere = re.compile(p, re.ASCII), r.random() < 0.5
    texts = ["".join(r.choices("ab한.1cx", k=r.randint(0, 6))) for _ in range(60)] + ["", "a", "b", "ab", "aab"]
    assert probe.build("regex", p) is None
    for text in texts:
        assert probe.takes(text) == bool(whole.fullmatch(text)), (p, text)
    for k in range(5):
        text = probe.walk(k, 5, 60)
        assert text is None or whole.fullmatch(text), (p, text)
    assert probe.ask("check", seed, 24)[0] == "same", p
    searched = f"^{p}$" if anywhere else p
    schema = {"type": "string", "pattern": f"^({p})$" if anywhere else p}
    assert probe.build("schema", json.dumps(schema)) is None
    for text in texts[:30]:
        assert probe.takes(json.dumps(text)) == bool(re.search(schema["pattern"], text, re.ASCII)), (searched, text)


# --- masks, however they are put together, against reading each token byte by byte --------------------------------------

SEVERAL = {"type": "object", "properties": {
    "kind": {"anyOf": [{"enum": ["alpha", "beta"]}, {"type": "string", "minLength": 3, "maxLength": 9}, {"type": "null"}]},
    "note": {"type": "string", "maxLength": 14}, "mark": {"type": "string", "minLength": 7}, "n": {"type": "number", "maximum": 90},
    "tags": {"type": "array", "items": {"type": "string", "pattern": "^[a-z ]{2,8}$"}}}, "required": ["kind", "note", "mark"]}
CALLS = [{"type": "function", "function": {"name": "look", "parameters": {
    "type": "object", "properties": {"at": {"type": "string"}, "how": {"type": "string", "maxLength": 12}}, "required": ["at", "how"]}}}]


def strings(rules, n=6):
    return {"type": "object", "properties": {f"k{i}": {"type": "string"} | rules(i) for i in range(n)}, "required": ["k0", "k1"]}


MASKED = [("schema", {"type": "object"}), ("schema", SEVERAL), ("tools", CALLS), ("regex", "[^<]{3,20}(</?[a-z]+>)?[^x]*"),
          ("gbnf", 'root ::= line{2,4} rest\nline ::= [^\\n]{1,12} "\\n"\nrest ::= ("if" | [^"]{4}) "." | [가-힣a-z]{2,9}'),
          ("gbnf", 'root ::= [^#] [^\\n]{2,9} "\\n" ([^a-d] [^\\n]{3} | "b" [0-9]{2} | "c") "\\n" [^ e] [^"]{5} "\\""'),
          ("gbnf", 'root ::= (word " ")* "end"\nword ::= [^ ]{1,7} | "\\"" [^"\\\\]* "\\""'),
          ("schema", strings(lambda i: {"maxLength": 5 + 3 * i})), ("schema", strings(lambda i: {"minLength": 2 * i, "maxLength": 4 + 3 * i})),
          ("schema", strings(lambda i: {"pattern": "^([a-zA-Z]{1,7} ?){2,9}$"})),
          ("schema", strings(lambda i: {"pattern": "^[^,;n]*$", "maxLength": 9 + i})),
          ("schema", {"type": "string", "pattern": "^[^,;n]*$", "maxLength": 300}),
          ("schema", strings(lambda i: {"pattern": "^([a-zA-Z]{1,12} ?){1,20}$", "minLength": 20 * i, "maxLength": 120}, 2)),
          ("schema", strings(lambda i: {"pattern": "^[a-z]{0,9}([é-흿][^a-e]{1,9}){1,4}$", "minLength": 3})),
          ("schema", {"type": "array", "items": {"type": "string", "maxLength": 12, "minLength": 1}, "minItems": 3, "maxItems": 9}),
          ("regex", "([a-zA-Z]{1,12} ){1,9}[a-zA-Z]{1,12}"), ("regex", "([A-Z]?[a-z]{2,5}[ .]?){3,20}"),
          ("regex", "([ऀ-ॿ가-힣a-z]{1,8}[ ,]){4}"),
          ("regex", "(\\\\[nu]|[^\\\\d]|.\\d{1,3}){20,40}"),
          ("regex", "([^\\n]{4}\\n|[^\\n]{2}\\n|[^\\n]\\n)*"), ("schema", strings(lambda i: {"pattern": "^(.[a-f]|.z|[^b].<){2,9}$"})),
          ("regex", "(([a-d]{1,3}|[ce😀-😎]{2})?x?){1,12}")]


@pytest.mark.parametrize("k", range(len(MASKED)))
def test_masks_are_what_accept_takes(k):
    p = Probe()
    assert p.ask("vocabulary", 5000, k + 1)[0] == "ok\n"
    kind, text = MASKED[k]
    assert p.build(kind, text if isinstance(text, str) else json.dumps(text)) is None
    for seed in range(4):
        how, *what = p.ask("check", seed, 60)
        assert how == "same", (kind, seed, what)
    p.p.stdin.close()
    assert p.p.wait(10) == 0


# --- patterns with lengths: two automata side by side, whose states stand for each other where that is proved ------------


def counted(r, depth=2):
    """A pattern in which counts are many, so that a text may be counted in several ways and what is still missing needs its room."""
    kind = r.randrange(6) if depth else 0
    if kind < 2:
        what = r.choice(["a", "[a-z]", "[^,;n]", "\\w", "[가-힣]", "[a-eé😀-😎]", "(ab?)", "."])
        return what + r.choice(["", "", "*", "+", "?", "{3}", "{1,12}", "{2,40}"])
    if kind == 2:
        return counted(r, depth - 1) + counted(r, depth - 1)
    if kind == 3:
        return f"({counted(r, depth - 1)}|{counted(r, depth - 1)})"
    return f"({counted(r, depth - 1)}{r.choice(['', ' ', ' ?', '-?x'])}){r.choice(['*', '+', '{1,20}', '{2,5}', '{0,3}', '{4}', '{12,}'])}"


def lengths(r):
    low, more = r.choice([0, 0, 1, 5, 14, 30]), r.choice([0, 3, 9, 25, 60])
    return r.choice([{"maxLength": low + more}, {"minLength": low, "maxLength": low + more}, {"minLength": low + more}])


def fits(text, rules):
    return (rules.get("minLength", 0) <= len(text) <= rules.get("maxLength", 1 << 30)
            and re.search(rules["pattern"].replace("$", "\\Z"), text, re.ASCII) is not None)


@pytest.fixture(scope="module")
def large():
    """Of as many ids as take a while to try one by one; long ones, and such as are half a character."""
    p = Probe()
    assert p.ask("vocabulary", 1500, 7)[0] == "ok\n"
    yield p
    p.p.stdin.close()
    assert p.p.wait(10) == 0


@pytest.mark.parametrize("seed", range(int(os.environ.get("QUARRY_PATTERNS", 24))))
def test_patterns_with_lengths(large, seed):
    r = random.Random(seed)
    rules = {"type": "string", "pattern": r.choice(["^{}$", "^{}$", "{}", "^{}"]).format("(" + counted(r) + ")")} | lengths(r)
    schema = {"type": "object", "properties": {"a": rules, "b": {"type": "array", "items": rules}}, "required": ["a"]} if seed % 3 == 0 else rules
    refusal = large.build("schema", json.dumps(schema))
    if refusal:
        assert "no text fits" in refusal or "states" in refusal, (rules, refusal)
        return
    for k in range(3):
        how, *what = large.ask("check", seed * 10 + k, r.choice([8, 30, 60]))
        assert how == "same", (rules, what)
    for k in range(5):
        text = large.walk(seed * 10 + k, 6, 400)
        values = [] if text is None else [json.loads(text)]
        if values and schema is not rules:
            values = [values[0]["a"], *values[0].get("b", [])]
        assert all(fits(v, rules) for v in values), (rules, text)
    assert large.build("schema", json.dumps(rules)) is None
    most = rules.get("maxLength", rules.get("minLength", 0) + 5)
    for k in range(40):
        text = "".join(r.choices("ab é한x-1,"[:r.randint(1, 10)], k=r.randint(0, most + 2)))
        assert large.takes(json.dumps(text, ensure_ascii=False)) == fits(text, rules), (rules, text)


# --- speed ------------------------------------------------------------------------------------------------------------


def test_masks_of_a_large_vocabulary():
    """248 320 ids, as the real models have. In time of the thread, so that a busy machine counts little; some 3 to 20 us on a quiet one,
    with what is met first."""
    p = Probe()
    assert p.ask("vocabulary", 248320)[0] == "ok\n"
    schema = {"type": "object", "properties": {"name": {"type": "string"}, "note": {"type": "string", "maxLength": 300},
                                               "tags": {"type": "array", "items": {"type": "string"}}},
              "required": ["name", "note", "tags"]}
    limits = {"type": "object", "properties": {k: {"type": "string", "maxLength": 20 + len(k)} for k in ("a", "bb", "ccc")}, "required": ["a", "bb"]}
    words = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^([a-zA-Z]{1,12} ){1,40}$"}}, "required": ["a"]}
    for text in ({"type": "object"}, schema, limits, words):
        assert p.build("schema", json.dumps(text)) is None
        n, mean, worst, accept = (int(x) for x in " ".join(p.ask("cost", 3, 300)).split())
        assert n > 20 and mean < 200_000 and accept < 100_000, (n, mean, worst, accept)
    p.p.stdin.close()
    assert p.p.wait(10) == 0


# --- quarry run -------------------------------------------------------------------------------------------------------

PERSON = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 20}, "age": {"type": "integer", "minimum": 1, "maximum": 99},
                                           "kind": {"enum": ["a", "b"]}}, "required": ["name", "age", "kind"]}


def run(*args):
    done = verb("run", *args)
    assert done.returncode == 0, done.err
    return done.stdout.decode()


@pytest.mark.parametrize("seed", range(4))
def test_an_answer_is_of_its_schema(seed):
    for think in ([], ["--think"]):
        out = run("-p", "Who are you?", "--json-schema", json.dumps(PERSON), "--temp", "1", "--seed", str(seed), *think)
        if think:
            assert out.startswith("<think>\n") and out.count("</think>") >= 1
            out = out.split("</think>", 1)[1]
        judge(PERSON).validate(json.loads(out))


def test_grammars_and_schemas_from_files(tmp_path):
    (tmp_path / "g.gbnf").write_text('root ::= "Seoul" | "Busan"\n')
    (tmp_path / "s.json").write_text(json.dumps(PERSON))
    assert run("-p", "Capital of Korea?", "--grammar", tmp_path / "g.gbnf") in ("Seoul\n", "Busan\n")
    assert re.fullmatch(r"[xy]{7}\n", run("--raw", "-p", "x", "--grammar", "root ::= [xy]{7}"))
    judge(PERSON).validate(json.loads(run("-p", "Hi", "--json-schema", tmp_path / "s.json")))


def test_what_is_no_grammar_is_refused(tmp_path):
    refused(verb("run", "-p", "x", "--grammar", "root ::= root"), "left recursion")
    refused(verb("run", "-p", "x", "--json-schema", '{"not": {}}'), "json_schema #: 'not' is not supported")
    before = (["--json-schema", tmp_path / "none"], "none: cannot open"), (["--json-schema", '{"type"'], "--json-schema: JSON at byte 7")
    for args, wrong in before:  # the model is not read for these
        done = verb("run", "-p", "x", *args)
        refused(done, wrong)
        assert "# memory" not in done.err
    refused(quarry("run", "-m", TINY, "-p", "x", "--json-schema", "{}", "--grammar", 'root ::= "a"'), "one of --grammar and --json-schema", status=2)
