"""A request is checked before anything is looked up."""

import pytest

from jobs.catalog.builtin.request import checked_header, checked_statuses, is_expected, parsed_url


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("ftp://a.example/", "neither https"),
        ("//a.example/", "neither https"),
        ("https://", "names no host"),
        ("https://user:secret@a.example/", "user name or password"),
        ("https://user@a.example/", "user name or password"),
        ("https://a.example/\r\nHost: b", "control character"),
        ("https://a.ex\tample/", "control character"),
        ("https://a.example\\@b.example/", "backslash"),
        ("https://a.example:99999/", "is not a URL"),
        ("https://a.example:x/", "is not a URL"),
        ("https://[fe80::1%25eth0]/", "names no host"),
        ("https://[::zz]/", "is not a URL"),
        ("https://a%2eexample/", "names no host"),
        ("https://" + "a" * 300 + "/", "names no host"),
        ("https://a.example/" + "x" * 9000, "longer than 8,192"),
        ("https://a.example/\ud800", "surrogate"),
    ],
)
def test_a_wrong_url_is_refused(url: str, problem: str) -> None:
    """The error says what is wrong, and repeats no password."""
    with pytest.raises(ValueError, match=problem) as caught:
        parsed_url(url)
    assert "secret" not in str(caught.value)


def test_a_url_is_split_for_the_connection() -> None:
    """The fragment stays here; other letters are in ASCII; nothing of the path is shown."""
    url = parsed_url("HTTPS://Bücher.Example.:8443/ä b"[:-2] + "?token=s3cret&q=ä#top")
    assert (url.host, url.port) == ("xn--bcher-kva.example", 8443)
    assert url.path == "/%C3%A4?token=s3cret&q=%C3%A4"
    assert url.authority == "xn--bcher-kva.example:8443"
    assert url.shown == "https://xn--bcher-kva.example:8443"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("X-A", "1\r\nX-B: 2"),
        ("X-A", "1\n"),
        ("X-A", "\x00"),
        ("X-A", "ż"),
        ("X-A\r\nX-B", "1"),
        ("X A", "1"),
        ("", "1"),
        ("Host", "b.example"),
        ("content-length", "0"),
        ("Transfer-Encoding", "chunked"),
    ],
)
def test_headers_that_break_out_are_refused(name: str, value: str) -> None:
    """No line breaks, and none of the headers that frame the message."""
    with pytest.raises(ValueError):  # noqa: PT011  each has its own text
        checked_header(name, value)


def test_expected_statuses() -> None:
    """A list of statuses and classes of them; anything else is refused."""
    assert is_expected(204, checked_statuses("2xx"))
    assert is_expected(404, checked_statuses("200, 404"))
    assert not is_expected(201, checked_statuses("200,204"))
    for wrong in ("", "2x", "all", "200-299", "600", "2xx,"):
        with pytest.raises(ValueError, match="list of statuses"):
            checked_statuses(wrong)
