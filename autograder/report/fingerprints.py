"""Winnowing: a few hashes of a program such that copied passages share some, whatever the names.

A program becomes tokens: comments, docstrings and layout are dropped; every literal becomes the
same as any other, and so does every name but Python's own and a library's (what follows a dot,
unless it is self's). From the hashes of all runs of K tokens, each window of W consecutive ones
keeps its smallest. Any passage of K + W - 1 equal tokens then shares a hash, and none shorter than
K does. Pure text in, numbers out.

Source: Schleimer, Wilkerson and Aiken, Winnowing: local algorithms for document fingerprinting,
SIGMOD 2003.
"""

from __future__ import annotations

import builtins
import hashlib
import io
import keyword
import re
import token
import tokenize
from dataclasses import dataclass

K, W = 14, 8
_DROPPED = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
            tokenize.ENCODING, tokenize.ENDMARKER}  # fmt: skip
_OWN = set(keyword.kwlist) | set(dir(builtins))
_ROUGH = re.compile(
    r"""#[^\n]*|\"{3}[\s\S]*?\"{3}|'{3}[\s\S]*?'{3}|(?P<text>"[^"\n]*"|'[^'\n]*')"""
    r"""|(?P<member>(?<=\.)(?<!\bself\.)[^\W\d]\w*)|(?P<name>[^\W\d]\w*)"""
    r"""|(?P<number>\d[\w.]*)|(?P<op>[^\s\w])"""
)


@dataclass(frozen=True)
class Token:
    """One token: what it counts as, and the line it stands on (from 0)."""

    text: str
    line: int


def tokens(source: str) -> list[Token]:
    """The program without what a copier changes first. Takes text that is no Python, too."""
    try:
        return _python_tokens(source)
    except (tokenize.TokenError, SyntaxError, IndentationError):
        return _rough_tokens(source)


def hashes(program: list[Token], k: int = K) -> list[int]:
    """The hash of each run of k tokens, by where it begins."""
    texts = [one.text for one in program]
    return [_hash(" ".join(texts[start : start + k])) for start in range(len(texts) - k + 1)]


def winnow(values: list[int], w: int = W) -> dict[int, int]:
    """Position -> hash of what is kept: the smallest of each w, the rightmost of equal ones."""
    kept = {}
    for start in range(max(1, len(values) - w + 1)):
        window = range(start, min(start + w, len(values)))
        if window:
            at = min(window, key=lambda position: (values[position], -position))
            kept[at] = values[at]
    return kept


def _python_tokens(source: str) -> list[Token]:
    found, before = [], ("", "")
    fresh = True  # at the start of a statement, where a string is a docstring
    for one in tokenize.generate_tokens(io.StringIO(source).readline):
        if one.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT):
            fresh = True
        elif one.type not in _DROPPED:
            if not (fresh and one.type == token.STRING):
                found.append(Token(_text(one, before), one.start[0] - 1))
            fresh = False
            before = (before[1], one.string)
    return found


def _text(one: tokenize.TokenInfo, before: tuple[str, str]) -> str:
    if one.type == token.NAME:
        of_a_library = before[1] == "." and before[0] != "self"
        return one.string if one.string in _OWN or of_a_library else "name"
    if one.type in (token.NUMBER, token.STRING):
        return "literal"
    return one.string if one.type == token.OP else token.tok_name[one.type]


def _rough_tokens(source: str) -> list[Token]:
    """What looks like tokens in text that is no Python."""
    rough, line, seen = [], 0, 0
    for found in _ROUGH.finditer(source):
        line, seen = line + source.count("\n", seen, found.start()), found.start()
        if found.lastgroup:
            rough.append(Token(_rough(found), line))
    return rough


def _rough(found: re.Match[str]) -> str:
    if found.lastgroup == "name":
        return found[0] if found[0] in _OWN else "name"
    return found[0] if found.lastgroup in ("op", "member") else "literal"


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest())
