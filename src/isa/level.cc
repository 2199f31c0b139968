#include "isa/level.h"

#include <atomic>
#include <cstdlib>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace npuless::isa {
namespace {

#if defined(__x86_64__)
// Clang's __builtin_cpu_supports does not know the name; the state it needs is AVX's.
bool has_f16c() {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}
#endif

// __builtin_cpu_supports asks CPUID and, for AVX state, the operating system (XGETBV).
bool machine_has(Level level) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vl");
  switch (level) {
    case Level::kPortable:
      return true;
    case Level::kAvx2:
      return avx2;
    case Level::kAvx512:
      return avx512;
    case Level::kAvx512Bf16:
      return avx512 && __builtin_cpu_supports("avx512bf16");
  }
  return false;
#else
  return level == Level::kPortable;
#endif
}

Level best_level() {
  Level best = Level::kPortable;
  for (const Level level : kAllLevels) {
    if (machine_has(level)) best = level;
  }
  return best;
}

Status not_available(const char* asked) {
  return fail(code::kRuntimeError,
              "ISA level \"%s\" is not available here: this machine has %s and the levels below it "
              "(portable, avx2, avx512, avx512_bf16)",
              asked, level_name(best_level()));
}

Status parse(const char* name, Level& level) {
  for (const Level candidate : kAllLevels) {
    if (std::strcmp(name, level_name(candidate)) == 0) {
      level = candidate;
      return available(candidate) ? Status() : not_available(name);
    }
  }
  return not_available(name);
}

constexpr int kUnset = -1;
std::atomic<int> chosen{kUnset};

}  // namespace

const char* level_name(Level level) {
  static constexpr const char* kNames[kLevels] = {"portable", "avx2", "avx512", "avx512_bf16"};
  return kNames[static_cast<int>(level)];
}

bool available(Level level) {
#if defined(NPULESS_EMULATE_AVX512)
  return level == Level::kPortable || machine_has(Level::kAvx2);
#else
  return machine_has(level);
#endif
}

Status active_level(Level& level) {
  const int value = chosen.load(std::memory_order_relaxed);
  if (value != kUnset) {
    level = static_cast<Level>(value);
    return {};
  }
  const char* forced = std::getenv("NPULESS_ISA");
  if (forced == nullptr || *forced == '\0') {
    level = best_level();
  } else {
    NPULESS_TRY(parse(forced, level));
  }
  chosen.store(static_cast<int>(level), std::memory_order_relaxed);
  return {};
}

Status set_level(Level level) {
  if (!available(level)) return not_available(level_name(level));
  chosen.store(static_cast<int>(level), std::memory_order_relaxed);
  return {};
}

Status set_level(const char* name) {
  Level level{};
  NPULESS_TRY(parse(name, level));
  return set_level(level);
}

}  // namespace npuless::isa
