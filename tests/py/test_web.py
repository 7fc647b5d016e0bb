"""The chat page in a real browser: against quarry-serve, and against a fake server where answers must be hostile, slow or wrong."""
import itertools
import json
import pathlib
import tempfile
import time

import pytest

from browser import CHROMIUM, Browser
from fake_openai import Error, Fake, chunk, said, usage
from programs import BUILD, goldens
from test_server import Server

pytestmark = [
    pytest.mark.skipif(not CHROMIUM, reason="needs chromium (Debian's package)"),
    pytest.mark.skipif(not (BUILD / "quarry-serve").exists(), reason="needs quarry-serve built"),
]
SURE = {"temperature": 0, "thinking": "off"}
OSLO = "The capital of Norway is Oslo."


@pytest.fixture(scope="module")
def browser():
    b = Browser()
    yield b
    b.close()


@pytest.fixture(scope="module")
def server():
    s = Server("quarry-serve")
    s.url = f"http://127.0.0.1:{s.port}/"
    yield s
    assert s.stop() == 0


@pytest.fixture(scope="module")
def page_of(server):
    """The page's bytes and headers, as the real server gives them."""
    status, headers, body = server.get("/")
    assert status == 200
    return body, {name: headers[name] for name in ("Content-Type", "Content-Security-Policy")}


@pytest.fixture
def fake(page_of):
    f = Fake(*page_of)
    yield f
    f.close()


@pytest.fixture
def page(browser):
    p = browser.page()
    yield p
    p.js("0")  # takes what events came meanwhile
    assert not p.errors, p.errors
    p.close()


def visit(page, server, **settings):
    page.open(server.url)
    if settings:
        page.js(f"localStorage.setItem('quarry.settings', {json.dumps(json.dumps(settings))})")
        page.reload()
    page.wait("document.getElementById('model').textContent")


def put(page, text):
    page.js("document.getElementById('input').focus()")
    page.type(text)


def press(page, label, within="body"):
    """Clicks the last visible button with this text or label."""
    find = f"""[...document.querySelectorAll('{within} button')].filter(b => b.checkVisibility({{visibilityProperty: true}}) &&
               (b.textContent === {json.dumps(label)} || b.ariaLabel === {json.dumps(label)})).at(-1)"""
    page.wait(f"!!({find})")
    page.js(f"({find}).click()")


def idle(page):
    page.wait("document.getElementById('stop').hidden && document.querySelector('#log').ariaBusy === 'false'")


def ask(page, text):
    put(page, text)
    page.key("Enter", 13)
    page.wait("!document.getElementById('input').value")
    idle(page)
    return page.js("document.querySelector('#log .assistant:last-child .content')?.innerText")


def until(true, seconds=15):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def notice(page):
    return page.js("document.getElementById('notice').hidden ? null : document.getElementById('notice').textContent")


def count(page, selector):
    return page.js(f"document.querySelectorAll({json.dumps(selector)}).length")


# --- the real server --------------------------------------------------------------------------------------------------

def test_the_page_is_one_file_that_reaches_nothing_else(page_of):
    body, headers = page_of
    assert b"@style@" not in body and b"\nimport " not in body and b" src=" not in body
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "connect-src 'self'" in policy


def test_a_question_is_answered_and_kept(page, server):
    visit(page, server, **SURE)
    assert page.js("document.getElementById('model').textContent") == "tiny"
    assert ask(page, "What is the capital of Norway?") == OSLO
    stats = page.js("document.querySelector('.stats').textContent")
    assert "8 tokens" in stats and "first after" in stats and "prompt 19 (0 cached)" in stats, stats
    assert "Oslo" in ask(page, "What is the capital of Norway?")
    assert "(0 cached)" not in page.js("[...document.querySelectorAll('.stats')].at(-1).textContent")
    assert "33" in ask(page, "Count from 3 to 33.") and "tok/s" in page.js("[...document.querySelectorAll('.stats')].at(-1).textContent")
    page.reload()
    page.wait("document.querySelectorAll('#chats li').length === 1")
    assert count(page, "#log .message") == 0
    page.js("document.querySelector('#chats .choose').click()")
    assert page.js("document.querySelector('#log .content').innerText") == OSLO and count(page, "#log .message") == 6
    assert page.js("document.getElementById('title').textContent") == "What is the capital of Norway?"


def test_thinking_is_folded_with_its_length(page, server):
    visit(page, server, temperature=0, thinking="on")
    assert ask(page, "What is 68 + 57?") == "68 + 57 = 125"
    assert page.js("document.querySelector('.thought').open") is False
    assert page.js("document.querySelector('.thought summary').textContent").endswith("· 46 characters")
    page.js("document.querySelector('.thought summary').click()")
    assert page.js("document.querySelector('.thought .plain').checkVisibility()")
    assert page.js("document.querySelector('.thought .plain').textContent").startswith("ones: 8 + 7 = 15")


def test_stop_frees_the_server(page, server):
    long = next(g for g in goldens() if len(g["prompt_ids"]) > 8000)["messages"][-1]["content"]
    visit(page, server, **SURE)
    before = server.counts()["cancelled_total"]
    put(page, long)
    page.key("Enter", 13)
    until(lambda: server.counts()["running"])
    time.sleep(0.2)  # who is gone at once may only have closed his sending half
    press(page, "Stop")
    idle(page)
    until(lambda: server.counts()["cancelled_total"] > before)
    assert notice(page) is None and count(page, ".message") == 1 and page.js("document.querySelector('.user .small').innerText").endswith("Try again")


def test_tables_and_code_of_the_model(page, server):
    visit(page, server, **SURE)
    table = next(g for g in goldens() if g["messages"][-1]["content"].startswith("Make a markdown table"))
    ask(page, table["messages"][-1]["content"])
    assert count(page, "table th") == 2 and count(page, "table tbody tr") == 4
    ask(page, "Write a C function divide that takes ints m and n.")
    assert page.js("document.querySelector('.code pre').textContent").startswith("int divide(int m, int n)\n{\n")
    page.js("navigator.clipboard.writeText = (text) => { window.clip = text; return Promise.resolve(); }")
    press(page, "Copy", ".code-bar")
    page.wait("document.querySelector('.code-bar .copy').textContent === 'Copied'")
    assert page.js("window.clip").endswith("return m / n;\n}")


def test_tools_are_called_and_answered(page, server):
    g = next(g for g in goldens() if g["tools"] and g["messages"][-1]["content"].startswith("Find the book"))
    visit(page, server, **SURE, tools=json.dumps(g["tools"]))
    ask(page, g["messages"][-1]["content"])
    assert page.js("document.querySelector('.call summary').textContent") == "Calls get_book"
    assert json.loads(page.js("document.querySelector('.call code').textContent")) == {"title": "The Purple Hugo", "pages": 188}
    page.js("document.querySelector('.results textarea').value = '{\"ok\": true, \"value\": 8}'")
    press(page, "Send results")
    page.wait("document.querySelectorAll('.content').length === 2")
    idle(page)
    assert notice(page) is None and page.js("[...document.querySelectorAll('.content')].at(-1).innerText")


def test_a_key_is_asked_for_once(page):
    with tempfile.NamedTemporaryFile("w", suffix=".keys") as keys:
        keys.write("sesame-open-now\n")
        keys.flush()
        server = Server("quarry-serve", "--api-key-file", keys.name)
        server.url = f"http://127.0.0.1:{server.port}/"
        try:
            page.open(server.url)
            for key, line in (("wrong", "wants an API key"), ("sesame-open-now", "not known")):
                page.wait(f"document.querySelector('dialog[open] p')?.textContent.includes({json.dumps(line)})")
                page.js("document.querySelector('dialog[open] input').focus()")
                page.type(key)
                page.key("Enter", 13)
            page.wait("document.getElementById('model').textContent === 'tiny'")
            page.reload()
            page.wait("document.getElementById('model').textContent === 'tiny'")
            assert count(page, "dialog[open]") == 0
            page.js(f"localStorage.setItem('quarry.settings', '{json.dumps(SURE)}')")
            page.reload()
            assert ask(page, "What is the capital of Norway?") == OSLO
        finally:
            server.stop()
    put(page, "Are you there?")
    page.key("Enter", 13)
    page.wait("!document.getElementById('notice').hidden")
    assert notice(page).startswith("The server does not answer.") and "Try again" in notice(page)


# --- conversations ----------------------------------------------------------------------------------------------------

def test_rename_export_delete(page, fake, browser):
    visit(page, fake)
    fake.answers = [said("one", {"reasoning_content": "no"}), said("two")]
    ask(page, "first")
    press(page, "New chat")
    ask(page, "second")
    assert count(page, "#chats li") == 2
    press(page, "Rename")
    page.wait("document.querySelector('dialog[open] input')")
    page.js("document.querySelector('dialog[open] input').value = 'Zweite <b>'; document.querySelector('dialog[open] .main').click()")
    page.wait("document.getElementById('title').textContent === 'Zweite <b>'")
    with tempfile.TemporaryDirectory() as folder:
        browser.call("Browser.setDownloadBehavior", behavior="allow", browserContextId=page.context, downloadPath=folder)
        press(page, "Export")
        until(lambda: list(pathlib.Path(folder).glob("*.json")))
        file = next(pathlib.Path(folder).glob("*.json"))
        whole = json.loads(file.read_text(encoding="utf-8"))
    assert file.name == "Zweite b.json" and whole["title"] == "Zweite <b>"
    assert whole["messages"] == [{"role": "user", "content": "second"}, {"role": "assistant", "content": "two"}]
    press(page, "Delete")
    press(page, "Delete", "dialog[open]")
    page.wait("document.querySelectorAll('#chats li').length === 1")
    page.reload()
    page.wait("document.querySelectorAll('#chats li').length === 1")
    assert page.js("document.querySelector('#chats .choose').textContent") == "first"


def test_edit_and_regenerate(page, fake):
    visit(page, fake)
    fake.answers = [said("one"), said("two"), said("three")]
    ask(page, "first")
    press(page, "Regenerate")
    page.wait("document.querySelector('#log .content')?.innerText === 'two'")
    idle(page)
    press(page, "Edit")
    page.wait("document.querySelector('.user textarea')")
    page.js("document.querySelector('.user textarea').value = 'changed'")
    press(page, "Send", ".user")
    page.wait("document.querySelector('#log .content')?.innerText === 'three'")
    idle(page)
    sent = [[m["content"] for m in r["messages"]] for r in fake.requests]
    assert sent == [["first"], ["first"], ["changed"]] and count(page, "#log .message") == 2


def test_the_store_is_bounded_and_damage_is_passed_over(page, fake):
    visit(page, fake)
    page.js("""for (const [i, n] of [1_500_000, 1_500_000, 900_000].entries()) localStorage.setItem('quarry.chat.' + i, JSON.stringify(
        {id: String(i), title: 'old ' + i, created: i, updated: i, messages: [{role: 'user', content: 'x'.repeat(n)}]}));
        localStorage.setItem('quarry.chat.bad', '{"id": 5}'); localStorage.setItem('quarry.chat.worse', '{');""")
    fake.named.clear()
    page.reload()
    page.wait("document.querySelectorAll('#chats li').length === 3")
    fake.answers = [said("y" * 400_000)]
    ask(page, "more")
    fake.named.set()  # the model's name comes late: it takes back nobody else's notice
    page.wait("document.getElementById('model').textContent")
    assert "old 0" in notice(page) and count(page, "#chats li") == 3
    assert page.js("localStorage.getItem('quarry.chat.0')") is None and page.js("!!localStorage.getItem('quarry.chat.1')")


# --- what is sent -----------------------------------------------------------------------------------------------------

def test_settings_are_sent_and_kept(page, fake):
    visit(page, fake)
    press(page, "Settings")
    page.wait("document.getElementById('settings').open")
    values = {"temperature": 0.25, "top_p": 0.9, "top_k": 7, "min_p": 0.05, "max_tokens": 33, "seed": 12}
    for name, value in values.items():
        page.js(f"document.getElementById('set-{name}').focus()")
        page.type(str(value))
    page.js("document.getElementById('set-system').focus()")
    page.type("Be kind.")
    page.js("const s = document.getElementById('set-thinking'); s.value = 'on'; s.dispatchEvent(new Event('change'))")
    page.js("document.getElementById('set-top_p').value = '7'; document.getElementById('set-top_p').dispatchEvent(new Event('input'))")
    press(page, "Done")
    page.reload()
    page.wait("document.getElementById('model').textContent")
    fake.answers = [said("ok"), said("ok")]
    ask(page, "hello")
    r = fake.requests[0]
    assert {name: r[name] for name in values} == values  # 7 is no top_p
    assert r["messages"] == [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "hello"}]
    assert r["chat_template_kwargs"] == {"enable_thinking": True} and r["stream"] and r["stream_options"] == {"include_usage": True}
    press(page, "Settings")
    press(page, "Defaults")
    press(page, "Done")
    ask(page, "again")
    assert set(fake.requests[1]) == {"messages", "stream", "stream_options"}


def test_enter_shift_enter_and_input_methods(page, fake):
    visit(page, fake)
    fake.answers = [said("네")]
    put(page, "안녕")
    page.key("Enter", 13, shift=True)
    page.type("세계")
    page.call("Input.imeSetComposition", text="한", selectionStart=1, selectionEnd=1)
    assert page.js("document.getElementById('input').value") == "안녕\n세계한"
    # As browsers report the key that ends a syllable: within the composition.
    page.key("Enter", 13)
    page.call("Input.dispatchKeyEvent", type="rawKeyDown", key="Process", code="Enter", windowsVirtualKeyCode=229)
    time.sleep(0.1)
    assert not fake.requests and count(page, ".message") == 0
    page.call("Input.insertText", text="한")
    assert page.js("document.getElementById('input').value").rstrip("\n").endswith("한")
    page.js("document.getElementById('input').value = '안녕\\n세계한'")
    page.key("Enter", 13)
    page.wait("document.querySelector('.assistant .content')?.innerText === '네'")
    assert fake.requests[0]["messages"][0]["content"] == "안녕\n세계한"


# --- what comes back --------------------------------------------------------------------------------------------------

HOSTILE = """<script>window.hit = 1</script> <img src=x onerror="window.hit = 2">

[click](javascript:window.hit=3) ![pic](https://evil.example/x.png) [ok](https://good.example/a?b=1) <https://auto.example>

<iframe src="javascript:parent.hit=4"></iframe> **<b onclick=1>**

| <script>window.hit = 5</script> | b |
|---|---|
| `<i>` | [x](data:text/html,<script>1</script>) |

```html"><script>window.hit = 6</script>
</code></pre><script>window.hit = 7</script>
```"""


def test_hostile_text_stays_text(page, fake):
    visit(page, fake)
    fake.answers = [said({"reasoning_content": HOSTILE}, *HOSTILE, {"tool_calls": [{"index": 0, "id": "<b>", "function": {
        "name": "<img src=x onerror=window.hit=8>", "arguments": "<script>window.hit=9</script>"}}]})]
    shown = ask(page, "<img src=x onerror='window.hit = 10'>")
    assert page.js("window.hit ?? null") is None
    assert count(page, "#log :is(img, script, iframe, b, i)") == 0
    assert "<script>window.hit = 1</script>" in shown and "<iframe" in shown
    assert page.js("[...document.querySelectorAll('#log a')].map(a => a.href)") == [
        "https://evil.example/x.png", "https://good.example/a?b=1", "https://auto.example/"]
    assert page.js("[...document.querySelectorAll('#log a')].every(a => a.rel.includes('noopener') && a.target === '_blank')")
    assert page.js("document.querySelector('.user').innerText").startswith("<img src=x")
    # Even a mistake in the page could not run it: the browser refuses text as HTML.
    assert page.js("try { document.body.innerHTML = '<p>'; false } catch (e) { e instanceof TypeError }")
    page.errors.clear()


MARKDOWN = r"""# Head *one* ##
Some **bold**, *slanted*, ***both***, ~~gone~~, snake_case_name, 2 * 3 * 4, \*kept\*, **한국어**는 `a*b*` and ``x`y``.
Next line; see https://a.example/x_(y)_z, or (https://b.example).

1. one
   - inner *a*
     - deep
   ```c
   int x;

   y
   ```
2. two

   more
- [x] done
* [ ] open

> quoted
> - list

---
| a | b |
|:-:|--:|
| `x|y` | **2** |
| only |

~~~
unclosed <b>"""


def test_markdown(page, fake):
    visit(page, fake)
    fake.answers = [said(*(MARKDOWN[i:i + 3] for i in range(0, len(MARKDOWN), 3)))]
    ask(page, "x")
    q = lambda selector: page.js(f"[...document.querySelectorAll('.content {selector}')].map(e => e.textContent)")
    assert q("h2") == ["Head one"] and q("h2 em") == ["one"]
    assert q("> p > strong") == ["bold", "both", "한국어"] and q("> p > em") == ["slanted"] and q("strong em") == ["both"] and q("del") == ["gone"]
    assert q("> p > code") == ["a*b*", "x`y"]
    assert "snake_case_name, 2 * 3 * 4, *kept*" in q("> p")[0] and count(page, ".content > p br") == 1
    assert page.js("[...document.querySelectorAll('.content a')].map(a => a.href)") == ["https://a.example/x_(y)_z", "https://b.example/"]
    assert page.js("document.querySelectorAll('.content > ol > li').length") == 2 and q("ol > li > ul > li > ul > li") == ["deep"]
    assert q("ol pre") == ["int x;\n\ny"] and q("ol > li:last-child > p") == ["more"]
    assert q("> ul > li") == ["☑ done", "☐ open"]
    assert q("blockquote > ul > li") == ["list"] and count(page, ".content hr") == 1
    assert q("th.center") == ["a"] and q("td.right") == ["2", ""] and q("td code") == ["x|y"]
    assert q("> .code pre") == ["unclosed <b>"]


SLOW = ["*a" * 40000, "**a *b " * 20000, "[" * 80000, "`a``b" * 20000, "_" * 80000, "> " * 40000, "- " * 40000, "|" * 80000,
        "```" + "a" * 80000 + "`", "https://a" + ")" * 80000, "#" + " " * 80000 + "x", "1. a\n" * 3000,
        "|a|b|\n|-" + "-" * 40000 + " " * 40000 + "x|\n", "  " * 40000 + "- x"]


def test_long_hostile_markdown_takes_no_time(page, fake):
    visit(page, fake)
    fake.answers = [said(text) for text in SLOW]
    for text in SLOW:
        began = time.monotonic()
        ask(page, "x")
        assert time.monotonic() - began < 8, f"{text[:20]}…: linear work takes a fraction of a second"
        press(page, "New chat")


def test_tool_calls_are_shown_and_answered(page, fake):
    tools = [{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}]
    visit(page, fake, tools=json.dumps(tools))
    call = lambda i, **more: {"tool_calls": [{"index": i, **more}]}
    fake.answers = [said({"content": None, **call(0, id="c1", type="function", function={"name": "get_weather", "arguments": ""})},
                         call(0, function={"arguments": '{"city": "서울", '}), call(0, function={"arguments": '"n": 12345678901234567890}'}),
                         call(1, id="c2", function={"name": "now", "arguments": "{}"}), finish="tool_calls"), said("Sunny.")]
    ask(page, "weather?")
    assert fake.requests[0]["tools"] == tools
    assert page.js("[...document.querySelectorAll('.call summary')].map(e => e.textContent)") == ["Calls get_weather", "Calls now"]
    assert page.js("document.querySelector('.call').open") is False
    assert "12345678901234567890" in page.js("document.querySelector('.call code').textContent")
    page.js("const [a, b] = document.querySelectorAll('.results textarea'); a.value = 'sun'; b.value = 'noon'")
    press(page, "Send results")
    page.wait("[...document.querySelectorAll('.content')].at(-1).innerText === 'Sunny.'")
    assert fake.requests[1]["messages"][1:] == [
        {"role": "assistant", "content": "", "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "서울", "n": 12345678901234567890}'}},
            {"id": "c2", "type": "function", "function": {"name": "now", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "sun"}, {"role": "tool", "tool_call_id": "c2", "content": "noon"}]


def test_a_stream_in_any_pieces(page, fake):
    visit(page, fake)
    whole = b"".join(said("안녕 ", "하세요 😀", finish="length")[:-1])
    ends = b": keep-alive\n\nevent: x\n" + whole.replace(b"\n", b"\r\n") + chunk(timings={"predicted_per_second": 43.21}) + b"data:[DONE]\n\n"
    fake.answers = [(ends[i:i + 1] for i in range(len(ends)))]
    assert ask(page, "x") == "안녕 하세요 😀"
    stats = page.js("document.querySelector('.stats').textContent")
    assert "cut off at the token limit" in stats and "43.2 tok/s" in stats and "5 tokens" in stats


def slow(n, seconds=0.03):
    yield from itertools.chain.from_iterable((chunk({"content": f"line {i}\n\n"}), seconds) for i in range(n))


def test_stop_keeps_what_came_and_reload_too(page, fake):
    visit(page, fake)
    fake.answers = [slow(2000), slow(2000)]
    put(page, "go")
    page.key("Enter", 13)
    page.wait("document.querySelectorAll('.content p').length > 3")
    page.key("Escape", 27)
    idle(page)
    assert "stopped" in page.js("document.querySelector('.stats').textContent") and notice(page) is None
    assert count(page, ".content p") > 3
    until(lambda: fake.left)
    press(page, "Regenerate")
    page.wait("document.querySelectorAll('.content p').length > 3")
    page.reload()
    page.js("document.querySelector('#chats .choose').click()")
    assert count(page, ".content p") > 3 and page.js("document.getElementById('stop').hidden")


def test_reading_is_not_disturbed(page, fake):
    visit(page, fake)
    page.js("window.log = document.getElementById('log'); 0")
    fake.answers = [itertools.chain(slow(60, 0.005), slow(60, 0.01), said("end"))]
    put(page, "go")
    page.key("Enter", 13)
    page.wait("document.querySelectorAll('.content p').length > 50")
    assert page.js("log.scrollHeight - log.scrollTop - log.clientHeight < 40")
    top = page.js("log.scrollTop -= 6")  # as a finger does
    page.wait("!document.getElementById('down').hidden")
    lines = count(page, ".content p")
    page.wait(f"document.querySelectorAll('.content p').length > {lines} + 9")
    assert page.js("log.scrollTop") == top
    page.js("log.scrollTop = 100")
    idle(page)
    assert page.js("log.scrollTop") == 100
    press(page, "To the newest message")
    assert page.js("log.scrollHeight - log.scrollTop - log.clientHeight < 40") and page.js("document.getElementById('down').hidden")


# --- what goes wrong --------------------------------------------------------------------------------------------------

def test_busy_and_refused(page, fake):
    visit(page, fake)
    busy = Error(429, "full", "queue_full", **{"Retry-After": "1"})
    fake.answers = [busy, said("at last"), Error(400, "field 'x': no"), said("then")]
    put(page, "x")
    page.key("Enter", 13)
    page.wait("document.getElementById('notice').textContent.includes('busy; next try in 1 s')")
    page.wait("document.querySelector('.content')?.innerText === 'at last'")
    idle(page)
    assert notice(page) is None
    ask(page, "y")
    assert notice(page) == "The server refused (400): field 'x': no Try again"
    press(page, "Try again")
    page.wait("[...document.querySelectorAll('.content')].at(-1).innerText === 'then'")
    assert count(page, ".message") == 4


def test_broken_streams(page, fake):
    visit(page, fake)
    fake.answers = [[chunk({"content": "half"})], [chunk({"content": "more"}), b'data: {"error": {"message": "out of luck", "code": "x"}}\n\n']]
    ask(page, "x")
    assert notice(page).startswith("The connection ended before the answer did.")
    assert "half" in page.js("document.querySelector('.content').innerText")
    press(page, "Try again")
    page.wait("document.getElementById('notice').textContent.includes('out of luck')")
    assert count(page, ".message") == 2


def test_loading_is_told_with_progress(page, fake):
    fake.loading = 0.42
    page.open(fake.url)
    page.wait("document.getElementById('notice').textContent.includes('being loaded… 42 %')")
    fake.loading = None
    page.wait("document.getElementById('model').textContent === 'fake'")
    assert notice(page) is None


# --- looks -------------------------------------------------------------------------------------------------------------

def test_korean(page, fake):
    page.call("Network.setUserAgentOverride", userAgent="Mozilla/5.0", acceptLanguage="ko-KR,ko")
    visit(page, fake)
    assert page.js("document.documentElement.lang") == "ko"
    assert page.js("document.getElementById('send').textContent") == "보내기"
    press(page, "설정")
    page.wait("document.getElementById('set-language')")
    change = "const s = document.getElementById('set-language'); s.value = '%s'; s.dispatchEvent(new Event('change'))"
    page.js("{" + change % "en" + "}")
    assert page.js("document.getElementById('send').textContent") == "Send" and page.js("document.documentElement.lang") == "en"
    page.js("{" + change % "ko" + "}")
    press(page, "완료")
    page.reload()
    fake.answers = [said({"reasoning_content": "음"}, "네", finish="length")]
    ask(page, "안녕")
    assert "토큰 한도에서 잘림" in page.js("document.querySelector('.stats').textContent")
    assert "생각함 · 1자" in page.js("document.querySelector('.thought summary').textContent")


def test_two_columns_on_a_desk(page, fake):
    visit(page, fake)
    box = lambda selector: page.js("['left', 'top', 'right', 'bottom'].map((side) => "
                                   f"document.querySelector('{selector}').getBoundingClientRect()[side])")
    side, main, composer = box("#side"), box("main"), box("#composer")
    width, height = page.js("[innerWidth, innerHeight]")
    assert side[:2] == [0, 0] and main[0] == side[2] and main[1:] == [0, width, height] and side[3] == height
    assert composer[3] == height and composer[2] <= width and not page.js("document.getElementById('shade').checkVisibility()")


def test_dark_and_light(page, fake):
    visit(page, fake)
    light = lambda: sum(page.js("getComputedStyle(document.body).backgroundColor.match(/[\\d.]+/g).map(Number)")) > 3 * 128
    for scheme in ("dark", "light"):
        page.colours(scheme)
        assert light() == (scheme == "light")
    press(page, "Settings")
    page.js("{const s = document.getElementById('set-theme'); s.value = 'dark'; s.dispatchEvent(new Event('change'))}")
    assert not light()
    page.reload()
    assert not light()


def test_phone(page, fake):
    page.phone()
    visit(page, fake)
    wide = ["x" * 300, "\n\n```\n" + "long " * 100 + "\n```\n\n| " + "wide | " * 30 + "\n|" + "---|" * 30 + "\n", "https://a.example/" + "y" * 300]
    fake.answers = [said({"reasoning_content": "z" * 300}, *wide)]
    put(page, "q" * 300)
    page.key("Enter", 13)  # a new line: fingers have no shift
    assert page.js("document.getElementById('input').value").endswith("\n") and not fake.requests
    press(page, "Send")
    page.wait("document.querySelector('.content table')")
    idle(page)
    page.js("document.querySelector('.thought').open = true")
    inside = "Math.max(document.documentElement.scrollWidth, document.body.scrollWidth, document.getElementById('log').scrollWidth) <= innerWidth"
    assert page.js("innerWidth") == 360 and page.js(inside)
    assert page.js("getComputedStyle(document.getElementById('side')).visibility") == "hidden"
    press(page, "Conversations")
    assert page.js("getComputedStyle(document.getElementById('side')).visibility") == "visible" and page.js(inside)
    press(page, "q" * 60)
    assert page.js("getComputedStyle(document.getElementById('side')).visibility") == "hidden"
    press(page, "Settings")
    assert page.js("document.getElementById('settings').scrollWidth <= innerWidth") and page.js(inside)


def test_everything_has_a_name(page, fake):
    visit(page, fake)
    call = {"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}
    fake.answers = [said({"reasoning_content": "hm"}, "```\ncode\n```", {"tool_calls": [call]})]
    ask(page, "x")
    press(page, "Settings")
    nodes = page.call("Accessibility.getFullAXTree")["nodes"]
    page.js("document.getElementById('settings').close()")
    nodes += page.call("Accessibility.getFullAXTree")["nodes"]
    roles = {"button", "textbox", "spinbutton", "combobox", "log", "article", "dialog", "DisclosureTriangle"}
    found = [(n["role"]["value"], n.get("name", {}).get("value")) for n in nodes if not n["ignored"] and n["role"]["value"] in roles]
    assert {role for role, _ in found} >= {"button", "textbox", "spinbutton", "combobox", "log", "article", "dialog"}
    assert all(name for _, name in found), found
    # By keyboard alone: from the field to the button behind it.
    page.js("document.getElementById('input').focus()")
    page.key("Tab", 9)
    assert page.js("document.activeElement.id") == "send"
