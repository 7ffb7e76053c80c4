"""Which requests nvdra has sent, from the API server's audit log.

Contract: `with Audit(world) as audit:` ... `audit.requests()` are those of the block, as (user, verb, resource)
tuples, one per request, watches included. `user` is the service account's name without nvdra's prefix.
"""

import collections
import json
import time


class Audit:
    """The requests since the block began."""

    def __init__(self, world):
        self._file = world.audit
        self._offset = 0

    def __enter__(self):
        self._offset = self._file.stat().st_size
        return self

    def __exit__(self, *_):
        pass

    def requests(self):
        """One tuple per request that was begun since; watches that were open before do not count."""
        found = {}
        ended = set()
        for event in self.events():
            if event["stage"] == "ResponseComplete" and event["verb"] == "watch" and event["auditID"] not in found:
                ended.add(event["auditID"])
            found[event["auditID"]] = (self.user(event), event["verb"], self.resource(event) or event.get("requestURI", ""))
        return [request for name, request in found.items() if name not in ended]

    def events(self):
        """The audit events since, as Kubernetes writes them."""
        with open(self._file, encoding="utf-8") as file:
            file.seek(self._offset)
            for line in file:
                try:
                    event = json.loads(line)
                except ValueError:  # the line that is being written
                    continue
                yield event

    @staticmethod
    def user(event):
        """The service account's name without nvdra's prefix."""
        return event["user"]["username"].rpartition(":")[2].replace("nvdra-service-account-", "").replace(
            "compute-domain-daemon-service-account", "daemon")

    @staticmethod
    def resource(event):
        """`computedomains/status`; "" when the request was for no object."""
        ref = event.get("objectRef", {})
        return "/".join(filter(None, (ref.get("resource"), ref.get("subresource"))))


def settle(world, seconds=90):
    """Waits until nvdra has sent nothing for two seconds: Events of what went before follow slowly."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with Audit(world) as audit:
            time.sleep(2)
            if not audit.requests():
                return


def table(requests):
    """`3 controller create daemonsets, ...`, most frequent first."""
    counted = collections.Counter(requests)
    return ", ".join(f"{count} {' '.join(request)}" for request, count in counted.most_common())
