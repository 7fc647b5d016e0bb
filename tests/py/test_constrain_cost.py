"""What a constrained answer costs beside a free one, end to end: tokens a second of a server's own count, turn by turn, medians. A measurement, so
only with QUARRY_SLOW; QUARRY_COST_MODEL names another model than the test's, whose vocabulary of 4096 tokens makes small masks. For a machine that
does nothing else: other programs take more from a turn than a constraint does, which is some 10 us a token (test_constrain.py, in thread's time)."""
import json
import os
import statistics
import pytest
from programs import TINY
from test_server import Server

pytestmark = pytest.mark.skipif(not os.environ.get("QUARRY_SLOW"), reason="a measurement: QUARRY_SLOW")

SCHEMA = {"type": "object", "properties": {"text": {"type": "string", "minLength": 60}, "n": {"type": "integer"}}, "required": ["text", "n"]}
FORMS = {"free": {}, "schema": {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}},
         "object": {"response_format": {"type": "json_object"}},
         "grammar": {"grammar": 'root ::= line+\nline ::= [^\\n]{1,80} "\\n"'}}
TURNS, TOKENS, MOST = 12, 200, 0.05


def test_a_constraint_costs_less_than_a_twentieth():
    rates = {name: [] for name in FORMS}
    s = Server("quarry-serve", "-m", os.environ.get("QUARRY_COST_MODEL", TINY))
    try:
        for i in range(TURNS):
            for name, form in FORMS.items():
                ask = {"messages": [{"role": "user", "content": f"Say {i} words about stars."}], "max_tokens": TOKENS, "ignore_eos": True, "seed": i,
                       "chat_template_kwargs": {"enable_thinking": False}, **form}
                times = json.loads(s.ask("POST", "/v1/chat/completions", ask)[2])["timings"]
                if times["predicted_n"] >= TOKENS // 2:
                    rates[name].append(times["predicted_per_second"])
    finally:
        s.stop()
    middle = {name: statistics.median(v) for name, v in rates.items()}
    for name in ("schema", "object", "grammar"):
        assert middle[name] > (1 - MOST) * middle["free"], middle
