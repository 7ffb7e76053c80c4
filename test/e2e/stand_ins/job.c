// A worker of a job that needs all of its workers at once, as an MPI job does. It stands in for one in
// the tests of fail-over.
//
//   job WORKERS SECONDS
//
// It requires its IMEX channel, finds the other workers by broadcast on the pod network, and has done
// its work after SECONDS in which all were there. A worker that loses another one ends with status 1,
// and the job starts it again; then it begins anew. JOB_COMPLETION_INDEX is its number, POD_LABEL the
// job's name.
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { port = 7777, most_workers = 16, lost_after = 3, farewell = 3 };

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int has_channel(void) {
  struct stat status;
  return stat("/dev/nvidia-caps-imex-channels/channel0", &status) == 0 && S_ISCHR(status.st_mode);
}

static int open_socket(void) {
  const int fd = socket(AF_INET, SOCK_DGRAM, 0);
  const int yes = 1;
  const struct sockaddr_in all = {.sin_family = AF_INET, .sin_port = htons(port)};
  const struct timeval pause = {.tv_usec = 100000};
  if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_BROADCAST, &yes, sizeof yes) != 0 ||
      setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &pause, sizeof pause) != 0 ||
      bind(fd, (const struct sockaddr *)&all, sizeof all) != 0) {
    perror("socket");
    exit(2);
  }
  return fd;
}

static void say(int fd, const char *job, int rank, int done) {
  char text[200];
  struct sockaddr_in everybody = {.sin_family = AF_INET, .sin_port = htons(port)};
  inet_pton(AF_INET, "198.18.0.255", &everybody.sin_addr);
  const int size = snprintf(text, sizeof text, "%s %d %d", job, rank, done);
  sendto(fd, text, (size_t)size, 0, (const struct sockaddr *)&everybody, sizeof everybody);
}

struct peer {
  double heard;
  int done;
};

static void hear(int fd, const char *job, struct peer *peers) {
  char text[200];
  char other[150];
  int rank;
  int done;
  const ssize_t size = recv(fd, text, sizeof text - 1, 0);
  if (size <= 0) return;
  text[size] = 0;
  if (sscanf(text, "%149s %d %d", other, &rank, &done) != 3 || strcmp(other, job) != 0) return;
  if (rank < 0 || rank >= most_workers) return;
  peers[rank].heard = now();
  peers[rank].done |= done;
}

int main(int argc, char **argv) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  const char *job = getenv("POD_LABEL");
  const char *index = getenv("JOB_COMPLETION_INDEX");
  if (argc != 3 || !job || !index) return 2;
  const int workers = atoi(argv[1]);
  const double wanted = atof(argv[2]);
  const int self = atoi(index);
  if (workers > most_workers) return 2;
  if (!has_channel()) {
    printf("no channel0 in this container\n");
    return 2;
  }
  printf("worker %d has its channel\n", self);
  const int fd = open_socket();
  struct peer peers[most_workers] = {0};
  double together = 0;
  double finished = 0;
  double last = now();
  double spoken = 0;
  for (;;) {
    const double time = now();
    if (time - spoken > 0.1) {
      say(fd, job, self, finished > 0);
      spoken = time;
    }
    hear(fd, job, peers);
    int present = 1;
    int ready = 1;
    for (int i = 0; i < workers; ++i) {
      if (i == self) continue;
      const int here = peers[i].heard > 0 && now() - peers[i].heard < lost_after;
      present += here;
      ready += peers[i].done;
      if (!here && peers[i].heard > 0 && !peers[i].done) {
        printf("worker %d is lost\n", i);
        return 1;
      }
    }
    if (present == workers && together == 0) printf("all %d workers are here\n", workers);
    if (present == workers) together += time - last + 1e-9;
    last = time;
    if (together >= wanted && finished == 0) {
      finished = now();
      printf("SUM of the stand-in %.1f\n", together);
    }
    if (finished > 0 && ready == workers && now() - finished > farewell) return 0;
  }
}
