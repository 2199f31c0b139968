// Gradients of a large-vocabulary cross-entropy in memory-saving mode: the N×V logits are never
// stored; the operator recomputes them from the per-token maximum and sum of exponentials.
// The results are compared with the same gradients in double precision. The bound of each element
// follows from the roundings that the operator's contract allows.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_fused_linear_cross_entropy_loss_grad.h"

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

const int64_t kTokens = 96;
const int64_t kHidden = 128;
const int64_t kVocab = 1000;

const double kRoundBf16 = std::ldexp(1.0, -8);
const double kRoundFp32 = std::ldexp(1.0, -24);

uint16_t to_bf16(float value) {
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
  std::vector<uint16_t> x, w;  // bf16, [tokens, hidden] and [vocab, hidden]
  std::vector<int32_t> target;
  std::vector<float> grad, max, sum;  // one per token
};

struct Gradients {
  std::vector<double> value, bound;
  explicit Gradients(int64_t size) : value(size), bound(size) {}
};

Problem make_problem() {
  std::mt19937 random(2024);
  std::normal_distribution<float> normal;
  Problem p;
  for (int64_t i = 0; i < kTokens * kHidden; i++) p.x.push_back(to_bf16(normal(random)));
  for (int64_t i = 0; i < kVocab * kHidden; i++) p.w.push_back(to_bf16(0.2f * normal(random)));
  for (int64_t t = 0; t < kTokens; t++) {
    p.target.push_back(static_cast<int32_t>(random() % kVocab));
    p.grad.push_back(1.0f / kTokens);
  }
  p.max.resize(kTokens);
  p.sum.resize(kTokens);
  return p;
}

// One token in double precision: fills its maximum and sum, and adds to the gradients.
void reference_token(Problem& p, int64_t t, Gradients& dx, Gradients& dw) {
  const uint16_t* x = &p.x[t * kHidden];
  std::vector<double> logit(kVocab), size(kVocab);
  for (int64_t v = 0; v < kVocab; v++) {
    for (int64_t h = 0; h < kHidden; h++) {
      const double product = from_bf16(x[h]) * from_bf16(p.w[v * kHidden + h]);
      logit[v] += product;
      size[v] += std::fabs(product);
    }
  }
  const double max = *std::max_element(logit.begin(), logit.end());
  double sum = 0;
  for (int64_t v = 0; v < kVocab; v++) sum += std::exp(logit[v] - max);
  p.max[t] = static_cast<float>(max);
  p.sum[t] = static_cast<float>(sum);

  for (int64_t v = 0; v < kVocab; v++) {
    const double softmax = std::exp(logit[v] - max) / sum;
    const double d = (softmax - (v == p.target[t] ? 1 : 0)) * p.grad[t];
    // fp32 up to d: the dot product, the maximum, their difference, then exp and the rest.
    const double relative =
        kRoundFp32 * (kHidden * size[v] + std::fabs(max) + std::fabs(logit[v] - max) + 16);
    // … then one rounding of d to bf16.
    const double d_bound = softmax * relative * p.grad[t] + kRoundBf16 * std::fabs(d);
    for (int64_t h = 0; h < kHidden; h++) {
      const double xh = from_bf16(x[h]);
      const double wh = from_bf16(p.w[v * kHidden + h]);
      dx.value[t * kHidden + h] += d * wh;
      dw.value[v * kHidden + h] += d * xh;
      // The sums over the vocabulary and over the tokens are fp32 again.
      dx.bound[t * kHidden + h] += (d_bound + kVocab * kRoundFp32 * std::fabs(d)) * std::fabs(wh);
      dw.bound[v * kHidden + h] += (d_bound + kTokens * kRoundFp32 * std::fabs(d)) * std::fabs(xh);
    }
  }
}

bool report(const char* name, const std::vector<uint16_t>& actual, const Gradients& expected) {
  double largest = 0;
  double share = 0;
  for (size_t i = 0; i < actual.size(); i++) {
    const double difference = distance(from_bf16(actual[i]), expected.value[i]);
    // The last rounding is of the result; 1 % covers products of roundings.
    const double bound = 1.01 * (expected.bound[i] + kRoundBf16 * std::fabs(expected.value[i]));
    largest = std::max(largest, difference);
    if (difference > share * bound) share = difference / bound;
  }
  for (int i = 0; i < 4; i++) {
    std::printf("  %-10s [0][%d]  %13.6e  %13.6e\n", name, i, from_bf16(actual[i]),
                expected.value[i]);
  }
  const bool good = share <= 1;
  std::printf("  %-10s largest difference %.2e, at most %.2f of its error bound: %s\n", name,
              largest, share, good ? "ok" : "WRONG");
  return good;
}

void run_operator(const Problem& p, std::vector<uint16_t>& dx, std::vector<uint16_t>& dw) {
  aclrtStream stream = nullptr;
  CHECK(aclInit(nullptr));
  CHECK(aclrtSetDevice(0));
  CHECK(aclrtCreateStream(&stream));

  // Bit t of the mask would be 1 if another rank owned token t's target.
  const std::vector<uint8_t> mask((kTokens + 7) / 8, 0);
  const Tensor tensors[] = {
      upload(p.grad, {kTokens}, ACL_FLOAT),
      upload(p.x, {kTokens, kHidden}, ACL_BF16),
      upload(p.w, {kVocab, kHidden}, ACL_BF16),
      upload(mask, {static_cast<int64_t>(mask.size())}, ACL_UINT8),
      upload(p.target, {kTokens}, ACL_INT32),
      upload(p.max, {kTokens}, ACL_FLOAT),
      upload(p.sum, {kTokens}, ACL_FLOAT),
      upload(dx, {kTokens, kHidden}, ACL_BF16),
      upload(dw, {kVocab, kHidden}, ACL_BF16),
  };
  const Tensor* t = tensors;

  uint64_t workspace_size = 0;
  aclOpExecutor* executor = nullptr;
  CHECK(aclnnFusedLinearCrossEntropyLossGradGetWorkspaceSize(
      t[0].handle, t[1].handle, t[2].handle, t[3].handle, t[4].handle, 0.0f, t[5].handle,
      t[6].handle, nullptr, t[7].handle, t[8].handle, &workspace_size, &executor));
  void* workspace = nullptr;
  if (workspace_size > 0) {
    CHECK(aclrtMalloc(&workspace, workspace_size, ACL_MEM_MALLOC_HUGE_FIRST));
  }
  CHECK(aclnnFusedLinearCrossEntropyLossGrad(workspace, workspace_size, executor, stream));
  CHECK(aclrtSynchronizeStream(stream));
  download(t[7], dx);
  download(t[8], dw);

  for (const Tensor& tensor : tensors) destroy(tensor);
  if (workspace != nullptr) CHECK(aclrtFree(workspace));
  CHECK(aclrtDestroyStream(stream));
  CHECK(aclrtResetDevice(0));
  CHECK(aclFinalize());
}

}  // namespace

int main() {
  Problem problem = make_problem();
  Gradients dx(kTokens * kHidden), dw(kVocab * kHidden);
  for (int64_t t = 0; t < kTokens; t++) reference_token(problem, t, dx, dw);

  // NaN until the operator writes them.
  std::vector<uint16_t> dx_out(kTokens * kHidden, 0xFFFF), dw_out(kVocab * kHidden, 0xFFFF);
  run_operator(problem, dx_out, dw_out);

  std::printf("  tokens %d, hidden %d, vocabulary %d, bf16, logits recomputed\n",
              static_cast<int>(kTokens), static_cast<int>(kHidden), static_cast<int>(kVocab));
  std::printf("  %-10s         %13s  %13s\n", "", "operator", "double");
  const bool dx_good = report("inputGrad", dx_out, dx);
  const bool dw_good = report("weightGrad", dw_out, dw);
  return dx_good && dw_good ? 0 : 1;
}
