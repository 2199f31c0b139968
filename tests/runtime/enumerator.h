// Values that an enumeration of the C API does not have but a C program can pass.
#pragma once

#include <cstring>

namespace npuless::runtime {

template <class Enum>
Enum enumerator(int value) {
  static_assert(sizeof(Enum) == sizeof(value));
  Enum result;
  std::memcpy(&result, &value, sizeof(value));
  return result;
}

}  // namespace npuless::runtime
