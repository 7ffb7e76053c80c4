#!/usr/bin/env python3
"""Creates objects and says how long pods needed to become Ready.

    stopwatch.py SERVER PKI FILE

FILE holds a JSON list of ComputeDomains and pods of the namespace `default`. They are created in this
order; prints a JSON object: seconds from the first creation until Ready, by pod. kubectl would need a
tenth of a second for each request on a small machine, and times in objects are whole seconds.
"""

import json
import sys
import threading
import time
from pathlib import Path

from many import Api

PATHS = {"ComputeDomain": "/apis/resource.nvidia.com/v1beta1/namespaces/default/computedomains",
         "Pod": "/api/v1/namespaces/default/pods"}
LIMIT = 60


def watch(api, version, wanted, ready):
    """Notes when each of the wanted pods gets Ready."""
    for event in api.lines(f"{PATHS['Pod']}?watch=1&resourceVersion={version}"):
        pod = json.loads(event)["object"]
        name = pod["metadata"].get("name")
        if name in wanted and name not in ready and any(
                c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", ())):
            ready[name] = time.monotonic()
        if wanted <= set(ready):
            return


def main(server, pki, file):
    """See the module's head."""
    pki = Path(pki)
    objects = json.loads(Path(file).read_text())
    wanted = {o["metadata"]["name"] for o in objects if o["kind"] == "Pod"}
    api = Api(server, pki)
    version = api.call("GET", PATHS["Pod"])["metadata"]["resourceVersion"]
    ready = {}
    watcher = threading.Thread(target=watch, args=(Api(server, pki), version, wanted, ready), daemon=True)
    watcher.start()
    began = time.monotonic()
    for obj in objects:
        api.call("POST", PATHS[obj["kind"]], obj)
    watcher.join(LIMIT)
    if not wanted <= set(ready):
        sys.exit(f"stopwatch.py: {wanted - set(ready)} not Ready after {LIMIT} s")
    print(json.dumps({name: at - began for name, at in ready.items()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
