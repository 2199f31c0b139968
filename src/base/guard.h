// Every extern "C" body is one guarded call: names the function for its sentences and turns an
// exception into a code, so that nothing but a return value leaves the library.
#pragma once

#include <new>

#include "base/status.h"

namespace npuless {

template <class Body>
int32_t guarded(const char* api, Body&& body) noexcept {
  const ApiScope scope(api);
  try {
    return static_cast<Status>(body()).code();
  } catch (const std::bad_alloc&) {
    return fail(code::kMemoryAllocation, "out of host memory").code();
  } catch (...) {
    return fail(code::kInner, "unexpected internal exception").code();
  }
}

}  // namespace npuless
