#include "isa/simd_portable.h"
#include "vector_probe.h"

namespace npuless::portable {
namespace {

#include "vector_probe.inl"

}  // namespace

constinit const VectorProbe vector_probe = kProbe;

}  // namespace npuless::portable
