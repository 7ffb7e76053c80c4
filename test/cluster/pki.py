"""Certificates and kubeconfigs of a throw-away cluster, made with openssl.

Contract: an Authority lives in one folder and is made once; later uses of the same folder find the
same authority. `issue()` returns the paths of a certificate and its key, `kubeconfig()` writes a file
that kubectl and any other client can use. Everything is valid for a year and readable by its owner.
"""

import base64
import json
import os
import subprocess
from pathlib import Path

_CONFIG = """\
[req]
distinguished_name = name
[name]
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
"""


class Authority:
    """A certificate authority and the service account key."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.certificate = self.folder / "ca.crt"
        self.service_account_key = self.folder / "service-account.key"
        self.service_account_public = self.folder / "service-account.pub"
        if not self.service_account_public.exists():
            self._create()

    def issue(self, name, common_name, organizations=(), addresses=(), names=()):
        """A certificate for clients and servers. (certificate path, key path)."""
        certificate, key = self.folder / f"{name}.crt", self.folder / f"{name}.key"
        extensions = ["keyUsage=critical,digitalSignature", "extendedKeyUsage=clientAuth,serverAuth"]
        alternatives = [f"IP:{a}" for a in addresses] + [f"DNS:{n}" for n in names]
        if alternatives:
            extensions.append("subjectAltName=" + ",".join(alternatives))
        subject = "".join(f"/O={o}" for o in organizations) + f"/CN={common_name}"
        _openssl("req", "-x509", "-config", self.folder / "openssl.cnf", *_key(key), "-out", certificate,
                 "-CA", self.certificate, "-CAkey", self.folder / "ca.key", "-days", "365",
                 "-subj", subject, *(part for e in extensions for part in ("-addext", e)))
        return certificate, key

    def kubeconfig(self, path, server, name, common_name, organizations=()):
        """Writes a kubeconfig, with everything inside, for a user that it issues a certificate for."""
        certificate, key = self.issue(name, common_name, organizations)
        content = {
            "apiVersion": "v1", "kind": "Config", "current-context": name,
            "clusters": [{"name": "test", "cluster": {
                "server": server, "certificate-authority-data": _base64(self.certificate)}}],
            "users": [{"name": name, "user": {
                "client-certificate-data": _base64(certificate), "client-key-data": _base64(key)}}],
            "contexts": [{"name": name, "context": {"cluster": "test", "user": name}}],
        }
        # JSON is YAML too.
        Path(path).write_text(json.dumps(content, indent=2) + "\n")
        os.chmod(path, 0o600)
        return Path(path)

    def _create(self):
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        (self.folder / "openssl.cnf").write_text(_CONFIG)
        _openssl("req", "-x509", "-config", self.folder / "openssl.cnf", "-extensions", "authority",
                 *_key(self.folder / "ca.key"), "-out", self.certificate, "-days", "365",
                 "-subj", "/CN=nvdra test authority")
        _openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256",
                 "-out", self.service_account_key)
        _openssl("pkey", "-in", self.service_account_key, "-pubout", "-out", self.service_account_public)


def _key(path):
    return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", path]


def _base64(path):
    return base64.b64encode(path.read_bytes()).decode()


def _openssl(*arguments):
    subprocess.run(["openssl", *arguments], check=True, stdin=subprocess.DEVNULL, capture_output=True)
