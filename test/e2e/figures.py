"""What was measured beside what is wanted.

Contract: `tell(Figure(...), ...)` is one text of all figures, for a test to return. It raises Missed with that text
when a figure is above what is wanted by more than its slack, since machines are shared. With NVDRA_FIGURES=strict,
as `./dev bench cluster` sets it, there is no slack. A figure without `wanted` is only told.
"""

import dataclasses
import os
import statistics

from commands import Failed


class Missed(Failed):
    """A figure was missed: everything works, so nothing but the text explains it."""


@dataclasses.dataclass(frozen=True)
class Figure:
    """A value that should be at most `wanted`. Times under a second suffer most from what else a machine does."""

    name: str
    value: float
    unit: str
    wanted: float | None = None
    details: str = ""

    @property
    def slack(self):
        """How many times the wanted value is accepted."""
        if os.environ.get("NVDRA_FIGURES") == "strict":
            return 1
        return 4 if self.unit == "ms" else 2

    def over(self, slack=1):
        """Whether it is more than so many times what is wanted."""
        return self.wanted is not None and self.value > slack * self.wanted

    def __str__(self):
        digits = 0 if self.unit in ("ms", "requests") else 1 if self.unit == "MB" or self.value >= 10 else 2
        text = f"{self.name} {self.value:.{digits}f} {self.unit}"
        if self.wanted is not None:
            text += f" (wanted {self.wanted:g}{', MISSED' if self.over() else ''})"
        return text + (f" {self.details}" if self.details else "")


def tell(*figures):
    """See the module's head."""
    text = "; ".join(map(str, figures))
    if any(figure.over() for figure in figures):
        text += f"; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors"
    if any(figure.over(figure.slack) for figure in figures):
        raise Missed(text)
    return text


def longest(name, milliseconds, wanted):
    """The longest of these times, as a figure, with their median."""
    return Figure(name, max(milliseconds), "ms", wanted,
                  f"longest of {len(milliseconds)}, median {statistics.median(milliseconds):.0f} ms")
