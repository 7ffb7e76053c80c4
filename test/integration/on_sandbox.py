"""Runs a test program against `nvdra-sandbox api`: on_sandbox.py NVDRA-SANDBOX CRDS PROGRAM."""

import os
import subprocess
import sys
import tempfile


def main():
    sandbox, crds, program = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        kubeconfig = f"{folder}/kubeconfig"
        server = subprocess.Popen([sandbox, "api", "--kubeconfig", kubeconfig, "--crds", crds],
                                  stdout=subprocess.PIPE, text=True)
        try:
            if not server.stdout.readline():  # it prints the kubeconfig's path once it serves
                return f"{sandbox} api ended with status {server.wait()} before it served"
            environment = os.environ | {"KUBECONFIG": kubeconfig}
            return subprocess.run([program], env=environment, check=False).returncode
        finally:
            server.terminate()
            server.wait(timeout=30)


if __name__ == "__main__":
    sys.exit(main())
