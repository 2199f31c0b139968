// Every code of phase 1, in the order of the checks, with its sentence (F12); empty tensors (B2);
// the workspace (C5, C8, C9).
#include <gtest/gtest.h>

#include <string>

#include "linear_cross_entropy/test_problem.h"

namespace npuless::linear_cross_entropy {
namespace {

constexpr Case kShape = {9, 5, 128};

// Owns a replacement argument.
struct Spare {
  explicit Spare(TestTensor t) : tensor(std::move(t)), handle(tensor.create()) {}
  ~Spare() { aclDestroyTensor(handle); }
  Spare(const Spare&) = delete;
  Spare& operator=(const Spare&) = delete;
  TestTensor tensor;
  aclTensor* handle;
};

struct Refusal {
  const char* name;
  int argument;  // position in the prototype's tensors; -1: labelSmoothing
  DType dtype;   // of the replacement; kUndefined: null
  std::vector<int64_t> dims;
  int32_t code;
  const char* word;  // must stand in the sentence
  bool softmax_mode = false;
};

const Refusal kRefusals[] = {
    {"null", 0, DType::kUndefined, {}, 161001, "grad"},
    {"null", 1, DType::kUndefined, {}, 161001, "input"},
    {"null", 2, DType::kUndefined, {}, 161001, "weight"},
    {"null", 3, DType::kUndefined, {}, 161001, "targetMask"},
    {"null", 4, DType::kUndefined, {}, 161001, "maskedTarget"},
    {"null", 5, DType::kUndefined, {}, 161001, "logitsMaxOptional"},
    {"null", 6, DType::kUndefined, {}, 161001, "sumExpLogitsOptional"},
    {"null", 8, DType::kUndefined, {}, 161001, "inputGradOut"},
    {"null", 9, DType::kUndefined, {}, 161001, "weightGradOut"},
    {"type", 0, DType::kFloat16, {9}, 161002, "grad"},
    {"type", 1, DType::kFloat32, {9, 5}, 161002, "input"},
    {"type", 2, DType::kFloat16, {128, 5}, 161002, "weight"},
    {"type", 3, DType::kInt8, {9}, 161002, "targetMask"},
    {"type", 4, DType::kFloat32, {9}, 161002, "maskedTarget"},
    {"type", 5, DType::kBfloat16, {9}, 161002, "logitsMaxOptional"},
    {"type", 6, DType::kBfloat16, {9}, 161002, "sumExpLogitsOptional"},
    {"type", 7, DType::kBfloat16, {9, 128}, 161002, "softmaxOptional", true},
    {"type", 8, DType::kFloat16, {9, 5}, 161002, "inputGradOut"},
    {"type", 9, DType::kFloat32, {128, 5}, 161002, "weightGradOut"},
    {"smoothing", -1, DType::kUndefined, {}, 161002, "labelSmoothing"},
    {"rank", 0, DType::kFloat32, {9, 1}, 161002, "grad"},
    {"rank", 1, DType::kBfloat16, {45}, 161002, "input"},
    {"rank", 2, DType::kBfloat16, {128}, 161002, "weight"},
    {"rank", 3, DType::kUint8, {2, 1}, 161002, "targetMask"},
    {"rank", 8, DType::kBfloat16, {45}, 161002, "inputGradOut"},
    {"shape", 1, DType::kBfloat16, {8, 5}, 161002, "input"},
    {"shape", 2, DType::kBfloat16, {128, 6}, 161002, "weight"},
    {"short bits", 3, DType::kUint8, {1}, 161002, "targetMask"},
    {"short bools", 3, DType::kBool, {8}, 161002, "targetMask"},
    {"long bools", 3, DType::kBool, {10}, 161002, "targetMask"},
    {"shape", 4, DType::kInt32, {8}, 161002, "maskedTarget"},
    {"shape", 5, DType::kFloat32, {10}, 161002, "logitsMaxOptional"},
    {"shape", 6, DType::kFloat32, {1}, 161002, "sumExpLogitsOptional"},
    {"shape", 7, DType::kFloat32, {8, 128}, 161002, "softmaxOptional", true},
    {"shape", 7, DType::kFloat32, {9, 127}, 161002, "softmaxOptional", true},
    {"shape", 8, DType::kBfloat16, {9, 4}, 161002, "inputGradOut"},
    {"shape", 9, DType::kBfloat16, {127, 5}, 161002, "weightGradOut"},
    {"shape", 9, DType::kBfloat16, {128, 9}, 161002, "weightGradOut"},
};

void expect_refused(const Problem::Handles& handles, int32_t code, const std::string& word) {
  uint64_t bytes = 12345;
  auto* const untouched = reinterpret_cast<aclOpExecutor*>(&bytes);
  aclOpExecutor* executor = untouched;
  ASSERT_EQ(handles.phase1(&bytes, &executor), code);
  EXPECT_EQ(bytes, 12345u);
  EXPECT_EQ(executor, untouched);
  const char* sentence = aclGetRecentErrMsg();
  ASSERT_NE(sentence, nullptr);
  EXPECT_NE(std::string(sentence).find(word), std::string::npos) << sentence;
  EXPECT_NE(std::string(sentence).find("aclnnFusedLinearCrossEntropyLossGrad"), std::string::npos);
  EXPECT_EQ(aclGetRecentErrMsg(), nullptr);
}

TEST(GradRefusals, EveryDocumentedCode) {
  for (const Refusal& r : kRefusals) {
    SCOPED_TRACE(std::string(r.word) + " " + r.name);
    Problem p(kShape, {.softmax_mode = r.softmax_mode});
    Problem::Handles handles(p);
    if (r.argument < 0) {
      for (const float smoothing : {0.1f, -0.1f, NAN}) {
        handles.label_smoothing = smoothing;
        expect_refused(handles, r.code, r.word);
      }
      continue;
    }
    const auto at = static_cast<size_t>(r.argument);
    if (r.dtype == DType::kUndefined) {
      handles.given[at] = nullptr;
      expect_refused(handles, r.code, r.word);
      continue;
    }
    const Spare spare(TestTensor::make(r.dtype, r.dims, false));
    handles.given[at] = spare.handle;
    expect_refused(handles, r.code, r.word);
  }
}

// The first failing check decides: pointers before types before attributes before shapes.
TEST(GradRefusals, ChecksRunInOrder) {
  Problem p(kShape, {});
  Problem::Handles handles(p);
  const Spare wrong_type(TestTensor::make(DType::kFloat32, {9, 5}, false));
  const Spare wrong_shape(TestTensor::make(DType::kFloat32, {8}, false));
  handles.given[1] = wrong_type.handle;
  handles.given[0] = wrong_shape.handle;
  handles.label_smoothing = 1.0f;
  aclTensor* const last = handles.given[9];
  handles.given[9] = nullptr;
  expect_refused(handles, 161001, "weightGradOut");
  handles.given[9] = last;
  expect_refused(handles, 161002, "input");
  handles.given[1] = handles.all[1];
  expect_refused(handles, 161002, "labelSmoothing");
  handles.label_smoothing = 0.0f;
  expect_refused(handles, 161002, "input");
}

TEST(GradRefusals, FormatMustBeNd) {
  Problem p(kShape, {});
  Problem::Handles handles(p);
  const int64_t dims[] = {9, 5};
  aclTensor* nz = aclCreateTensor(dims, 2, ACL_BF16, nullptr, 0, ACL_FORMAT_FRACTAL_NZ, dims, 2,
                                  &p.input.at<bf16>(0, 0));
  handles.given[1] = nz;
  expect_refused(handles, 161002, "input");
  aclDestroyTensor(nz);
}

// A rank belongs to the argument, not to the tensor: one tensor in two roles is judged in both.
TEST(GradRefusals, OneTensorInTwoRoles) {
  Problem p({128, 5, 128}, {.softmax_mode = true});
  Problem::Handles handles(p);
  handles.given[0] = handles.given[7];
  expect_refused(handles, 161002, "grad");
}

// Elements that share an address would hold whatever was written last.
TEST(GradRefusals, OutputsMustNotOverlap) {
  Problem p(kShape, {});
  const Spare rows(TestTensor(DType::kBfloat16, {9, 5}, {0, 1}, 0));
  const Spare columns(TestTensor(DType::kBfloat16, {128, 5}, {4, 1}, 0));
  Problem::Handles first(p);
  first.given[8] = rows.handle;
  expect_refused(first, 161002, "inputGradOut");
  Problem::Handles second(p);
  second.given[9] = columns.handle;
  expect_refused(second, 161002, "weightGradOut");
}

// Decision 18: below 128 rows in either mode.
TEST(GradRefusals, VocabularyBelow128) {
  for (const bool softmax_mode : {false, true}) {
    for (const int64_t vocab : {0, 1, 127}) {
      Problem p({9, 5, vocab}, {.softmax_mode = softmax_mode});
      const Problem::Handles handles(p);
      expect_refused(handles, 161002, "weight");
    }
  }
}

TEST(GradRefusals, PhaseOneOutputsComeFirst) {
  Problem p(kShape, {});
  Problem::Handles handles(p);
  handles.given[0] = nullptr;
  uint64_t bytes = 0;
  aclOpExecutor* executor = nullptr;
  EXPECT_EQ(handles.phase1(nullptr, &executor), 161001);
  EXPECT_EQ(handles.phase1(&bytes, nullptr), 161001);
}

// In high-performance mode max and sum are not looked at, whatever they are.
TEST(GradRefusals, SoftmaxModeIgnoresMaxAndSum) {
  Problem p(kShape, {.softmax_mode = true});
  Problem::Handles handles(p);
  const Spare odd(TestTensor::make(DType::kInt8, {3, 3}, false));
  handles.given[5] = nullptr;
  handles.given[6] = odd.handle;
  uint64_t bytes = 0;
  aclOpExecutor* executor = nullptr;
  ASSERT_EQ(handles.phase1(&bytes, &executor), 0);
  EXPECT_EQ(aclDestroyAclOpExecutor(executor), 0);
}

// A mask of N bytes, as the official sample passes, is read as bits.
TEST(GradRefusals, LongBitMaskIsLegal) {
  Problem p(kShape, {});
  Problem::Handles handles(p);
  const Spare mask(TestTensor::make(DType::kUint8, {9}, false));
  handles.given[3] = mask.handle;
  uint64_t bytes = 0;
  aclOpExecutor* executor = nullptr;
  ASSERT_EQ(handles.phase1(&bytes, &executor), 0);
  EXPECT_EQ(aclDestroyAclOpExecutor(executor), 0);
}

// B2: an empty input or weight succeeds without a workspace. The page leaves the outputs untouched.
TEST(GradRefusals, EmptyTensorsSucceed) {
  for (const Case& c : {Case{0, 5, 128}, Case{9, 0, 128}, Case{0, 0, 200}}) {
    Problem p(c, {});
    p.run();
    EXPECT_EQ(p.workspace_bytes, 0u);
    for (const unsigned char byte : p.weight_grad.bytes()) ASSERT_EQ(byte, 0xFF);
  }
}

uint64_t workspace_of(const Case& c, bool softmax_mode) {
  const int64_t strides[] = {c.hidden, 1};
  const auto matrix = [&](int64_t rows, int64_t cols, aclDataType type) {
    const int64_t dims[] = {rows, cols};
    return aclCreateTensor(dims, 2, type, cols == c.hidden ? strides : nullptr, 0, ACL_FORMAT_ND,
                           dims, 2, nullptr);
  };
  const auto vector = [](int64_t size, aclDataType type) {
    return aclCreateTensor(&size, 1, type, nullptr, 0, ACL_FORMAT_ND, &size, 1, nullptr);
  };
  aclTensor* t[] = {vector(c.tokens, ACL_FLOAT),          matrix(c.tokens, c.hidden, ACL_BF16),
                    matrix(c.vocab, c.hidden, ACL_BF16),  vector((c.tokens + 7) / 8, ACL_UINT8),
                    vector(c.tokens, ACL_INT32),          vector(c.tokens, ACL_FLOAT),
                    vector(c.tokens, ACL_FLOAT),          matrix(c.tokens, c.vocab, ACL_FLOAT),
                    matrix(c.tokens, c.hidden, ACL_BF16), matrix(c.vocab, c.hidden, ACL_BF16)};
  uint64_t bytes = 0;
  aclOpExecutor* executor = nullptr;
  EXPECT_EQ(aclnnFusedLinearCrossEntropyLossGradGetWorkspaceSize(
                t[0], t[1], t[2], t[3], t[4], 0.0f, t[5], t[6], softmax_mode ? t[7] : nullptr, t[8],
                t[9], &bytes, &executor),
            0);
  EXPECT_EQ(aclDestroyAclOpExecutor(executor), 0);
  for (aclTensor* tensor : t) aclDestroyTensor(tensor);
  return bytes;
}

// Strides of 0 make tensors of any extent; sizes that 64 bits cannot hold are refused, in any form
// that a product of them could overflow.
TEST(GradWorkspace, ExtentsBeyondAnyMemoryAreRefused) {
  uint16_t two_bytes = 0;
  for (const int64_t tokens : {int64_t{1} << 62, int64_t{1} << 60, int64_t{1} << 45}) {
    Problem p(kShape, {.dtype = DType::kFloat16});
    Problem::Handles handles(p);
    const int64_t matrix[] = {tokens, 5};
    const int64_t flat[] = {0, 0};
    const int64_t rows[] = {1, 0};
    const auto make = [&](int rank, aclDataType type, const int64_t* strides) {
      return aclCreateTensor(matrix, static_cast<uint64_t>(rank), type, strides, 0, ACL_FORMAT_ND,
                             matrix, static_cast<uint64_t>(rank), &two_bytes);
    };
    aclTensor* wide[] = {make(1, ACL_FLOAT, flat), make(2, ACL_FLOAT16, flat),
                         make(1, ACL_BOOL, flat), make(1, ACL_INT32, flat),
                         make(2, ACL_FLOAT16, rows)};
    handles.given[0] = handles.given[5] = handles.given[6] = wide[0];
    handles.given[1] = wide[1];
    handles.given[3] = wide[2];
    handles.given[4] = wide[3];
    handles.given[8] = wide[4];
    uint64_t bytes = 0;
    aclOpExecutor* executor = nullptr;
    EXPECT_EQ(handles.phase1(&bytes, &executor), 161002);
    for (aclTensor* tensor : wide) aclDestroyTensor(tensor);
  }
}

// C5, C8, C9: the size is a function of shape alone, the same on every call, and flat in the
// vocabulary: neither an N × V buffer nor a copy of W can hide in it.
TEST(GradWorkspace, FlatInTheVocabulary) {
  for (const bool softmax_mode : {false, true}) {
    const uint64_t small = workspace_of({4096, 4096, 16384}, softmax_mode);
    EXPECT_EQ(workspace_of({4096, 4096, 16384}, softmax_mode), small);
    const uint64_t large = workspace_of({4096, 4096, 262144}, softmax_mode);
    EXPECT_LE(large, small + small / 4);
    EXPECT_LT(large, uint64_t{4096} * 262144 * 2 / 4);
  }
}

}  // namespace
}  // namespace npuless::linear_cross_entropy
