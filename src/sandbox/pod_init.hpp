// The first process of a container: it becomes init of a PID namespace and starts the command in
// it, so that a container sees its own processes only, and all of them end with the command.
#pragma once

#include <functional>

namespace nvdra::sandbox {

// Three processes: the caller stays outside, as the one its kubelet knows; init below it reaps what
// is left behind; `become` runs in the third, in a session of its own, and execs. Signals to the
// caller reach the command (unlike a real container's command it is not process 1 itself, so
// SIGTERM ends it even when it has no handler). Returns the command's exit status, 128 + N when
// signal N killed it.
int run_in_own_processes(const std::function<int()>& become);

// The same for a command that enters the PID namespace of a container: `become` runs as a child.
// The namespace must have been entered (setns) before.
int run_as_child(const std::function<int()>& become);

}  // namespace nvdra::sandbox
