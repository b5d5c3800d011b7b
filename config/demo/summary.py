"""The demo's final texts: addresses, the verdict, and runs that have not ended."""

from collections.abc import Sequence

from config.demo.foreseen import Foreseen
from config.demo.processes import Places
from config.demo.screen import Screen
from config.demo.verdict import UpgradeVerdict, Verdict, unfinished
from config.demo.world import Login
from jobs.models import Submission


def show_places(places: Places, *, login: Login, screen: Screen) -> None:
    """Show the addresses and the login."""
    screen.say()
    screen.say(f"  Site     {places.overview}")
    screen.say(f"  Runs     {places.runs}")
    screen.say(f"  Flower   {places.flower}")
    screen.say(f"  Login    {login.user} / {login.password}   (for the site and for Flower)")
    screen.say(f"  Logs     {places.logs}")
    screen.say()


def show_verdict(verdict: Verdict, submissions: Sequence[Submission], *, screen: Screen) -> None:
    """Show when each submission finished, and the figures of the devices and the rows."""
    asked = verdict.devices + verdict.lab_devices
    large, small = submissions
    screen.heading(headline(verdict))
    for submission, seconds in ((large, verdict.large_seconds), (small, verdict.small_seconds)):
        screen.say(
            f"  {submission.owner.slug}: {submission.label} was on {submission.run_count} devices "
            f"{seconds:.1f} s after the submit"
        )
    late = max(0.0, verdict.small_seconds - verdict.small_ideal_seconds)
    screen.say(
        f"  {small.owner.slug} waited {late:.2f} s longer than with ideal sharing, although "
        f"{large.run_count} runs of {large.owner.slug} came first; one run takes "
        f"{verdict.call_seconds:.2f} s"
    )
    _show_forecasts(large.owner.slug, verdict.large_forecasts, verdict.large_seconds, screen)
    screen.say(f"  {verdict.verified} of {asked} devices have version {verdict.version}")
    screen.say(f"  {verdict.doubled} devices got it twice without a failed attempt in between")
    screen.say(
        f"  {verdict.failed_attempts} attempts failed, because simulated devices fail now and then"
    )
    screen.say(
        f"  {verdict.checks} health checks by recurring jobs, {verdict.checks_doubled} doubled; "
        f"checks per second varied by {verdict.checks_spread:.0%}"
    )
    screen.say(f"  {verdict.retries} retries, {verdict.runs_recorded} runs recorded as succeeded")
    _show_upgrade(verdict.upgrade, version=verdict.version, screen=screen)


def headline(verdict: Verdict, /) -> str:
    """Return the verdict in one line: OK, or the problems."""
    if verdict.is_good:
        return "OK: nothing lost, nothing doubled, nothing outside hours"
    upgrade = verdict.upgrade
    there = min(verdict.verified, verdict.runs_recorded)
    missing = max(0, upgrade.asked - upgrade.upgraded)
    held = upgrade.held_for_approval + upgrade.held_by_freeze
    counts = {
        "lost": verdict.devices + verdict.lab_devices - there + missing,
        "doubled": verdict.doubled + verdict.checks_doubled + upgrade.doubled,
        "outside hours": upgrade.outside,
        "upgraded without agreement": max(0, upgrade.upgraded - upgrade.asked),
        "not held": upgrade.not_approved + upgrade.frozen - held,
    }
    found = [f"{count} {what}" for what, count in counts.items() if count]
    return "NOT OK: " + (", ".join(found) or "the counts below do not agree")


def _show_upgrade(upgrade: UpgradeVerdict, *, version: int, screen: Screen) -> None:
    screen.say(
        f"  Firmware {version}: {upgrade.upgraded} of {upgrade.asked} upgraded in "
        f"{upgrade.openings} openings and {upgrade.seconds:.1f} s, {upgrade.outside} outside; "
        f"{upgrade.held_for_approval} held for approval, {upgrade.held_by_freeze} held by freeze"
    )
    for address in upgrade.stopped:
        screen.say(f"  It went out in waves; this rollout was stopped, then resumed: {address}")
    if upgrade.held_for_approval + upgrade.held_by_freeze:
        screen.say("  The held runs are now cancelled: the pages show them as cancelled")
    if upgrade.first_outside:
        screen.say(f"  Outside: {upgrade.first_outside}")
    what = "the firmware that is not stopped"
    _show_forecasts(what, upgrade.forecasts, upgrade.foreseen_seconds, screen)


def _show_forecasts(
    what: str, forecasts: Sequence[Foreseen], seconds: float, screen: Screen
) -> None:
    for foreseen in forecasts:
        screen.say(f"  Forecast for {what}: {foreseen.in_words()}; it took {seconds:.1f} s")


def show_hanging(submissions: Sequence[Submission], *, places: Places, screen: Screen) -> None:
    """Show some unfinished runs, why they wait, and the ends of the logs."""
    screen.heading("Time is up. These runs, for example, have not ended well:")
    for text in unfinished(submissions):
        screen.say(f"  {text}")
    for text in places.log_ends():
        screen.say(text)
