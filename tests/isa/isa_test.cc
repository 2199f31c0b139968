// Every level's loads and stores against the scalar conversions of base/half.h, bit by bit.
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <ios>
#include <string>
#include <type_traits>
#include <vector>

#include "base/half.h"
#include "isa/level.h"
#include "vector_probe.h"

namespace npuless {
namespace {

constexpr int kMostLanes = 16;

struct LevelProbe {
  isa::Level level;
  const VectorProbe* probe;
};

std::vector<LevelProbe> available_probes() {
  std::vector<LevelProbe> probes = {{isa::Level::kPortable, &portable::vector_probe}};
#if defined(__x86_64__)
  if (isa::available(isa::Level::kAvx2)) {
    probes.push_back({isa::Level::kAvx2, &avx2::vector_probe});
  }
  if (isa::available(isa::Level::kAvx512)) {
    probes.push_back({isa::Level::kAvx512, &avx512::vector_probe});
  }
#endif
  return probes;
}

template <class T>
const Conversions<T>& conversions_of(const VectorProbe& probe) {
  if constexpr (std::is_same_v<T, float>) {
    return probe.fp32;
  } else if constexpr (std::is_same_v<T, f16>) {
    return probe.fp16;
  } else {
    return probe.bfloat16;
  }
}

template <class T>
uint32_t bits_of(T x) {
  if constexpr (sizeof(T) == 4) {
    return std::bit_cast<uint32_t>(x);
  } else {
    return x.bits;
  }
}

// Every upper half of an fp32 with lower halves around every place where a rounding turns: zero,
// ties of bf16 (bit 15) and of f16 (bit 12, and any lower bit below its normal range), all ones.
std::vector<float> turning_floats() {
  std::vector<uint32_t> lower = {0, 0xFFFF};
  for (int bit = 0; bit < 16; ++bit) {
    for (int delta = -1; delta <= 1; ++delta) {
      lower.push_back(((1u << bit) + static_cast<uint32_t>(delta)) & 0xFFFFu);
    }
  }
  std::vector<float> floats;
  for (uint32_t upper = 0; upper < 0x10000; ++upper) {
    for (const uint32_t low : lower) floats.push_back(std::bit_cast<float>((upper << 16) | low));
  }
  return floats;
}

template <class T>
class Vectors : public testing::Test {};
using Types = testing::Types<float, f16, bf16>;
TYPED_TEST_SUITE(Vectors, Types);

TYPED_TEST(Vectors, NarrowAsScalarsDo) {
  const std::vector<float> floats = turning_floats();
  for (const LevelProbe& at : available_probes()) {
    const int count = 2 * at.probe->lanes;
    for (int way = 0; way < kWays; ++way) {
      SCOPED_TRACE(std::string(isa::level_name(at.level)) + ", way " + std::to_string(way));
      const auto narrow_all = conversions_of<TypeParam>(*at.probe).narrow[way];
      for (size_t begin = 0; begin + static_cast<size_t>(count) <= floats.size();
           begin += static_cast<size_t>(count)) {
        alignas(64) TypeParam out[2 * kMostLanes];
        std::memset(out, 0xFF, sizeof out);
        narrow_all(&floats[begin], out);
        for (int i = 0; i < count; ++i) {
          const float x = floats[begin + static_cast<size_t>(i)];
          ASSERT_EQ(bits_of(out[i]), bits_of(narrow<TypeParam>(x)))
              << std::hex << std::bit_cast<uint32_t>(x) << ", lane " << std::dec << i;
        }
      }
    }
  }
}

// A NaN takes bf16's slow way, whatever lane it is in, and its neighbours take it too.
TYPED_TEST(Vectors, NarrowNanInAnyLane) {
  constexpr uint32_t kNans[] = {0x7FFFFFFF, 0xFFFFFFFF, 0x7F800001, 0xFF80FFFF, 0x7FC08000};
  for (const LevelProbe& at : available_probes()) {
    const int count = 2 * at.probe->lanes;
    for (int way = 0; way < kWays; ++way) {
      for (int lane = 0; lane < count; ++lane) {
        for (const uint32_t nan : kNans) {
          float in[2 * kMostLanes];
          for (int i = 0; i < count; ++i) in[i] = 0x1.01p0f + static_cast<float>(i);
          in[lane] = std::bit_cast<float>(nan);
          alignas(64) TypeParam out[2 * kMostLanes];
          conversions_of<TypeParam>(*at.probe).narrow[way](in, out);
          for (int i = 0; i < count; ++i) {
            ASSERT_EQ(bits_of(out[i]), bits_of(narrow<TypeParam>(in[i])))
                << isa::level_name(at.level) << ", way " << way << ", " << std::hex << nan
                << std::dec << " in lane " << lane << ", lane " << i;
          }
        }
      }
    }
  }
}

TYPED_TEST(Vectors, WidenAsScalarsDo) {
  for (const LevelProbe& at : available_probes()) {
    const auto& conversions = conversions_of<TypeParam>(*at.probe);
    const int count = 2 * at.probe->lanes;
    for (const auto widen_all : {conversions.widen, conversions.widen_pair}) {
      for (uint32_t begin = 0; begin < 0x10000; begin += static_cast<uint32_t>(count)) {
        TypeParam in[2 * kMostLanes];
        float out[2 * kMostLanes] = {};
        for (int i = 0; i < count; ++i) {
          const uint32_t bits = begin + static_cast<uint32_t>(i);
          if constexpr (sizeof(TypeParam) == 4) {
            in[i] = std::bit_cast<float>(bits << 16 | 0x1234u);
          } else {
            in[i].bits = static_cast<uint16_t>(bits);
          }
        }
        widen_all(in, out);
        for (int i = 0; i < count; ++i) {
          ASSERT_EQ(bits_of(out[i]), bits_of(widen(in[i])))
              << isa::level_name(at.level) << ", " << std::hex << bits_of(in[i]);
        }
      }
    }
  }
}

TYPED_TEST(Vectors, PartsReadZeroAndWriteNothingBeyond) {
  constexpr uint32_t kUntouched = sizeof(TypeParam) == 4 ? 0x55555555 : 0x5555;
  for (const LevelProbe& at : available_probes()) {
    const auto& conversions = conversions_of<TypeParam>(*at.probe);
    const int lanes = at.probe->lanes;
    for (int count = 0; count < lanes; ++count) {
      SCOPED_TRACE(std::string(isa::level_name(at.level)) + ", " + std::to_string(count));
      // On the heap, so that the sanitizers see a read beyond.
      std::vector<TypeParam> in(static_cast<size_t>(count));
      for (int i = 0; i < count; ++i) {
        in[static_cast<size_t>(i)] = narrow<TypeParam>(static_cast<float>(i + 1));
      }
      float wide[kMostLanes];
      conversions.widen_partial(in.data(), count, wide);
      for (int i = 0; i < lanes; ++i) {
        EXPECT_EQ(bits_of(wide[i]), bits_of(i < count ? static_cast<float>(i + 1) : 0.0f)) << i;
      }
      TypeParam out[kMostLanes];
      std::memset(out, 0x55, sizeof out);
      for (int i = 0; i < lanes; ++i) wide[i] = static_cast<float>(-i);
      conversions.narrow_partial(wide, count, out);
      for (int i = 0; i < lanes; ++i) {
        EXPECT_EQ(bits_of(out[i]),
                  i < count ? bits_of(narrow<TypeParam>(static_cast<float>(-i))) : kUntouched)
            << i;
      }
    }
  }
}

}  // namespace
}  // namespace npuless
