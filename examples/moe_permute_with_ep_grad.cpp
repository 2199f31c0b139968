// Gradient of the token permutation of a mixture-of-experts layer on one rank of an expert-parallel
// group: the rank holds the slots of sorted positions [begin, end) and adds their gradients back to
// the tokens they came from.
// Inputs are multiples of 1/128, whose sums fp32 holds exactly, so the results must equal the
// double-precision sums rounded once to bf16: the largest difference has to be 0.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_moe_token_permute_with_ep_grad.h"

#define CHECK(call)                                                             \
  do {                                                                          \
    const int status = static_cast<int>(call);                                  \
    if (status != 0) {                                                          \
      const char* message = aclGetRecentErrMsg();                               \
      std::printf("%s failed: %d %s\n", #call, status, message ? message : ""); \
      std::exit(1);                                                             \
    }                                                                           \
  } while (0)

namespace {

const int64_t kTokens = 500;
const int64_t kTopk = 4;
const int64_t kHidden = 64;
const int64_t kSlots = kTokens * kTopk;
const int64_t kBegin = 700;
const int64_t kEnd = 1500;
const int64_t kRows = kEnd - kBegin;

uint16_t to_bf16(double exact) {
  const float value = static_cast<float>(exact);
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

double from_bf16(uint16_t value) {
  const uint32_t bits = static_cast<uint32_t>(value) << 16;
  float result;
  std::memcpy(&result, &bits, sizeof result);
  return result;
}

// NaN is infinitely far from everything.
double distance(double a, double b) {
  return std::isnan(a) ? HUGE_VAL : std::fabs(a - b);
}

struct Tensor {
  void* device;
  aclTensor* handle;
};

template <class T>
Tensor upload(const std::vector<T>& host, const std::vector<int64_t>& shape, aclDataType type) {
  const size_t bytes = host.size() * sizeof(T);
  Tensor tensor = {nullptr, nullptr};
  CHECK(aclrtMalloc(&tensor.device, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK(aclrtMemcpy(tensor.device, bytes, host.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE));
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size() - 1; i > 0; i--) strides[i - 1] = strides[i] * shape[i];
  tensor.handle = aclCreateTensor(shape.data(), shape.size(), type, strides.data(), 0,
                                  ACL_FORMAT_ND, shape.data(), shape.size(), tensor.device);
  return tensor;
}

template <class T>
void download(const Tensor& tensor, std::vector<T>& host) {
  const size_t bytes = host.size() * sizeof(T);
  CHECK(aclrtMemcpy(host.data(), bytes, tensor.device, bytes, ACL_MEMCPY_DEVICE_TO_HOST));
}

void destroy(const Tensor& tensor) {
  CHECK(aclDestroyTensor(tensor.handle));
  CHECK(aclrtFree(tensor.device));
}

struct Problem {
  std::vector<uint16_t> row_grad;   // bf16 [rows, hidden]: of the permuted rows of this rank
  std::vector<uint16_t> prob_grad;  // bf16 [rows]
  std::vector<int32_t> position;    // of slot t·topk + j in the sorted order, [slots]
};

// NaN until written.
struct Result {
  std::vector<uint16_t> token_grad;  // bf16 [tokens, hidden]
  std::vector<uint16_t> prob_grad;   // bf16 [tokens, topk]
  Result() : token_grad(kTokens * kHidden, 0xFFFF), prob_grad(kSlots, 0xFFFF) {}
};

Problem make_problem() {
  std::mt19937 random(2024);
  std::uniform_int_distribution<int> numerator(-127, 127);
  Problem p;
  for (int64_t i = 0; i < kRows * kHidden; i++) {
    p.row_grad.push_back(to_bf16(numerator(random) / 128.0));
  }
  for (int64_t i = 0; i < kRows; i++) p.prob_grad.push_back(to_bf16(numerator(random) / 128.0));
  p.position.resize(kSlots);
  std::iota(p.position.begin(), p.position.end(), 0);
  std::shuffle(p.position.begin(), p.position.end(), random);
  return p;
}

Result reference(const Problem& p) {
  Result result;
  for (int64_t t = 0; t < kTokens; t++) {
    std::vector<double> sum(kHidden);
    for (int64_t j = 0; j < kTopk; j++) {
      const int64_t position = p.position[t * kTopk + j];
      result.prob_grad[t * kTopk + j] = 0;
      if (position < kBegin || position >= kEnd) continue;
      const int64_t row = position - kBegin;
      for (int64_t h = 0; h < kHidden; h++) sum[h] += from_bf16(p.row_grad[row * kHidden + h]);
      result.prob_grad[t * kTopk + j] = p.prob_grad[row];
    }
    for (int64_t h = 0; h < kHidden; h++) result.token_grad[t * kHidden + h] = to_bf16(sum[h]);
  }
  return result;
}

Result run_operator(const Problem& p) {
  aclrtStream stream = nullptr;
  CHECK(aclInit(nullptr));
  CHECK(aclrtSetDevice(0));
  CHECK(aclrtCreateStream(&stream));

  Result result;
  const int64_t range_values[] = {kBegin, kEnd};
  aclIntArray* range = aclCreateIntArray(range_values, 2);
  const Tensor tensors[] = {
      upload(p.row_grad, {kRows, kHidden}, ACL_BF16),
      upload(p.position, {kSlots}, ACL_INT32),
      upload(p.prob_grad, {kRows}, ACL_BF16),
      upload(result.token_grad, {kTokens, kHidden}, ACL_BF16),
      upload(result.prob_grad, {kTokens, kTopk}, ACL_BF16),
  };
  const Tensor* t = tensors;

  uint64_t workspace_size = 0;
  aclOpExecutor* executor = nullptr;
  CHECK(aclnnMoeTokenPermuteWithEpGradGetWorkspaceSize(t[0].handle, t[1].handle, t[2].handle, kTopk,
                                                       range, false, t[3].handle, t[4].handle,
                                                       &workspace_size, &executor));
  void* workspace = nullptr;
  if (workspace_size > 0) {
    CHECK(aclrtMalloc(&workspace, workspace_size, ACL_MEM_MALLOC_HUGE_FIRST));
  }
  CHECK(aclnnMoeTokenPermuteWithEpGrad(workspace, workspace_size, executor, stream));
  CHECK(aclrtSynchronizeStream(stream));
  download(t[3], result.token_grad);
  download(t[4], result.prob_grad);

  for (const Tensor& tensor : tensors) destroy(tensor);
  CHECK(aclDestroyIntArray(range));
  if (workspace != nullptr) CHECK(aclrtFree(workspace));
  CHECK(aclrtDestroyStream(stream));
  CHECK(aclrtResetDevice(0));
  CHECK(aclFinalize());
  return result;
}

bool report(const char* name, const std::vector<uint16_t>& actual,
            const std::vector<uint16_t>& expected) {
  double largest = 0;
  for (size_t i = 0; i < actual.size(); i++) {
    largest = std::max(largest, distance(from_bf16(actual[i]), from_bf16(expected[i])));
  }
  for (int i = 0; i < 4; i++) {
    std::printf("  %-10s [0][%d]  %13.6f  %13.6f\n", name, i, from_bf16(actual[i]),
                from_bf16(expected[i]));
  }
  const bool good = largest == 0;
  std::printf("  %-10s largest difference %g, must be 0: %s\n", name, largest,
              good ? "ok" : "WRONG");
  return good;
}

}  // namespace

int main() {
  const Problem problem = make_problem();
  const Result expected = reference(problem);
  const Result actual = run_operator(problem);

  std::printf("  tokens %d, top-k %d, hidden %d, bf16, sorted positions [%d, %d) of %d\n",
              static_cast<int>(kTokens), static_cast<int>(kTopk), static_cast<int>(kHidden),
              static_cast<int>(kBegin), static_cast<int>(kEnd), static_cast<int>(kSlots));
  std::printf("  %-10s         %13s  %13s\n", "", "operator", "double");
  const bool tokens_good = report("tokenGrad", actual.token_grad, expected.token_grad);
  const bool probs_good = report("probsGrad", actual.prob_grad, expected.prob_grad);
  return tokens_good && probs_good ? 0 : 1;
}
