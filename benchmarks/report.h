// The driver's table on standard output, a row as soon as it is measured.
#pragma once

#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>
#include <vector>

namespace npuless::bench {

class TableReporter : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context& context) override;
  void ReportRuns(const std::vector<Run>& runs) override;
};

// "1.5 ms" and the like: three digits and a unit.
std::string pretty_seconds(double seconds);
std::string pretty_bytes(double bytes);

}  // namespace npuless::bench
