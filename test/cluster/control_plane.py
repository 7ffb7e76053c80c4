"""etcd, kube-apiserver, kube-controller-manager and kube-scheduler: their command lines and start.

Contract: a ControlPlane prepares certificates, an administrator's kubeconfig and one Process per
program in its folder; `start()`, `wait_for_api()` and `wait_for_controllers()`, called in this order,
bring them up.
Network addresses come from the caller, so the same class serves a cluster in its own network namespace
and an API server on loopback.
"""

import os
import subprocess
from pathlib import Path

from pki import Authority
from process import Process, wait_until

SERVICE_RANGE = "198.19.0.0/24"
API_SERVICE = "198.19.0.1"
ISSUER = "https://kubernetes.default.svc"


class ControlPlane:
    """The programs of a control plane, by name in `processes`.

    ports: of the API server, of etcd for clients, of etcd for peers.
    extra: further arguments of kube-apiserver; the last one of a name wins.
    controllers: whether kube-controller-manager and kube-scheduler belong to it.
    """

    def __init__(self, folder, programs, address, ports, enter=(), group=None, controllers=True, extra=()):
        self.folder = Path(folder)
        self.address = address
        self.ports = ports
        self.server = f"https://{address}:{ports[0]}"
        self.kubeconfig = self.folder / "admin.kubeconfig"
        self.authority = Authority(self.folder / "pki")
        self._programs = programs
        self._enter = list(enter)
        commands = {"etcd": self._etcd(), "kube-apiserver": self._api_server(extra)}
        if controllers:
            commands["kube-controller-manager"] = self._controller_manager()
            commands["kube-scheduler"] = self._scheduler()
        self.processes = {
            name: Process(name, [programs.path(name), *arguments], self.folder, enter=self._enter, group=group)
            for name, arguments in commands.items()}

    def start(self):
        """Starts etcd and kube-apiserver without waiting."""
        self._credentials()
        for process in self._stores():
            process.start()

    def wait_for_api(self):
        """Waits until the API server is ready; then starts the controllers, which would not wait long."""
        wait_until("the API server's /readyz", self._is_ready, 120, self._stores())
        for process in self.processes.values():
            process.start()

    def wait_for_controllers(self):
        """Returns when pods can be created."""
        if "kube-controller-manager" in self.processes:
            # The last one named is the one whose log is shown when time is over.
            wait_until("the service account `default`", self._has_service_account, 60,
                       sorted(self.processes.values(), key=lambda p: p.name == "kube-controller-manager"))

    def kubectl(self, *arguments, **options):
        """Runs kubectl as administrator; options are those of subprocess.run."""
        return subprocess.run([*self._enter, self._programs.path("kubectl"), *map(str, arguments)],
                              env=self.environment(), **options)

    def environment(self):
        """The environment for kubectl and other clients; their caches stay in our folder."""
        return {**os.environ, "KUBECONFIG": str(self.kubeconfig),
                "KUBECACHEDIR": str(self.folder / "kubectl-cache"),
                "KUBEBUILDER_ASSETS": str(self._programs.kubernetes)}

    def _stores(self):
        return [self.processes["etcd"], self.processes["kube-apiserver"]]

    def _credentials(self):
        if self.kubeconfig.exists():
            return
        self.authority.issue("kube-apiserver", "kube-apiserver",
                             addresses=sorted({self.address, API_SERVICE, "127.0.0.1", "::1"}),
                             names=["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"])
        self.authority.issue("kubelet-client", "kube-apiserver", ["system:masters"])
        for name in ("kube-controller-manager", "kube-scheduler"):
            self.authority.kubeconfig(self.folder / f"{name}.kubeconfig", self.server, name, f"system:{name}")
        self.authority.kubeconfig(self.kubeconfig, self.server, "admin", "admin", ["system:masters"])

    def _is_ready(self):
        return self.kubectl("get", "--raw", "/readyz", capture_output=True).returncode == 0

    def _has_service_account(self):
        return self.kubectl("get", "serviceaccount", "default", capture_output=True).returncode == 0

    def _etcd(self):
        client, peer = (f"http://127.0.0.1:{port}" for port in self.ports[1:])
        return [f"--data-dir={self.folder / 'etcd'}", "--unsafe-no-fsync", "--log-level=warn",
                f"--listen-client-urls={client}", f"--advertise-client-urls={client}",
                f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}",
                f"--initial-cluster=default={peer}"]

    def _api_server(self, extra):
        pki = self.authority.folder
        return [f"--etcd-servers=http://127.0.0.1:{self.ports[1]}",
                f"--bind-address={self.address}", f"--secure-port={self.ports[0]}",
                f"--advertise-address={self.address}", f"--service-cluster-ip-range={SERVICE_RANGE}",
                f"--tls-cert-file={pki / 'kube-apiserver.crt'}",
                f"--tls-private-key-file={pki / 'kube-apiserver.key'}",
                f"--client-ca-file={self.authority.certificate}",
                f"--kubelet-client-certificate={pki / 'kubelet-client.crt'}",
                f"--kubelet-client-key={pki / 'kubelet-client.key'}",
                "--kubelet-preferred-address-types=InternalIP",
                f"--service-account-key-file={self.authority.service_account_public}",
                f"--service-account-signing-key-file={self.authority.service_account_key}",
                f"--service-account-issuer={ISSUER}",
                "--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
                # Webhooks are called at their endpoints: nobody translates service addresses.
                "--enable-aggregator-routing", "--allow-privileged", *extra]

    def _controller_manager(self):
        return [f"--kubeconfig={self.folder / 'kube-controller-manager.kubeconfig'}",
                f"--service-account-private-key-file={self.authority.service_account_key}",
                f"--root-ca-file={self.authority.certificate}", "--use-service-account-credentials",
                "--controllers=*,-node-ipam-controller", "--leader-elect=false", "--secure-port=0"]

    def _scheduler(self):
        return [f"--kubeconfig={self.folder / 'kube-scheduler.kubeconfig'}", "--leader-elect=false",
                "--secure-port=0"]
