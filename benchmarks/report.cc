#include "report.h"

#include <cstdio>
#include <iterator>

#include "base/parallel.h"
#include "npuless/npuless.h"

namespace npuless::bench {
namespace {

constexpr char kRow[] = "%-58s %9s %9s %6s %7s %10s %10s %10s\n";

struct Unit {
  double size;
  const char* name;
};

template <size_t N>
std::string pretty(double value, const Unit (&units)[N]) {
  const Unit* unit = units;
  while (unit + 1 < units + N && value < unit->size) ++unit;
  char text[32];
  const double scaled = value / unit->size;
  const int decimals = scaled < 9.995 ? 2 : scaled < 99.95 ? 1 : 0;
  std::snprintf(text, sizeof text, "%.*f %s", decimals, scaled, unit->name);
  return text;
}

// The counter through `show`; "-" where the run has none.
template <class Show>
std::string cell(const benchmark::UserCounters& counters, const char* name, Show show) {
  const auto counter = counters.find(name);
  return counter == counters.end() ? "-" : show(counter->second.value);
}

std::string fixed(double value, const char* format) {
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

}  // namespace

std::string pretty_seconds(double seconds) {
  return pretty(seconds, {Unit{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}});
}

std::string pretty_bytes(double bytes) {
  return pretty(bytes, {Unit{0x1p30, "GiB"}, {0x1p20, "MiB"}, {0x1p10, "KiB"}, {1, "B"}});
}

bool TableReporter::ReportContext(const Context&) {
  const char* isa = npulessGetIsa();
  std::printf(
      "ISA level %s, %d threads. Times are medians of rounds in which npuless, baseline and roof "
      "take\n"
      "turns; the roof is its best round.\n\n",
      isa == nullptr ? "none" : isa, num_threads());
  std::printf(kRow, "", "time", "rate", "roof", "vs base", "workspace", "added mem", "base mem");
  return true;
}

void TableReporter::ReportRuns(const std::vector<Run>& runs) {
  const auto bytes = [](double value) { return pretty_bytes(value); };
  for (const Run& run : runs) {
    const std::string name = run.run_name.function_name;
    if (run.error_occurred) {
      std::printf("%-58s %s\n", name.c_str(), run.error_message.c_str());
      continue;
    }
    const auto& c = run.counters;
    std::printf(kRow, name.c_str(), cell(c, "seconds", pretty_seconds).c_str(),
                cell(c, "rate", [](double v) { return fixed(v * 1e-9, "%.1f G"); }).c_str(),
                cell(c, "share_of_roof", [](double v) { return fixed(v, "%.2f"); }).c_str(),
                cell(c, "times_baseline", [](double v) { return fixed(v, "%.2fx"); }).c_str(),
                cell(c, "workspace_bytes", bytes).c_str(), cell(c, "added_bytes", bytes).c_str(),
                cell(c, "baseline_added_bytes", bytes).c_str());
  }
  std::fflush(stdout);
}

}  // namespace npuless::bench
