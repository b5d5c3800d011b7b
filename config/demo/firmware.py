"""The firmware upgrades of the demo, as the devices see them. Pure."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from config.demo.agreed_hours import REFUSING, Customer
from config.demo.devices import REFUSED, Device, doubled, make_devices


@dataclass
class Firmware:
    """The devices of all customers, and the upgrades outside of their hours."""

    customers: Sequence[Customer] = ()
    devices: dict[str, Device] = field(default_factory=dict)
    outside: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._customers = {name: one for one in self.customers for name in one.devices}

    def touched(self, device: Device, *, at: float, what: str) -> None:
        """Note that an upgrade of a device began or ended, if that is outside of its hours."""
        customer = self._customers[device.name]
        if not customer.is_open(at):
            facts = {"status": customer.status, "what": what, "late": customer.since_close(at)}
            self.outside.append({"device": device.name, "at": at, **facts})

    def report(self, version: int, /) -> dict[str, Any]:
        """Return the number of upgrades, in all and by customer, and those outside of the hours."""
        upgraded = [name for name, device in self.devices.items() if device.version == version]
        return {
            "version": version,
            "upgraded": len(upgraded),
            "customers": dict(Counter(self._customers[name].name for name in upgraded)),
            "doubled": sum(doubled(device.events_of(version)) for device in self.devices.values()),
            "outside": self.outside,
        }


def make_firmware(customers: Sequence[Customer], *, seed: int, failing_share: float) -> Firmware:
    """Return the customers' devices; some fail at first."""
    names = [name for customer in customers for name in customer.devices]
    devices = make_devices(names, seed=seed, failing_share=failing_share)
    for customer in customers:
        if customer.name == REFUSING:
            devices[customer.devices[0]].failures.appendleft(REFUSED)
    return Firmware(customers, devices)
