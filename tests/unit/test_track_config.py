"""Settings of tracking: what cannot be is refused, with what is accepted."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from fragtrack.errors import ConfigError
from fragtrack.track_config import TrackConfig

SECONDS = [field.name for field in fields(TrackConfig) if field.type == "float"]
SWITCHES = [field.name for field in fields(TrackConfig) if field.type == "bool"]


@pytest.mark.parametrize(
    ("name", "value", "accepted"),
    [
        ("profile", "linux-2.6", "linux-6.18, pre-6.1"),
        ("profile", None, "linux-6.18, pre-6.1"),
        ("checksum", "on", "offload, verify, ignore"),
        ("checksum", 1, "offload, verify, ignore"),
        ("zones", "ports", "vlan, none"),
        ("rst_inexact_timeout", "never", "close, unacknowledged"),
        ("max", 0, "from 1 to 268435456"),
        ("max", 268_435_457, "from 1 to 268435456"),
        ("max", 10.0, "a whole number"),
        ("max", True, "a whole number"),
        ("max", None, "a whole number"),
        ("tcp_max_retrans", -1, "from 0 to 255"),
        ("tcp_max_retrans", 256, "from 0 to 255"),
        ("tcp_max_retrans", "3", "a whole number"),
        ("hash_key", -1, "from 0 to 340282366920938463463374607431768211455"),
        ("hash_key", 1 << 128, "from 0 to 340282366920938463463374607431768211455"),
        ("hash_key", b"key", "a whole number"),
    ],
)
def test_a_setting_that_cannot_be_is_refused(name: str, value: Any, accepted: str) -> None:  # noqa: ANN401
    with pytest.raises(ConfigError) as caught:
        TrackConfig(**{name: value})
    assert str(caught.value).startswith(f"{name} is {value!r}; it must be ")
    assert accepted in str(caught.value)


@pytest.mark.parametrize("name", SWITCHES)
@pytest.mark.parametrize("value", [0, 1, None, "yes"])
def test_a_switch_is_true_or_false(name: str, value: Any) -> None:  # noqa: ANN401
    with pytest.raises(ConfigError, match=f"{name} is {value!r}; it must be True or False"):
        TrackConfig(**{name: value})


@pytest.mark.parametrize("name", SECONDS)
@pytest.mark.parametrize(
    ("value", "accepted"),
    [
        (0, "above 0 and at most 2147483647 seconds"),
        (-1, "above 0 and at most 2147483647 seconds"),
        (2_147_483_648, "above 0 and at most 2147483647 seconds"),
        (float("nan"), "above 0 and at most 2147483647 seconds"),
        (float("inf"), "above 0 and at most 2147483647 seconds"),
        (True, "a number of seconds"),
        ("30", "a number of seconds"),
        (None, "a number of seconds"),
    ],
)
def test_a_timeout_is_a_number_of_seconds(name: str, value: Any, accepted: str) -> None:  # noqa: ANN401
    with pytest.raises(ConfigError) as caught:
        TrackConfig(**{name: value})
    assert str(caught.value) == f"{name} is {value!r}; it must be {accepted}"


@pytest.mark.parametrize(
    ("assignments", "message"),
    [
        ({"tcp_loos": "0"}, "tcp_loos: no such setting; there are profile, checksum"),
        ({"net.netfilter.nf_conntrack_max": "many"}, "max is 'many'; it must be a whole number"),
        ({"tcp_loose": "2"}, "tcp_loose is '2'; it must be 0 or 1"),
        ({"udp_timeout": "soon"}, "udp_timeout is 'soon'; it must be a number"),
        ({"udp_timeout": "nan"}, "udp_timeout is nan; it must be above 0"),
        ({"nf_conntrack_checksum": "2"}, "checksum is '2'; it must be one of offload"),
    ],
)
def test_a_setting_as_text_that_cannot_be_is_refused(
    assignments: dict[str, str], message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        TrackConfig().set(assignments)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("prefix", "name", "text", "value"),
    [
        ("net.netfilter.nf_conntrack_", "max", "0x100", 256),
        ("net/netfilter/nf_conntrack_", "tcp_timeout_close", "2.5", 2.5),
        ("netfilter/nf_conntrack_", "tcp_be_liberal", "1", True),
        ("nf_conntrack_", "checksum", "0", "ignore"),
        ("nf_conntrack_", "checksum", "1", "verify"),
        ("", "gap_tolerant", "yes", True),
        ("", "tcp_loose", "OFF", False),
        ("", "profile", "pre-6.1", "pre-6.1"),
    ],
)
def test_settings_as_text(prefix: str, name: str, text: str, value: Any) -> None:  # noqa: ANN401
    assert getattr(TrackConfig().set({prefix + name: text}), name) == value
