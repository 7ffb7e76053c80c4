"""Reading objects from the API server quickly: kubectl needs a tenth of a second for each question, which tests ask
a thousand times.

Contract: `Reader(cluster, folder)` asks through one `kubectl proxy` on a Unix socket, which is started when it is
needed. `get()` and `list()` take kinds as kubectl does. What goes wrong is a ReadError; a test that waits takes it for
"not yet".
"""

import http.client
import json
import socket
import time
from urllib.parse import quote, urlencode

PATIENCE = 5  # seconds for the proxy to come up


class ReadError(Exception):
    """What was asked, and what went wrong."""


class Reader:
    """Objects as dictionaries."""

    def __init__(self, cluster, folder):
        self._cluster = cluster
        self._socket = folder / "api.sock"
        self._log = folder / "api-proxy.log"
        self._proxy = None
        self._resources = {}

    def close(self):
        """Ends the proxy."""
        if self._proxy:
            self._proxy.kill()
            self._proxy.wait()
            self._proxy = None

    def get(self, kind, name, namespace):
        """The object, or None when there is none."""
        status, body = self._ask(self._path(kind, namespace, name))
        if status == 404 and body.get("reason") == "NotFound":
            return None
        return _checked(status, body, f"{kind} {namespace}/{name}")

    def list(self, kind, namespace, labels="", fields=""):
        """The objects of a kind; `namespace` None means all of them."""
        query = {key: value for key, value in (("labelSelector", labels), ("fieldSelector", fields)) if value}
        status, body = self._ask(self._path(kind, namespace) + ("?" + urlencode(query) if query else ""))
        items = _checked(status, body, f"{kind} of {namespace or 'all namespaces'}")["items"]
        # The items of a list say neither what they are nor in which version.
        described = {"kind": body["kind"].removesuffix("List"), "apiVersion": body["apiVersion"]}
        return [{**described, **item} for item in items]

    def _path(self, kind, namespace, name=None):
        group, resource, namespaced = self._resource(kind)
        place = f"/namespaces/{namespace}" if namespaced and namespace else ""
        return f"{group}{place}/{resource}" + (f"/{quote(name)}" if name else "")

    def _resource(self, kind):
        wanted = kind.partition(".")[0]
        if wanted not in self._resources:
            self._discover()
        if wanted not in self._resources:
            raise ReadError(f"the API server knows no {kind}")
        return self._resources[wanted]

    def _discover(self):
        groups = _checked(*self._ask("/apis"), "the API groups")["groups"]
        for path in ("/api/v1", *(f"/apis/{g['preferredVersion']['groupVersion']}" for g in groups)):
            for found in _checked(*self._ask(path), path)["resources"]:
                if "/" in found["name"]:
                    continue
                for name in (found["name"], found.get("singularName"), *found.get("shortNames", ())):
                    self._resources.setdefault(name, (path, found["name"], found["namespaced"]))

    def _ask(self, path):
        connection = http.client.HTTPConnection("localhost", timeout=30)
        try:
            connection.sock = self._connect()
            connection.request("GET", path, headers={"Accept": "application/json"})
            answer = connection.getresponse()
            text = answer.read()
            return answer.status, json.loads(text)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise ReadError(f"GET {path}: {error}") from error
        finally:
            connection.close()

    def _connect(self):
        if not self._proxy or self._proxy.poll() is not None:
            self._socket.unlink(missing_ok=True)
            with open(self._log, "ab") as log:
                self._proxy = self._cluster.start_kubectl("proxy", f"--unix-socket={self._socket}", stdout=log, stderr=log)
        deadline = time.monotonic() + PATIENCE
        while True:
            client = socket.socket(socket.AF_UNIX)
            client.settimeout(30)
            try:
                client.connect(str(self._socket))
                return client
            except OSError:
                client.close()
                if time.monotonic() > deadline:
                    raise
            time.sleep(0.02)


def _checked(status, body, what):
    if status != 200:
        raise ReadError(f"{what}: {status} {body.get('message', body)}")
    return body
