// A library of a simulated driver root. RUN becomes the simulator, a static program that lies beside
// this library under the name of one more driver library; so whoever wants to run the tools elsewhere
// has to bring all libraries of the driver there.
//
// In a container there is no /etc/nvdra-sandbox; it is made, with a link to the file of faults, which
// is also named like a library. nvidia-imex starts in a container only with its devices.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#ifdef NEEDS
int NEEDS(void);
#endif

int HERE(void);
int RUN(int argc, char **argv);

int HERE(void) {
  return 1;
}

static const char devices[][40] = {"/dev/nvidiactl", "/dev/nvidia0", "/dev/nvidia1"};
static const char capability[] = "/dev/nvidia-caps/nvidia-cap4323";

// Whether the driver root that the folder lies in is here, and not only some of its files.
static int in_driver_root(const char *folder) {
  char path[PATH_MAX];
  char file[PATH_MAX + 40];
  snprintf(path, sizeof path, "%s", folder);
  for (;;) {
    snprintf(file, sizeof file, "%s/etc/nvdra-sandbox/node.json", path);
    if (access(file, F_OK) == 0) return 1;
    char *slash = strrchr(path, '/');
    if (!slash) return 0;
    *slash = 0;
  }
}

static int has_device(const char *path, unsigned minor_number) {
  struct stat status;
  if (stat(path, &status) == 0 && S_ISCHR(status.st_mode) &&
      (minor_number == UINT_MAX || minor(status.st_rdev) == minor_number))
    return 1;
  fprintf(stderr, "[ERROR] Failed to open the device %s\n", path);
  return 0;
}

static int has_devices(void) {
  for (unsigned i = 0; i < sizeof devices / sizeof *devices; ++i)
    if (!has_device(devices[i], UINT_MAX)) return 0;
  return has_device(capability, 4323);
}

static void link_faults(const char *folder) {
  char file[PATH_MAX + 60];
  snprintf(file, sizeof file, "%s/libnvidia-sandbox-faults.so." VERSION, folder);
  mkdir("/etc/nvdra-sandbox", 0755);
  if (symlink(file, "/etc/nvdra-sandbox/faults.json") != 0 && errno != EEXIST)
    perror("/etc/nvdra-sandbox/faults.json");
}

int RUN(int argc, char **argv) {
  (void)argc;
#ifdef NEEDS
  if (!NEEDS()) return 1;
#endif
  Dl_info self;
  char folder[PATH_MAX];
  if (!dladdr((void *)(size_t)HERE, &self) || !realpath(self.dli_fname, folder)) {
    perror("the driver's library cannot find itself");
    return 1;
  }
  *strrchr(folder, '/') = 0;
  if (!in_driver_root(folder)) {
    const char *slash = strrchr(argv[0], '/');
    if (strcmp(slash ? slash + 1 : argv[0], "nvidia-imex") == 0 && !has_devices()) return 1;
    link_faults(folder);
  }
  char simulator[PATH_MAX + 40];
  snprintf(simulator, sizeof simulator, "%s/libnvidia-sandbox.so." VERSION, folder);
  execv(simulator, argv);
  perror(simulator);
  return 1;
}
