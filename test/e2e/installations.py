"""The ways in which the chart is installed for the tests.

Nodes of the test cluster have no driver of their own and no GPU Feature Discovery. So the two values
that say where a driver is are set always, as for the GPU Operator's driver, and the tests label the
nodes; everything else is as the chart has it.
"""

import gpu_node

DRIVER = (f"nvidiaDriverRoot={gpu_node.DRIVER_ROOT}", f"altProcDevices={gpu_node.PROC_DEVICES}")


class Installation:
    """Values of the chart, and what of the nodes goes with them.

    host_managed: the administrator's nvidia-imex service runs on every node.
    own_clique_label: the plugin labels the nodes with their clique; otherwise the tests do.
    """

    def __init__(self, name, *values, host_managed=False, own_clique_label=False):
        self.name = name
        self.values = DRIVER + values
        self.host_managed = host_managed
        self.own_clique_label = own_clique_label


DEFAULT = Installation("default values")

HOST_MANAGED = Installation(
    "host-managed", "featureGates.HostManagedIMEXDaemon=true", "resources.computeDomains.imex.mode=hostManaged",
    "kubeletPlugin.containers.computeDomains.gpuCliqueLabelEnabled=true", "kubeletPlugin.affinity=null",
    "controller.affinity=null", host_managed=True, own_clique_label=True)

# As DEFAULT, after the mode was changed.
SWITCHED = Installation("host-managed after default values", "featureGates.HostManagedIMEXDaemon=true",
                        "resources.computeDomains.imex.mode=hostManaged", host_managed=True)

# As DEFAULT, after a driver in the namespace `earlier`.
MOVED = Installation("default values with an earlier namespace",
                     "controller.containers.computeDomain.env[0].name=ADDITIONAL_NAMESPACES",
                     "controller.containers.computeDomain.env[0].value=earlier")

# Whatever else an administrator may set, in one installation.
SETTINGS = Installation(
    "settings", "logVerbosity=6", "controller.replicas=2", "controller.leaderElection.enabled=true",
    "controller.affinity=null", "kubeletPlugin.affinity=null",
    "resources.computeDomains.imex.config.IMEX_NODE_DISCONNECTED_GRACE_TIME=60",
    "kubeletPlugin.containers.computeDomains.gpuCliqueLabelEnabled=true", own_clique_label=True)

CLIQUES_OFF = Installation("gate ComputeDomainCliques off", "featureGates.ComputeDomainCliques=false")

BOTH_GATES_OFF = Installation("gates ComputeDomainCliques and IMEXDaemonsWithDNSNames off",
                              "featureGates.ComputeDomainCliques=false", "featureGates.IMEXDaemonsWithDNSNames=false")
