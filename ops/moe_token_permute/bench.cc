// Speed of the family: bytes of selected rows read and of outputs written per second, and the share
// of the copy roof measured around each case.
//   build/release/bench/bench_moe_token_permute [--benchmark_filter=…]
// Runs through the public functions, stream included. Each case is checked once, on sampled
// tokens bit for bit, before it is timed. NPULESS_NUM_THREADS sets the threads.
//   bytes_per_second  the mean over all runs, as the time beside it
//   best_GB/s         of the fastest run, which other load on the machine disturbed least
//   of_copy           best_GB/s over the best copy; of_read likewise
#include "moe_token_permute/bench_problem.h"

int main(int argc, char** argv) {
  using namespace npuless;
  namespace family = npuless::moe_token_permute;
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  aclrtStream stream = nullptr;
  family::must(aclInit(nullptr));
  family::must(aclrtSetDevice(0));
  family::must(aclrtCreateStream(&stream));
  family::add_permute_grad_benches(stream);
  family::add_permute_benches(stream);
  family::add_unpermute_benches(stream);
  benchmark::RunSpecifiedBenchmarks();
  family::must(aclrtDestroyStream(stream));
  family::must(aclrtResetDevice(0));
  family::must(aclFinalize());
  return 0;
}
