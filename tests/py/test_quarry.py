"""The `quarry` program itself: verbs, siblings, usage, exit status."""
import os
import stat
import subprocess

QUARRY = os.path.join(os.environ["QUARRY_BUILD"], "quarry")


def run(*args, **more):
    p = subprocess.run([QUARRY, *args], capture_output=True, text=True, timeout=20, **more)
    return p.returncode, p.stdout, p.stderr


def test_version_and_help():
    status, out, err = run("--version")
    assert (status, err) == (0, "") and out.startswith("quarry ") and out.count("\n") == 1
    for word in ("--help", "-h", "help"):
        status, out, err = run(word)
        assert status == 0 and err == "" and all(verb in out for verb in ("run", "chat", "show", "eval", "bench", "serve", "tune", "gen"))
    for verb in ("run", "chat", "show", "eval", "bench", "doctor", "serve", "tune", "gen"):
        assert run("help", verb) == run(verb, "--help") == run(verb, "-h") and run("help", verb)[0] == 0, verb
        assert run(verb, "--version")[0] == 0, verb


def test_usage():
    assert run()[0] == 2
    for verb in ("nope", "", "-x", "../show", "a/b", "x" * 5000):
        status, out, err = run(verb)
        assert status == 2 and out == "" and err.count("\n") == 1 and err.endswith("(`quarry --help` lists the verbs)\n")


def test_wrong_options_are_one_line():
    """Every verb says what is wrong and where to look, and nothing else."""
    for verb in ("run", "chat", "eval", "bench", "doctor", "show", "serve", "tune"):
        hint = "(`quarry %s --help` lists the options)\n" % verb
        for args, part in ((["--fly"], "--fly"), (["-Z"], "-Z"), ([{"doctor": "--pci", "show": "--format"}.get(verb, "-m")], "value")):
            status, out, err = run(verb, *args)
            assert status == 2 and out == "" and err.count("\n") == 1, (verb, args, err)
            assert part in err and err.endswith(hint), (verb, args, err)
    for verb, *args in (("run", "-c", "0"), ("run", "--debug=x"), ("chat", "--temp", "x"), ("bench", "--numerics", "x"), ("serve", "--port", "99999")):
        status, out, err = run(verb, *args)
        assert status == 2 and err.count("\n") == 1 and "--help" in err, err


def test_sibling_on_the_path(tmp_path):
    """A verb that is not built in starts quarry-VERB, with the arguments that follow and its exit status."""
    program = tmp_path / "quarry-hello"
    program.write_text('#!/bin/sh\necho "hello $*"\nexit 7\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    env = dict(os.environ, PATH="%s:%s" % (tmp_path, os.environ["PATH"]))
    assert run("hello", "a", "b c", env=env) == (7, "hello a b c\n", "")


def test_a_sibling_is_started_under_its_own_name():
    assert run("gen", "--version")[:2] == (0, "quarry-gen " + run("--version")[1].removeprefix("quarry "))
    assert run("serve", "--version")[0] == 0


def test_sibling_beside_the_program(tmp_path):
    """One beside the program wins over the PATH."""
    there = tmp_path / "bin"
    there.mkdir()
    for folder, text in ((there, "beside"), (tmp_path, "path")):
        program = folder / "quarry-hello"
        program.write_text("#!/bin/sh\necho %s\n" % text)
        program.chmod(0o755)
    copy = there / "quarry"
    with open(QUARRY, "rb") as src:
        copy.write_bytes(src.read())
    copy.chmod(0o755)
    env = dict(os.environ, PATH="%s:%s" % (tmp_path, os.environ["PATH"]))
    p = subprocess.run([str(copy), "hello"], capture_output=True, text=True, timeout=20, env=env)
    assert (p.returncode, p.stdout) == (0, "beside\n")


def test_an_unknown_option_or_verb_names_the_nearest():
    for verb, word, meant in (("run", "--tmp", "--temp"), ("run", "--promt=x", "--prompt"), ("run", "-temp", "--temp"), ("serve", "--paralel", "--parallel"),
                              ("chat", "--sytem", "--system"), ("show", "--presets", "--preset"), ("tune", "--effrot", "--effort"), ("gen", "--shap", "--shape"),
                              ("bench", "--deptsh", "--depths"), ("tune", "explian", "explain"), ("doctor", "--quik", "--quick")):
        status, out, err = run(verb, word, "x")
        assert status == 2 and out == "" and err.count("\n") == 1 and f"is '{meant}' meant?" in err, (verb, word, err)
    for word, meant in (("rnu", "run"), ("server", "serve"), ("llama-cli", "run"), ("perplexity", "eval"), ("shwo", "show")):
        assert f"is '{meant}' meant?" in run(word)[2], word
    for args in (["run", "--fly"], ["run", "--zzzzzzzz"], ["pull"]):
        assert "meant" not in run(*args)[2], args


def test_an_option_of_llama_cpp_is_no_bundle_of_letters():
    """`-ngl 99` would be -n with the value gl. What stands here for it is named, or that nothing has to."""
    for verb in ("run", "chat", "bench", "eval", "serve"):
        for words, part in (("-ngl 99", "nothing is needed"), ("--n-gpu-layers=99", "nothing is needed"), ("-fa on", "nothing is needed"),
                            ("--flash-attn on", "nothing is needed"), ("-ctk q8_0", "--kv-k F: f16, q8"), ("--cache-type-k q8_0", "--kv-k F: f16, q8"),
                            ("-ctv q4_0", "--kv-v F: f16, q8"), ("--ctx-size 4096", "-c N"), ("--no-mmap", "nothing is needed"), ("-hf a/b", "behind -m")):
            status, out, err = run(verb, "-m", "x", *words.split())
            option = words.split()[0]
            assert status == 2 and out == "" and err.count("\n") == 1, (verb, words, err)
            assert err.startswith(f"quarry {verb}: unknown option '{option}': ") and part in err, (verb, words, err)
    assert "--seed N" in run("run", "-s", "1")[2] and "--cache-host SIZE" in run("serve", "-cram", "0")[2] and "--kv-k F" in run("tune", "plan", "-ctk", "q8_0")[2]
    assert "-c N" in run("show", "x", "--ctx-size", "1")[2]


def test_a_text_may_look_like_an_option():
    assert "missing.gguf" in run("run", "-m", "missing.gguf", "-p", "-ngl")[2]
    assert "missing.gguf" in run("run", "-mmissing.gguf", "-c4096", "-n5", "-p", "x")[2]


def test_counts_of_tokens_and_sizes_have_suffixes():
    assert "missing.gguf" in run("run", "-m", "missing.gguf", "-c", "10M", "-p", "x")[2]
    assert "as 256K or 1M, not '10G'" in run("run", "-m", "missing.gguf", "-c", "10G", "-p", "x")[2]
    for option in ("--cache-device", "--cache-host", "--cache-disk"):
        status, out, err = run("serve", "-m", "missing.gguf", option, "1")
        assert status == 2 and f"{option} expects a size with its unit, as 8GiB or 512MiB, or 0 for none, not '1'" in err and err.count("\n") == 1, err
        assert "missing.gguf" in run("serve", "-m", "missing.gguf", option, "0")[2]


def test_of_an_option_given_twice_the_last_counts_and_that_is_told():
    """As with llama.cpp: a script's options can be overruled by who calls it, but nobody's second prompt vanishes unseen."""
    tiny = os.path.join(os.environ["QUARRY_SOURCE"], "tests/models/tiny.gguf")
    for verb, args, told in (("run", ["-p", "a", "-n", "5", "--prompt", "b", "-n", "6"], ["-n was given more than once: '6' counts, '5' does not",
                                                                                     "-p was given more than once: 'b' counts, 'a' does not"]),
                             ("run", ["--temp", "1", "-p", "x", "--temp", "0"], ["--temp was given more than once: '0' counts, '1' does not"]),
                             ("run", ["-p", "x", "--temp", "1", "--temp", "1"], []),
                             ("serve", ["--port", "1", "--port", "2"], ["--port was given more than once: '2' counts, '1' does not"]),
                             ("serve", ["--api-key", "k1", "--api-key", "k2", "--cors", "http://a", "--cors", "http://b"], [])):
        status, out, err = run(verb, "-m", "one.gguf", *args, "-m", "missing.gguf")
        assert "missing.gguf: cannot open" in err and "one.gguf: " not in err, err
        told = ["-m was given more than once: 'missing.gguf' counts, 'one.gguf' does not", *told]
        assert [line[2:] for line in err.splitlines() if "more than once" in line] == sorted(told, key=lambda t: (t[1] == "-", t)), err
        assert "more than once" not in run(verb, "-q", "-m", "one.gguf", *args, "-m", "missing.gguf")[2]
    assert '"message":"-m was given more than once' in run("serve", "--log-json", "-m", "a", "-m", "missing.gguf")[2]
    status, out, err = run("show", tiny, "--parallel", "1", "--parallel", "2", "--fit", "8GiB")
    assert status == 0 and err == "# --parallel was given more than once: '2' counts, '1' does not\n"
    status, out, err = run("tune", "list", "--numerics", "strict", "--numerics", "free", "--device", "cpu")
    assert status == 0 and err.startswith("quarry-tune: --numerics was given more than once: 'free' counts, 'strict' does not\n")


def test_help_fits_a_terminal_of_100_columns():
    tunes = ("plan", "explain", "verify", "compare", "list", "export", "build", "import", "trust", "contribute", "admit")
    verbs = [["run"], ["chat"], ["show"], ["eval"], ["bench"], ["bench", "--url", "x"], ["doctor"], ["serve"], ["gen"], ["tune"], *(["tune", t] for t in tunes)]
    for verb in [[], *verbs]:
        status, out, err = run(*verb, "--help")
        assert status == 0 and out.count("\n") >= 2
        for line in out.splitlines():
            assert len(line) <= 100, (verb, line)
