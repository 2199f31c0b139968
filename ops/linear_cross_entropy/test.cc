// The gradient against the double-precision reference: cases × ISA levels × types × threads (F2 and
// F11 of the case list in cases_test.cc).
#include <gtest/gtest.h>

#include <string>

#include "base/parallel.h"
#include "isa/level.h"
#include "linear_cross_entropy/test_problem.h"

namespace npuless::linear_cross_entropy {
namespace {

using Threads = std::vector<int>;
const Threads kThreads = {1, 2, 3, 7};

std::vector<isa::Level> levels() {
  std::vector<isa::Level> all;
  for (const isa::Level level : isa::kAllLevels) {
    if (isa::available(level)) all.push_back(level);
  }
  return all;
}

std::string describe(const Case& c, const Options& o) {
  return std::to_string(c.tokens) + "x" + std::to_string(c.hidden) + "x" + std::to_string(c.vocab) +
         " " + dtype_name(o.dtype) + (o.softmax_mode ? " softmax" : "") +
         (o.bool_mask ? " bool mask" : "") + (o.wide_index ? " int64" : "") +
         (o.spread ? " strided" : "");
}

class Grad : public ::testing::Test {
 protected:
  void TearDown() override {
    ASSERT_TRUE(isa::set_level(levels().back()).ok());
    ASSERT_TRUE(set_num_threads(2).ok());
  }
};

// Values on every level with one thread count, then the other counts bit for bit.
void check(const Case& c, const Options& o, const Threads& counts = kThreads) {
  SCOPED_TRACE(describe(c, o));
  Problem problem(c, o);
  const ref::GradOutputs want = ref::grad(problem.reference_inputs(), problem.precision());
  for (const isa::Level level : levels()) {
    SCOPED_TRACE(isa::level_name(level));
    ASSERT_TRUE(isa::set_level(level).ok());
    std::vector<unsigned char> first_input_grad, first_weight_grad;
    for (const int threads : counts) {
      ASSERT_TRUE(set_num_threads(threads).ok());
      ASSERT_NO_FATAL_FAILURE(problem.run());
      if (threads == counts[0]) {
        Problem::expect_close("inputGradOut", problem.input_grad, want.input_grad,
                              want.input_bound);
        Problem::expect_close("weightGradOut", problem.weight_grad, want.weight_grad,
                              want.weight_bound);
        first_input_grad = problem.input_grad.bytes();
        first_weight_grad = problem.weight_grad.bytes();
      }
      ASSERT_EQ(problem.input_grad.bytes(), first_input_grad) << threads << " threads";
      ASSERT_EQ(problem.weight_grad.bytes(), first_weight_grad) << threads << " threads";
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

// More threads than pieces, for few tokens and past two blocks of them.
TEST_F(Grad, ManyThreads) {
  for (const Case& c : {Case{3, 17, 4001}, Case{257, 5, 4001}}) check(c, {}, {1, 100});
}

// … and the order of sums over the vocabulary stays. Its second half is the first one negated, so
// inputGrad is what the roundings of those sums leave.
TEST_F(Grad, ManyThreadsKeepTheOrderOfSums) {
  for (const Case& c : {Case{3, 17, 4800}, Case{257, 5, 4800}}) {
    Problem problem(c, {.softmax_mode = true});
    for (int64_t v = 0; v < c.vocab / 2; ++v) {
      for (int64_t h = 0; h < c.hidden; ++h) {
        problem.weight.put(v + c.vocab / 2, h, problem.weight.get(v, h));
      }
      for (int64_t n = 0; n < c.tokens; ++n) {
        const double p = problem.softmax.put(n, v, 1.0 + static_cast<double>((7 * n + 3 * v) % 97));
        problem.softmax.put(n, v + c.vocab / 2, -p);
      }
    }
    for (const isa::Level level : levels()) {
      SCOPED_TRACE(isa::level_name(level));
      ASSERT_TRUE(isa::set_level(level).ok());
      ASSERT_TRUE(set_num_threads(1).ok());
      ASSERT_NO_FATAL_FAILURE(problem.run());
      const std::vector<unsigned char> want = problem.input_grad.bytes();
      ASSERT_TRUE(set_num_threads(100).ok());
      ASSERT_NO_FATAL_FAILURE(problem.run());
      ASSERT_EQ(problem.input_grad.bytes(), want);
    }
  }
}

TEST_F(Grad, MemorySavingBfloat16) {
  for (const Case& c : kCases) check(c, {});
}

TEST_F(Grad, MemorySavingFloat16) {
  for (const Case& c : kCases) {
    check(c, {.dtype = DType::kFloat16, .bool_mask = true, .wide_index = true});
  }
}

TEST_F(Grad, HighPerformanceBfloat16) {
  for (const Case& c : kCases) check(c, {.softmax_mode = true, .wide_index = true});
}

TEST_F(Grad, HighPerformanceFloat16) {
  for (const Case& c : kCases) {
    check(c, {.dtype = DType::kFloat16, .softmax_mode = true, .bool_mask = true});
  }
}

TEST_F(Grad, StridesAndOffsetsEverywhere) {
  for (const Case& c : {Case{33, 31, 251}, Case{5, 3, 129}, Case{129, 65, 481}}) {
    for (const DType dtype : {DType::kBfloat16, DType::kFloat16}) {
      for (const bool softmax_mode : {false, true}) {
        check(c, {.dtype = dtype, .softmax_mode = softmax_mode, .spread = true});
        check(c, {.dtype = dtype,
                  .softmax_mode = softmax_mode,
                  .bool_mask = true,
                  .wide_index = true,
                  .spread = true});
      }
    }
  }
}

}  // namespace
}  // namespace npuless::linear_cross_entropy
