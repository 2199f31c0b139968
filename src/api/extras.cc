// The façade of npuless/npuless.h.
#include "base/guard.h"
#include "base/parallel.h"
#include "isa/level.h"
#include "npuless/npuless.h"

namespace isa = npuless::isa;
namespace code = npuless::code;

const char* npulessGetVersion() {
  return NPULESS_VERSION;
}

const char* npulessGetIsa() {
  isa::Level level{};
  const aclError result =
      npuless::guarded("npulessGetIsa", [&] { return isa::active_level(level); });
  return result == code::kOk ? isa::level_name(level) : nullptr;
}

aclError npulessSetIsa(const char* level) {
  return npuless::guarded("npulessSetIsa", [&] {
    if (level == nullptr) return npuless::fail(code::kInvalidParam, "level must not be null");
    return isa::set_level(level);
  });
}

int npulessGetNumThreads() {
  int threads = 0;
  const aclError result = npuless::guarded("npulessGetNumThreads", [&] {
    threads = npuless::num_threads();
    return npuless::Status();
  });
  return result == code::kOk ? threads : 0;
}

aclError npulessSetNumThreads(int threads) {
  return npuless::guarded("npulessSetNumThreads",
                          [&] { return npuless::set_num_threads(threads); });
}
