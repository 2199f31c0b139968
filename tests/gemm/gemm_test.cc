// The engines against a triple loop. Operands are small integers, so every fp32 sum is exact in
// any order and results must be equal, not close.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "base/half.h"
#include "gemm/engines.h"

namespace npuless {
namespace {

struct Shape {
  int64_t m, n, k;
};

constexpr Shape kShapes[] = {{1, 1, 1},     {1, 1, 2},    {3, 5, 7},     {4, 24, 16},
                             {8, 48, 480},  {9, 49, 481}, {5, 25, 241},  {17, 101, 3},
                             {64, 96, 240}, {31, 53, 61}, {2, 130, 500}, {33, 8, 1},
                             {12, 23, 479}, {100, 7, 239}};

enum class Layout { kAlongK, kAlongLines, kScattered };
constexpr Layout kLayouts[] = {Layout::kAlongK, Layout::kAlongLines, Layout::kScattered};

// Integers in [-4, 4]; with k ≤ 500 every partial sum is below 2^24.
int value_at(int64_t line, int64_t k, int64_t salt) {
  return static_cast<int>((line * 7 + k * 13 + line * k * 3 + salt) % 9) - 4;
}

// One operand stored in a source type and layout, NaN wherever no element lies.
struct StoredOperand {
  std::vector<unsigned char> bytes;
  gemm::Operand operand{};
};

template <class T>
StoredOperand store_operand(int64_t lines, int64_t k, Layout layout, int64_t salt) {
  const int64_t line_stride = layout == Layout::kAlongK       ? k + 3
                              : layout == Layout::kAlongLines ? 1
                                                              : 2;
  const int64_t k_stride = layout == Layout::kAlongK       ? 1
                           : layout == Layout::kAlongLines ? lines + 5
                                                           : 2 * lines + 1;
  const int64_t extent = (lines - 1) * line_stride + (k - 1) * k_stride + 1;
  StoredOperand stored;
  stored.bytes.assign(static_cast<size_t>(extent) * sizeof(T), 0xFF);
  auto* data = reinterpret_cast<T*>(stored.bytes.data());
  for (int64_t i = 0; i < lines; ++i) {
    for (int64_t j = 0; j < k; ++j) {
      data[i * line_stride + j * k_stride] = narrow<T>(static_cast<float>(value_at(i, j, salt)));
    }
  }
  stored.operand = {data, line_stride, k_stride, nullptr};
  return stored;
}

StoredOperand store_operand(gemm::Source source, int64_t lines, int64_t k, Layout layout,
                            int64_t salt) {
  if (source == gemm::Source::kBfloat16) return store_operand<bf16>(lines, k, layout, salt);
  if (source == gemm::Source::kFloat16) return store_operand<f16>(lines, k, layout, salt);
  return store_operand<float>(lines, k, layout, salt);
}

std::vector<unsigned char> packed(const gemm::Engine& engine, gemm::Source source,
                                  const gemm::Operand& operand, int64_t lines, int64_t k,
                                  int width) {
  const int64_t size = gemm::packed_size(engine, lines, k, width) * engine.element_bytes;
  std::vector<unsigned char> panels(static_cast<size_t>(size), 0xFF);
  engine.pack[static_cast<int>(source)](operand, lines, k, width, panels.data());
  return panels;
}

int64_t up(int64_t a, int64_t b) {
  return (a + b - 1) / b * b;
}

std::vector<float> multiply(const gemm::Engine& engine, const Shape& s, const void* a,
                            const void* b, bool accumulate, float initial) {
  const int64_t stride = up(s.n, engine.nr);
  std::vector<float> c(static_cast<size_t>(up(s.m, engine.mr) * stride), initial);
  engine.multiply({s.m, s.n, s.k, a, b, gemm::panel_stride(engine, s.k, engine.mr),
                   gemm::panel_stride(engine, s.k, engine.nr), c.data(), stride, accumulate});
  return c;
}

struct EngineCase {
  isa::Level level;
  DType dtype;
};

std::vector<EngineCase> engines() {
  std::vector<EngineCase> all;
  for (const isa::Level level : isa::kAllLevels) {
    if (!isa::available(level)) continue;
    all.push_back({level, DType::kBfloat16});
    all.push_back({level, DType::kFloat16});
  }
  return all;
}

std::string name_of(const EngineCase& e) {
  return std::string(isa::level_name(e.level)) + " " + dtype_name(e.dtype);
}

void expect_product(const gemm::Engine& engine, const Shape& s, const std::vector<float>& c,
                    const std::vector<float>& k_scale, float initial) {
  const int64_t stride = up(s.n, engine.nr);
  for (int64_t i = 0; i < s.m; ++i) {
    for (int64_t j = 0; j < s.n; ++j) {
      double sum = static_cast<double>(initial);
      for (int64_t k = 0; k < s.k; ++k) {
        const double scale =
            k_scale.empty() ? 1.0 : static_cast<double>(k_scale[static_cast<size_t>(k)]);
        sum += value_at(i, k, 1) * value_at(j, k, 5) * scale;
      }
      ASSERT_EQ(static_cast<double>(c[static_cast<size_t>(i * stride + j)]), sum)
          << "at (" << i << ", " << j << ") of " << s.m << "x" << s.n << "x" << s.k;
    }
  }
}

TEST(Gemm, EveryLayoutTypeAndShapeIsExact) {
  for (const EngineCase& e : engines()) {
    SCOPED_TRACE(name_of(e));
    const gemm::Engine& engine = gemm::engine_for(e.level, e.dtype);
    for (int source = 0; source < gemm::kSources; ++source) {
      if (engine.pack[source] == nullptr) continue;
      const auto type = static_cast<gemm::Source>(source);
      for (const Shape& s : kShapes) {
        for (const Layout la : kLayouts) {
          const StoredOperand a = store_operand(type, s.m, s.k, la, 1);
          const auto packed_a = packed(engine, type, a.operand, s.m, s.k, engine.mr);
          const Layout lb = kLayouts[(static_cast<int>(la) + 1) % 3];
          const StoredOperand b = store_operand(type, s.n, s.k, lb, 5);
          const auto packed_b = packed(engine, type, b.operand, s.n, s.k, engine.nr);
          const auto c = multiply(engine, s, packed_a.data(), packed_b.data(), false,
                                  std::numeric_limits<float>::quiet_NaN());
          expect_product(engine, s, c, {}, 0.0f);
        }
      }
    }
  }
}

TEST(Gemm, AccumulateAddsToWhatIsThere) {
  for (const EngineCase& e : engines()) {
    SCOPED_TRACE(name_of(e));
    const gemm::Engine& engine = gemm::engine_for(e.level, e.dtype);
    const gemm::Source type = gemm::source_of(e.dtype);
    const Shape s{9, 49, 61};
    const StoredOperand a = store_operand(type, s.m, s.k, Layout::kAlongK, 1);
    const StoredOperand b = store_operand(type, s.n, s.k, Layout::kAlongK, 5);
    const auto packed_a = packed(engine, type, a.operand, s.m, s.k, engine.mr);
    const auto packed_b = packed(engine, type, b.operand, s.n, s.k, engine.nr);
    expect_product(engine, s, multiply(engine, s, packed_a.data(), packed_b.data(), true, 17.0f),
                   {}, 17.0f);
  }
}

template <class T>
void poison_k(StoredOperand& stored, int64_t lines, int64_t k, float value) {
  auto* data = reinterpret_cast<T*>(stored.bytes.data());
  for (int64_t line = 0; line < lines; ++line) {
    data[line * stored.operand.line_stride + k * stored.operand.k_stride] = narrow<T>(value);
  }
}

// Factor 0 drops its k even when the elements are NaN or infinite; other factors multiply.
TEST(Gemm, ScaleAlongKMasksAndMultiplies) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const EngineCase& e : engines()) {
    SCOPED_TRACE(name_of(e));
    const gemm::Engine& engine = gemm::engine_for(e.level, e.dtype);
    const gemm::Source type = gemm::source_of(e.dtype);
    for (const Layout layout : kLayouts) {
      const Shape s{5, 101, 67};
      std::vector<float> scale(static_cast<size_t>(s.k), 1.0f);
      scale[3] = 0.0f;
      scale[4] = 0.5f;
      scale[31] = 0.0f;
      scale[66] = 0.25f;
      const StoredOperand a = store_operand(type, s.m, s.k, Layout::kAlongK, 1);
      StoredOperand b = store_operand(type, s.n, s.k, layout, 5);
      b.operand.k_scale = scale.data();
      if (e.dtype == DType::kBfloat16) {
        poison_k<bf16>(b, s.n, 3, kNan);
        poison_k<bf16>(b, s.n, 31, kInfinity);
      } else {
        poison_k<f16>(b, s.n, 3, kNan);
        poison_k<f16>(b, s.n, 31, kInfinity);
      }
      const auto packed_a = packed(engine, type, a.operand, s.m, s.k, engine.mr);
      const auto packed_b = packed(engine, type, b.operand, s.n, s.k, engine.nr);
      expect_product(engine, s, multiply(engine, s, packed_a.data(), packed_b.data(), false, 0.0f),
                     scale, 0.0f);
    }
  }
}

// Every 16-bit value survives packing: widened exactly by the fp32 engines, copied by the others.
TEST(Gemm, PackingKeepsEveryValue) {
  for (const EngineCase& e : engines()) {
    SCOPED_TRACE(name_of(e));
    const gemm::Engine& engine = gemm::engine_for(e.level, e.dtype);
    std::vector<uint16_t> all(65536);
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
    const auto lines = static_cast<int64_t>(engine.mr);
    const int64_t k = 65536 / lines;
    for (const bool along_k : {true, false}) {
      const gemm::Operand operand{all.data(), along_k ? k : 1, along_k ? 1 : lines, nullptr};
      const auto panels = packed(engine, gemm::source_of(e.dtype), operand, lines, k, engine.mr);
      for (int64_t line = 0; line < lines; ++line) {
        for (int64_t kk = 0; kk < k; ++kk) {
          const auto bits = static_cast<uint16_t>(along_k ? line * k + kk : kk * lines + line);
          const int64_t group = kk / engine.k_unit * engine.k_unit * lines;
          const int64_t at = group + line * engine.k_unit + kk % engine.k_unit;
          const unsigned char* got = panels.data() + at * engine.element_bytes;
          if (engine.element_bytes == 2) {
            ASSERT_EQ(std::memcmp(got, &bits, 2), 0) << bits;
            continue;
          }
          const float want = e.dtype == DType::kBfloat16 ? widen(bf16{bits}) : widen(f16{bits});
          ASSERT_EQ(std::memcmp(got, &want, 4), 0) << bits;
        }
      }
    }
  }
}

}  // namespace
}  // namespace npuless
