// Every code of the two forward operators' phase 1, with its sentence (F12).
#include <gtest/gtest.h>

#include <string>

#include "linear_cross_entropy/test_forward.h"

namespace npuless::linear_cross_entropy {
namespace {

constexpr DType kNull = DType::kUndefined;

struct Refusal {
  int argument;  // position among the tensors
  DType dtype;   // of the replacement; kNull: a null pointer
  std::vector<int64_t> dims;
  int32_t code;
  const char* word;
};

void expect_sentence(const char* word) {
  const char* sentence = aclGetRecentErrMsg();
  ASSERT_NE(sentence, nullptr);
  EXPECT_NE(std::string(sentence).find(word), std::string::npos) << sentence;
}

const Refusal kMaxSumRefusals[] = {
    {0, kNull, {}, 161001, "input"},
    {1, kNull, {}, 161001, "weight"},
    {2, kNull, {}, 161001, "target"},
    {3, kNull, {}, 161001, "logitsMaxLocalOut"},
    {4, kNull, {}, 161001, "sumExpLogitsLocalOut"},
    {5, kNull, {}, 161001, "predictedLogitsLocalOut"},
    {6, kNull, {}, 161001, "targetMaskOut"},
    {7, kNull, {}, 161001, "maskedTargetOut"},
    {0, DType::kFloat32, {9, 5}, 161002, "input"},
    {1, DType::kFloat16, {128, 5}, 161002, "weight"},
    {2, DType::kFloat32, {9}, 161002, "target"},
    {3, DType::kBfloat16, {9}, 161002, "logitsMaxLocalOut"},
    {4, DType::kBfloat16, {9}, 161002, "sumExpLogitsLocalOut"},
    {5, DType::kBfloat16, {9}, 161002, "predictedLogitsLocalOut"},
    {6, DType::kBool, {2}, 161002, "targetMaskOut"},
    {7, DType::kInt64, {9}, 161002, "maskedTargetOut"},
    {8, DType::kFloat32, {9, 128}, 161002, "vocabParallelLogitsOutOptional"},
    {0, DType::kBfloat16, {45}, 161002, "input"},
    {1, DType::kBfloat16, {128, 5, 1}, 161002, "weight"},
    {2, DType::kInt32, {9, 1}, 161002, "target"},
    {1, DType::kBfloat16, {0, 5}, 161002, "weight"},
    {1, DType::kBfloat16, {128, 6}, 161002, "weight"},
    {2, DType::kInt32, {8}, 161002, "target"},
    {3, DType::kFloat32, {10}, 161002, "logitsMaxLocalOut"},
    {4, DType::kFloat32, {8}, 161002, "sumExpLogitsLocalOut"},
    {5, DType::kFloat32, {8}, 161002, "predictedLogitsLocalOut"},
    {6, DType::kUint8, {1}, 161002, "targetMaskOut"},
    {6, DType::kUint8, {9}, 161002, "targetMaskOut"},
    {7, DType::kInt32, {8}, 161002, "maskedTargetOut"},
    {8, DType::kBfloat16, {8, 128}, 161002, "vocabParallelLogitsOutOptional"},
    {8, DType::kBfloat16, {9, 127}, 161002, "vocabParallelLogitsOutOptional"},
};

TEST(MaxSumRefusals, EveryDocumentedCode) {
  for (const Refusal& r : kMaxSumRefusals) {
    SCOPED_TRACE(r.word);
    ForwardProblem p({9, 5, 128}, {.with_logits = true});
    ForwardProblem::Handles handles(p);
    TestTensor replacement =
        TestTensor::make(r.dtype == kNull ? DType::kInt8 : r.dtype, r.dims, false);
    aclTensor* handle = r.dtype == kNull ? nullptr : replacement.create();
    handles.given[static_cast<size_t>(r.argument)] = handle;
    uint64_t bytes = 77;
    aclOpExecutor* executor = nullptr;
    EXPECT_EQ(handles.phase1(&bytes, &executor), r.code);
    EXPECT_EQ(bytes, 77u);
    EXPECT_EQ(executor, nullptr);
    expect_sentence(r.word);
    aclDestroyTensor(handle);
  }
}

TEST(MaxSumRefusals, Ranges) {
  struct Range {
    int64_t start, end;
    const char* word;
  };
  for (const Range& r : {Range{-1, 3, "vocabStartIndex"}, Range{5, 4, "vocabEndIndex"}}) {
    ForwardProblem p({9, 5, 128}, {});
    p.start = r.start;
    p.end = r.end;
    uint64_t bytes = 0;
    aclOpExecutor* executor = nullptr;
    EXPECT_EQ(ForwardProblem::Handles(p).phase1(&bytes, &executor), 161002);
    expect_sentence(r.word);
  }
}

TEST(MaxSumRefusals, OutputsMustNotOverlap) {
  ForwardProblem p({9, 5, 128}, {.with_logits = true});
  struct Output {
    size_t argument;
    TestTensor tensor;
    const char* word;
  };
  Output outputs[] = {
      {3, TestTensor(DType::kFloat32, {9}, {0}, 0), "logitsMaxLocalOut"},
      {4, TestTensor(DType::kFloat32, {9}, {0}, 0), "sumExpLogitsLocalOut"},
      {5, TestTensor(DType::kFloat32, {9}, {0}, 0), "predictedLogitsLocalOut"},
      {6, TestTensor(DType::kUint8, {2}, {0}, 0), "targetMaskOut"},
      {7, TestTensor(DType::kInt32, {9}, {0}, 0), "maskedTargetOut"},
      {8, TestTensor(DType::kBfloat16, {9, 128}, {0, 1}, 0), "vocabParallelLogitsOutOptional"}};
  for (Output& output : outputs) {
    ForwardProblem::Handles handles(p);
    aclTensor* handle = output.tensor.create();
    handles.given[output.argument] = handle;
    uint64_t bytes = 0;
    aclOpExecutor* executor = nullptr;
    EXPECT_EQ(handles.phase1(&bytes, &executor), 161002);
    expect_sentence(output.word);
    aclDestroyTensor(handle);
  }
}

TEST(MaxSumRefusals, HiddenLimit) {
  ForwardProblem p({1, 65535, 2}, {});
  uint64_t bytes = 0;
  aclOpExecutor* executor = nullptr;
  EXPECT_EQ(ForwardProblem::Handles(p).phase1(&bytes, &executor), 161002);
  expect_sentence("input");
}

const Refusal kLossRefusals[] = {
    {0, kNull, {}, 161001, "logitsMax"},
    {1, kNull, {}, 161001, "sumExpLogits"},
    {2, kNull, {}, 161001, "predictedLogits"},
    {4, kNull, {}, 161001, "lossOut"},
    {5, kNull, {}, 161001, "softMaxOutOptional"},
    {0, DType::kFloat16, {4}, 161002, "logitsMax"},
    {1, DType::kFloat16, {4}, 161002, "sumExpLogits"},
    {2, DType::kFloat16, {4}, 161002, "predictedLogits"},
    {3, DType::kInt32, {4, 7}, 161002, "vocabParallelLogitsOptional"},
    {4, DType::kFloat16, {4}, 161002, "lossOut"},
    {5, DType::kFloat16, {4, 7}, 161002, "softMaxOutOptional"},
    {0, DType::kFloat32, {4, 1}, 161002, "logitsMax"},
    {3, DType::kFloat32, {28}, 161002, "vocabParallelLogitsOptional"},
    {1, DType::kFloat32, {5}, 161002, "sumExpLogits"},
    {2, DType::kFloat32, {5}, 161002, "predictedLogits"},
    {3, DType::kFloat32, {5, 7}, 161002, "vocabParallelLogitsOptional"},
    {4, DType::kFloat32, {3}, 161002, "lossOut"},
    {5, DType::kFloat32, {3, 7}, 161002, "softMaxOutOptional"},
    {5, DType::kFloat32, {4, 8}, 161002, "softMaxOutOptional"},
};

TEST(LossRefusals, EveryDocumentedCode) {
  for (const Refusal& r : kLossRefusals) {
    SCOPED_TRACE(r.word);
    std::vector<TestTensor> tensors;
    for (int i = 0; i < 6; ++i) {
      const bool matrix = i == 3 || i == 5;
      std::vector<int64_t> dims = matrix ? std::vector<int64_t>{4, 7} : std::vector<int64_t>{4};
      DType dtype = DType::kFloat32;
      if (i == r.argument && r.dtype != kNull) {
        dims = r.dims;
        dtype = r.dtype;
      }
      tensors.push_back(TestTensor::make(dtype, dims, false));
    }
    aclTensor* t[6];
    for (size_t i = 0; i < 6; ++i) t[i] = tensors[i].create();
    aclTensor* given[6];
    for (size_t i = 0; i < 6; ++i) given[i] = t[i];
    if (r.dtype == kNull) given[r.argument] = nullptr;
    uint64_t bytes = 77;
    aclOpExecutor* executor = nullptr;
    EXPECT_EQ(aclnnFusedCrossEntropyLossWithMaxSumGetWorkspaceSize(
                  given[0], given[1], given[2], 0.0f, nullptr, nullptr, given[3], given[4],
                  given[5], &bytes, &executor),
              r.code);
    EXPECT_EQ(bytes, 77u);
    expect_sentence(r.word);
    for (aclTensor* tensor : t) aclDestroyTensor(tensor);
  }
}

}  // namespace
}  // namespace npuless::linear_cross_entropy
