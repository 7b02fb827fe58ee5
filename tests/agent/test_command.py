"""`pardbg agent`: what it refuses before it starts."""

import pytest
from click.testing import CliRunner

from pardbg.watchdog.commands.agent import agent
from pardbg.watchdog.errors import InputError


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--silent-after", "nan"], "not a number"),
        (["--silent-at-most", "inf"], "not in the range"),
        (["--keep-days", "nan"], "not a number"),
        (["--keep-gib", "inf"], "not in the range"),
        (["--silent-after", "400"], "above --silent-at-most"),
        (["--attach", "always"], "never"),
    ],
)
def test_options_that_make_no_sense_are_wrong_usage(options: list[str], words: str) -> None:
    result = CliRunner().invoke(agent, ["--state", "/nowhere", *options])

    assert result.exit_code == 2
    assert words in result.output


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--listen", "0.0.0.0:9475"], "beyond this machine, without TLS"),
        (["--listen", "127.0.0.1:99999"], "cannot listen"),
        (["--webhook", "example.org"], "must begin with http"),
        (["--agents", "n[01-"], "--agents"),
        (["--tls-cert", "/nowhere"], "belong together"),
    ],
)
def test_what_would_not_be_safe_or_cannot_be_is_one_sentence(options: list[str], words: str) -> None:
    result = CliRunner().invoke(agent, ["--state", "/dev/null/x", *options])

    assert isinstance(result.exception, InputError)
    assert words in str(result.exception)
