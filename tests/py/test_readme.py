"""README.md and README.ko.md say the same: the same structure of headings, the same commands, the same pictures."""
import os
import pathlib
import re

ROOT = pathlib.Path(os.environ.get("QUARRY_SOURCE", pathlib.Path(__file__).parents[2]))


def parts(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    fences = re.findall(r"```(\w*)\n(.*?)```", text, re.S)
    outside = re.sub(r"```.*?```", "", text, flags=re.S)
    return {
        "levels of headings": [len(h) for h in re.findall(r"^(#+) ", outside, re.M)],
        "commands": [re.sub(r"\s*#.*", "", line) for lang, body in fences if lang == "sh" for line in body.splitlines()],
        "pictures": [body for lang, body in fences if lang == ""],
        "list items by section": [len(re.findall(r"^- ", s, re.M)) for s in re.split(r"^#+ ", outside, flags=re.M)],
        "table rows": len(re.findall(r"^\|", outside, re.M)),
        "code words": sorted(set(re.findall(r"`([^`]+)`", outside))),
    }


def test_both_languages_say_the_same():
    english, korean = parts("README.md"), parts("README.ko.md")
    for what in english:
        assert english[what] == korean[what], what


def test_the_two_commands_come_first():
    commands = parts("README.md")["commands"]
    assert commands[:2] == ["./quickstart", "./check"]
    for c in commands[:2]:
        assert os.access(ROOT / c, os.X_OK), c
