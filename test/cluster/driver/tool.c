// nvidia-smi, nvidia-imex or nvidia-imex-ctl of a simulated driver root: a dynamically linked program
// that does nothing itself. Where a library of the driver is missing, the loader refuses to start it,
// as it would the real one.
int RUN(int argc, char **argv);

int main(int argc, char **argv) {
  return RUN(argc, argv);
}
