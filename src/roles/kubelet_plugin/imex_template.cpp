#include "roles/kubelet_plugin/imex_template.hpp"

namespace nvdra::roles::kubelet_plugin {

std::string_view imex_template() {
  return R"(# Configuration of nvidia-imex in the pod of a ComputeDomain's daemon.
# Written anew for every daemon; the daemon fills in the fields in double braces.

# Logging: 4 = info and above, to stderr.
LOG_LEVEL=4
LOG_FILE_NAME=
STATS_FILE_NAME=/var/log/nvidia-imex-stats.log
LOG_APPEND_TO_LOG=0
LOG_FILE_MAX_SIZE=1024
LOG_MAX_ROTATE_COUNT=10
LOG_USE_SYSLOG=0

# The daemon is the parent process and waits for this one.
DAEMONIZE=0

# Peers.
BIND_INTERFACE_IP=
SERVER_PORT=50000
IMEX_NODE_CONFIG_FILE={{ .IMEXDaemonNodesConfigPath }}
NETWORK_INTERFACE=

# Only peers that had imported memory before an unclean stop are waited for.
IMEX_WAIT_FOR_QUORUM=RECOVERY

# Encryption and authentication between peers: off.
IMEX_ENABLE_AUTH_ENCRYPTION=0
IMEX_AUTH_ENCRYPTION_MODE=SSL_TLS
IMEX_AUTH_SOURCE=
IMEX_SERVER_KEY=
IMEX_SERVER_CERT=
IMEX_SERVER_CERT_AUTH=
IMEX_CLIENT_KEY=
IMEX_CLIENT_CERT=
IMEX_CLIENT_CERT_AUTH=
IMEX_SECURITY_TARGET_OVERRIDE=
IMEX_GSS_SERVICE_NAME=host
IMEX_GSS_TIMEOUT_SEC=30
IMEX_GSS_RETRY_INTERVAL_SEC=5
IMEX_GSS_SEC_CONTEXT_LIFETIME_SEC=-1
IMEX_GSS_SHUTDOWN_ON_FAILURE=0

# The command service, which the probes ask.
IMEX_CMD_ENABLED=1
IMEX_CMD_BIND_INTERFACE_IP={{ .IMEXCmdBindInterfaceIP }}
IMEX_CMD_PORT=50005
IMEX_CMD_UNIX_DOMAIN_PATH=

# A lost connection alone never cleans up (-1).
IMEX_NODE_DISCONNECTED_GRACE_TIME=-1
)";
}

}  // namespace nvdra::roles::kubelet_plugin
