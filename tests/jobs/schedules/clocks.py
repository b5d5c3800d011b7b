"""Zones whose clocks are changed, expressions around the changes, and the comparison."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from random import Random
from zoneinfo import ZoneInfo

from jobs.schedules import cron_minutes
from tests.judge.cron_oracle import due

FIRST, LAST = datetime(2024, 1, 1, tzinfo=UTC), datetime(2033, 1, 1, tzinfo=UTC)
BEFORE, AFTER = timedelta(hours=14), timedelta(hours=26)

# Every one has changes in 2024 to 2032. By half an hour: Lord_Howe; by two: Troll; at midnight:
# Cairo, Beirut, Havana, Santiago, Asuncion, Azores, Nuuk; four a year: Casablanca, El_Aaiun;
# offsets with minutes: Chatham, Adelaide, St_Johns, Lord_Howe; once for good: Almaty, Asuncion.
ZONES = (
    *("Africa/Cairo", "Africa/Casablanca", "Africa/El_Aaiun", "America/Adak", "America/Anchorage"),
    *("America/Asuncion", "America/Chicago", "America/Denver", "America/Halifax"),
    *("America/Havana", "America/Los_Angeles", "America/Miquelon", "America/New_York"),
    *("America/Nuuk", "America/Port-au-Prince", "America/Santiago", "America/Scoresbysund"),
    *("America/St_Johns", "America/Tijuana", "Antarctica/Troll", "Asia/Almaty", "Asia/Beirut"),
    *("Asia/Gaza", "Asia/Jerusalem", "Asia/Nicosia", "Atlantic/Azores", "Atlantic/Bermuda"),
    *("Australia/Adelaide", "Australia/Lord_Howe", "Australia/Sydney", "Europe/Athens"),
    *("Europe/Berlin", "Europe/Chisinau", "Europe/Dublin", "Europe/Kyiv", "Europe/London"),
    *("Pacific/Auckland", "Pacific/Chatham", "Pacific/Easter", "Pacific/Norfolk"),
)

EDGES = (
    *("* * * * *", "*/7 * * * *", "45 * * * *", "0 */2 * * *", "*/10 0-4 * * *", "* 0 * * 0"),
    *("0 0 * * *", "30 0 * * *", "15 1 * * *", "30 2 * * *", "0 3 * * *", "59 23 * * *"),
    *("0,30 0,1,2,3 * * *", "*/30 2 * * *", "30 1-3 * * SUN", "15 2 25-31 3,10 0"),
    *("5/20 0/3 */2 * 0", "0 2 L * *", "30 2 LW * *", "30 0 * * 0L", "15 1 * * SUN#2"),
)


@cache
def changes(zone: str) -> tuple[datetime, ...]:
    """Return the UTC minutes of 2024 to 2032 from which the zone's offset is another."""
    place = ZoneInfo(zone)
    found, moment, day = [], FIRST, timedelta(days=1)
    while moment < LAST:
        early, late = moment, moment + day
        old = early.astimezone(place).utcoffset()
        if late.astimezone(place).utcoffset() != old:
            while late - early > timedelta(minutes=1):
                middle = early + (late - early) // timedelta(minutes=2) * timedelta(minutes=1)
                if middle.astimezone(place).utcoffset() == old:
                    early = middle
                else:
                    late = middle
            found.append(late)
        moment += day
    return tuple(found)


def some_expressions(chance: Random, count: int) -> list[str]:
    """Return expressions that ask for something within a few hours of most days."""
    return [" ".join(_fields(chance)) for _ in range(count)]


def _fields(chance: Random) -> Iterator[str]:
    low = chance.randrange(0, 59)
    yield chance.choice(
        [str(low), "*", f"*/{chance.randint(2, 40)}", f"{low}-59/9", f"0,{low},30", f"{low}/25"]
    )
    hour = chance.randrange(0, 5)
    yield chance.choice(
        [str(hour), "*", f"*/{chance.randint(2, 5)}", f"{hour}-{hour + 2}", f"{hour},23", "0/2"]
    )
    yield chance.choice(["*", "*", "*/2", "1-15", "25-31", "L"])
    yield chance.choice(["*", "*", "*", "3,4,9-11", "MAR-OCT"])
    yield chance.choice(["*", "*", "*", "0", "SUN,SAT", "1-5", "6-7", "*/3"])


def disagreements(zone: str, change: datetime, expressions: Sequence[str]) -> list[str]:
    """Return the expressions whose due times around a change are not the oracle's."""
    start, end = change - BEFORE, change + AFTER
    wanted = due(expressions, zone, start=start, end=end)
    return [
        f"{cron} {zone} {change:%Y-%m-%d}"
        for cron, times in zip(expressions, wanted, strict=True)
        if cron_minutes(cron, zone, start=start, end=end) != times
    ]
