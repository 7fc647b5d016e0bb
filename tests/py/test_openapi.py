"""`/openapi.json` says what the server does: generated requests, right and wrong ones, get answers of the statuses and shapes it names."""
import json

import pytest

from programs import SOURCE
from test_server import Server

schemathesis = pytest.importorskip("schemathesis", reason="needs PyPI schemathesis")
hypothesis = pytest.importorskip("hypothesis", reason="needs PyPI hypothesis")

# What a template or a tokenizer refuses beyond the schema's types is refused rightly.
from schemathesis.specs.openapi.checks import positive_data_acceptance as ACCEPTED
EXAMPLES = 12  # requests an operation, of right ones and of wrong ones
SCHEMA = schemathesis.openapi.from_dict(json.loads((SOURCE / "server/openapi.json").read_text()))
OPERATIONS = {f"{op.method.upper()} {op.path}": op for op in (result.ok() for result in SCHEMA.get_all_operations())}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    s = Server("quarry-serve", "-c", "256", "--queue", "40", "--slot-save-path", tmp_path_factory.mktemp("slots"))  # answers end with the context
    yield s
    assert s.stop() == 0


@pytest.mark.parametrize("mode", list(schemathesis.GenerationMode), ids=lambda m: m.name.lower())
@pytest.mark.parametrize("name", OPERATIONS)
def test_operation(served, name, mode):
    tried = []

    @hypothesis.settings(max_examples=EXAMPLES, deadline=None, derandomize=True, suppress_health_check=list(hypothesis.HealthCheck), database=None)
    @hypothesis.given(case=OPERATIONS[name].as_strategy(generation_mode=mode))
    def one(case):
        tried.append(case.call_and_validate(base_url=f"http://127.0.0.1:{served.port}", timeout=60, excluded_checks=[ACCEPTED]))
    try:
        one()
    except hypothesis.errors.Unsatisfiable:  # an operation without parameters has no wrong ones
        assert not OPERATIONS[name].body
    assert tried or not OPERATIONS[name].body


def test_it_lives_after_all(served):
    assert served.chat(messages=[{"role": "user", "content": "hi"}], max_tokens=3)[0] == 200
