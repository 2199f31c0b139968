// What a family tells the driver about a thing to measure.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "acl/acl.h"
#include "base/dtype.h"
#include "roofs.h"

namespace npuless::bench {

// The same result by other means.
class Baseline {
 public:
  virtual ~Baseline() = default;
  virtual void run() = 0;
  // Against the library's result, after both ran once.
  virtual bool agrees() const = 0;
  // Of its memory, what the caller would have to give any implementation.
  virtual int64_t output_bytes() const = 0;
};

// A problem in memory, ready to run.
class Work {
 public:
  virtual ~Work() = default;
  virtual void run() = 0;
  // Sampled, after a run.
  virtual bool right() const = 0;
  virtual uint64_t workspace_bytes() const = 0;
  // Null where there is none.
  virtual std::unique_ptr<Baseline> make_baseline() { return nullptr; }
};

// The roof that the amount of an entry counts against: flops, bytes, or none (host cost: the time
// speaks).
enum class Roof { kFlops, kMemory, kNone };

struct Entry {
  std::string name;  // family/operator/type/shape
  Roof roof;
  DType dtype;
  double amount;  // of one run, in the roof's unit
  int64_t bytes;  // memory that problem and baseline need
  bool large;     // takes minutes: left out by --quick
  int threads;    // 0: all
  std::function<std::unique_ptr<Work>(aclrtStream)> make;
  Mix mix = {1, 1};  // of a memory roof
  int calls = 1;     // that one run makes; times are per call
};

using Entries = std::vector<Entry>;
void add_host_entries(Entries& entries);

}  // namespace npuless::bench

namespace npuless::linear_cross_entropy {
void add_entries(bench::Entries& entries);
}
namespace npuless::moe_token_permute {
void add_entries(bench::Entries& entries);
}
