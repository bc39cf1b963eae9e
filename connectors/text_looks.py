"""What the first texts of each column look like: categories, or numbers and names that are none."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from connectors.columns import raw
from connectors.kinds import SPACES, kind_of, number_in, numbers_in, plain, seconds_by_size

_LOOKED_AT = 1000
_FEWEST = 20  # of fewer texts nothing is said
_MOSTLY, _NEARLY_ALL, _DIFFERENT, _FEW = 0.5, 0.9, 0.75, 0.2
_MOST_NAMED = _MOST_UNITS = 3
_LONGEST = 200
_FEWEST_NUMBERS = 5
_CODE = re.compile("[+-]?0[0-9]")  # as 007

_WHOLE = r"[+-]?[0-9]{1,3}"
_PLAIN = r"[+-]?[0-9]*\.?[0-9]+([eE][+-]?[0-9]+)?"
_WORD = r"[^\W\d_]{1,12}"
_MONEY = "[$€£¥]|EUR|USD|GBP|CHF|JPY|CNY|INR"
_FORMS = (
    (
        re.compile(rf"{_WHOLE}(,[0-9]{{3}})+(\.[0-9]*)?|{_PLAIN}"),
        "numbers with a comma: write them without it if it is between thousands; decimal=',' "
        "(--decimal ,) if it is before the fraction",
    ),
    (
        re.compile(rf"{_WHOLE}[0-9]*(\.[0-9]{{3}})*(,[0-9]+)?"),
        "numbers with a decimal comma: decimal=',' (--decimal ,) reads them",
    ),
    (re.compile(r"[+-]?0[xX][0-9a-fA-F]+"), "hexadecimal numbers: write them as decimal ones"),
    (
        re.compile(r"[0-9]{1,2}[:hH][0-9]{2}([:mM][0-9]{2}[sS]?)?"),
        "times of day: write them as a number of minutes",
    ),
    (
        re.compile(rf"{_PLAIN} ?(?P<unit>[°%$€£¥]|{_WORD}(/{_WORD})?)|(?P<s>{_MONEY}) ?[0-9.,]+"),
        "numbers with a unit: write the numbers alone",
    ),
    (
        # Apostrophes, a no-break and a narrow space; a minus sign and a dash.
        re.compile(
            r"\(?[+\-\u2212\u2013]?[0-9]{1,3}([ '\u2019\xa0\u202f]?[0-9]{3})*([.,][0-9]+)?\)?"
        ),
        "numbers as people write them: write them as -1234.5, without marks between thousands",
    ),
    (
        re.compile(rf"[<>~\u2264\u2265] ?{_PLAIN}"),
        "numbers behind a sign: write the numbers alone, and what the sign says in a column of "
        "its own",
    ),
)
"""How texts may be written that are numbers to people, and what to do."""


class _Column:
    """What is known of a column's texts."""

    def __init__(self) -> None:
        self.n = self.n_numbers = 0
        self.are_codes = False
        self.values, self.others = set[str](), Counter[str]()

    def add(self, text: str, is_number: bool) -> None:
        self.n += 1
        self.n_numbers += is_number
        self.are_codes |= is_number and _CODE.match(text) is not None
        self.values.add(text)
        if not is_number:
            self.others[text] += 1

    def finding(self, needs_parsing: str) -> str | None:
        """Return what is wrong with learning the texts as categories, and what to do."""
        if self.n < _FEWEST or not self.others:
            return None
        n_odd, odd = self.others.total(), self.others.most_common(1)[0][0]
        for form, what in _FORMS:
            found = {t: form.fullmatch(t.strip(SPACES)) for t in self.others}
            fitting = {text: match for text, match in found.items() if match is not None}
            n_fitting = sum(self.others[text] for text in fitting)
            units = {tuple(match.groupdict().values()) for match in fitting.values()}
            is_most = n_fitting + self.n_numbers >= _NEARLY_ALL * self.n
            # Seats, as 1A, 2B and 3C, have too many units.
            if is_most and n_fitting > _MOSTLY * n_odd and len(units) <= _MOST_UNITS:
                return f"its texts, such as {next(iter(fitting))!r:.60}, look like {what}"
        are_odd = len(self.others) == 1 or n_odd <= _FEW * self.n
        are_codes = self.are_codes or len(self.values) - len(self.others) < _FEWEST_NUMBERS
        if self.n_numbers >= _MOSTLY * self.n and are_odd and not are_codes:
            some = self.others.most_common(_MOST_NAMED)
            listed = ", ".join(f"{token!r:.60} ({n:,})" for token, n in some)
            more = ", ..." if len(self.others) > _MOST_NAMED else ""
            tokens = [token for token, _ in some]
            return (
                f"{n_odd:,} of its first {self.n:,} texts are no numbers: {listed}{more}; "
                f"missing_tokens={tokens!r:.200} (--missing-tokens {','.join(tokens)!r:.200})"
                f"{needs_parsing} reads them as missing"
            )
        if len(self.values) >= _DIFFERENT * self.n:
            return (
                f"{len(self.values):,} of its first {self.n:,} texts are different, such as "
                f"{odd!r:.60}: names, times or free text say nothing of rows to come; exclude= "
                "(--exclude) leaves the column out"
            )
        return None


class TextLooks:
    """Looks at the text columns among features, by the first 1,000 rows.

    `needs_parsing` says what else makes numbers of texts, for sources in which texts stay texts.
    """

    def __init__(self, needs_parsing: bool = True) -> None:
        self._n = 0
        self._columns: dict[str, _Column] = {}
        self._needs_parsing = needs_parsing
        self._unit: str | None = None  # what is said of times that are not in seconds

    @property
    def is_done(self) -> bool:
        """Whether no more rows are looked at."""
        return self._n >= _LOOKED_AT

    @property
    def names(self) -> list[str]:
        """The columns whose texts are all numbers or times."""
        return [name for name, column in self._columns.items() if column.n == column.n_numbers]

    @property
    def findings(self) -> list[str]:
        """A sentence for each column whose texts should not be learnt as categories."""
        found = [] if self._unit is None else [self._unit]
        for name, column in self._columns.items():
            parsing = f" with parse_numbers=[{name!r}] (--parse-numbers {name})"
            text = column.finding(parsing if self._needs_parsing else "")
            if text is not None:
                found.append(f"{name} is learnt as categories, a feature for each text, but {text}")
        return found

    def end(self) -> None:
        """Look at no more rows."""
        self._n = _LOOKED_AT

    def in_seconds(self, moments: npt.NDArray[np.float64], name: str) -> npt.NDArray[np.float64]:
        """Return the times of a column in seconds; that they were not is one of the findings."""
        seconds, unit = seconds_by_size(moments)
        if unit is not None:
            self._unit = f"the times in {name} are read as {unit} since 1970, by their size"
        return seconds

    def pass_by(self, n: int) -> None:
        """Count rows without texts."""
        self._n += n

    def look(self, data: pa.RecordBatch, names: Iterable[str]) -> None:
        """Look at the named columns of the next rows, as far as they are texts."""
        if self.is_done:
            return
        self._n += data.num_rows
        for name in names:
            at = data.schema.get_field_index(name)
            if at >= 0 and kind_of(data.schema.field(at).type) == "text":
                texts = plain(data.column(at)).drop_null()
                wrong = numbers_in(texts)[1].tolist()
                decoded = (
                    text.decode(errors="backslashreplace") for text in raw(texts).to_pylist()
                )
                self._add(name, decoded, [not w for w in wrong])

    def look_at(self, x: Mapping[str, Any]) -> None:
        """Look at the texts of the next event."""
        if not self.is_done:
            self._n += 1
            for name, value in x.items():
                if isinstance(value, str):
                    is_number = number_in(value) is not None or not value.strip(SPACES)
                    self._add(name, [value], [is_number])

    def _add(self, name: str, texts: Iterable[str], are_numbers: Sequence[bool]) -> None:
        if are_numbers:
            column = self._columns.setdefault(name, _Column())
            for text, is_number in zip(texts, are_numbers, strict=True):
                column.add(text[:_LONGEST], is_number)
