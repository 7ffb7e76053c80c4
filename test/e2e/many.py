#!/usr/bin/env python3
"""Creates or deletes many ComputeDomains at once and waits for the result; prints the seconds it took.

    many.py SERVER PKI create|delete FILE

FILE holds a JSON list of ComputeDomains in the namespace `default`; PKI has ca.crt, admin.crt and admin.key.
kubectl needs a tenth of a second for each of them on a small machine, which would hide what is measured.
"""

import http.client
import json
import ssl
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

PATH = "/apis/resource.nvidia.com/v1beta1/namespaces/default/computedomains"
CONNECTIONS = 8
LIMIT = 60


class Api:
    """One connection to the API server."""

    def __init__(self, server, pki):
        context = ssl.create_default_context(cafile=pki / "ca.crt")
        context.load_cert_chain(pki / "admin.crt", pki / "admin.key")
        address = urlsplit(server)
        self._connection = http.client.HTTPSConnection(address.hostname, address.port, context=context, timeout=30)

    def call(self, method, path, body=None):
        """The answer's object; raises when it is an error."""
        self._connection.request(method, path, json.dumps(body) if body else None,
                                 {"Content-Type": "application/json"})
        answer = self._connection.getresponse()
        text = answer.read()
        if answer.status >= 300:
            raise RuntimeError(f"{method} {path}: {answer.status} {text.decode()}")
        return json.loads(text)

    def lines(self, path):
        """The lines of an answer that does not end."""
        self._connection.request("GET", path)
        answer = self._connection.getresponse()
        if answer.status >= 300:
            raise RuntimeError(f"GET {path}: {answer.status} {answer.read().decode()}")
        while line := answer.readline():
            yield line


def share(server, pki, method, domains):
    """What one connection does."""
    api = Api(server, pki)
    for domain in domains:
        if method == "create":
            api.call("POST", PATH, domain)
        else:
            api.call("DELETE", f"{PATH}/{domain['metadata']['name']}")


def is_done(method, items, count):
    """Whether the list shows the wanted end."""
    if method == "delete":
        return not items
    return sum(item.get("status", {}).get("status") == "Ready" for item in items) == count


def main(server, pki, method, file):
    """See the module's head."""
    pki = Path(pki)
    domains = json.loads(Path(file).read_text())
    watcher = Api(server, pki)
    watcher.call("GET", PATH)
    began = time.monotonic()
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        list(pool.map(lambda part: share(server, pki, method, part),
                      [domains[i::CONNECTIONS] for i in range(CONNECTIONS)]))
    sent = time.monotonic() - began
    while not is_done(method, watcher.call("GET", PATH)["items"], len(domains)):
        if time.monotonic() - began > LIMIT:
            sys.exit(f"many.py: not after {LIMIT} s")
        time.sleep(0.1)
    print(f"{sent:.1f} {time.monotonic() - began:.1f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
