// What the family is timed on; benchmarks/driver.cc runs it. Bytes are those of selected rows read
// and of outputs written, indices and probabilities included.
#include "moe_token_permute/bench_problem.h"

namespace npuless::moe_token_permute {

void add_entries(bench::Entries& entries) {
  add_permute_entries(entries);
  add_permute_grad_entries(entries);
  add_unpermute_entries(entries);
}

}  // namespace npuless::moe_token_permute
