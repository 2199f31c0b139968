#include "isa/simd_avx2.h"
#include "vector_probe.h"

namespace npuless::avx2 {
namespace {

#include "vector_probe.inl"

}  // namespace

constinit const VectorProbe vector_probe = kProbe;

}  // namespace npuless::avx2
