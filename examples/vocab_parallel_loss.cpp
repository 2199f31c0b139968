// A training step's loss over a vocabulary cut into shards, as tensor-parallel ranks would hold it:
// each shard reduces its logits to a maximum and a sum, the ranks combine them (here: a loop over
// the shards of one process), and each shard then computes its loss and gradients. No shard ever
// holds its tokens × vocabulary logits. Everything is compared with the uncut loss and gradients in
// double precision.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_fused_cross_entropy_loss_with_max_sum.h"
#include "aclnnop/aclnn_fused_linear_cross_entropy_loss_grad.h"
#include "aclnnop/aclnn_fused_linear_online_max_sum.h"

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

const int64_t kTokens = 64;
const int64_t kHidden = 96;
const int64_t kRanks = 3;
const int64_t kShard = 320;  // rows of each rank's weight
const int64_t kVocab = kRanks * kShard;

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

// Device memory with its tensor; freed together.
class Tensor {
 public:
  Tensor(aclDataType type, size_t element_bytes, const std::vector<int64_t>& shape)
      : bytes_(element_bytes) {
    for (int64_t dim : shape) bytes_ *= static_cast<size_t>(dim);
    CHECK(aclrtMalloc(&device_, bytes_, ACL_MEM_MALLOC_HUGE_FIRST));
    handle = aclCreateTensor(shape.data(), shape.size(), type, nullptr, 0, ACL_FORMAT_ND,
                             shape.data(), shape.size(), device_);
  }
  ~Tensor() {
    aclDestroyTensor(handle);
    aclrtFree(device_);
  }
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;

  template <class T>
  void upload(const std::vector<T>& host) {
    CHECK(aclrtMemcpy(device_, bytes_, host.data(), bytes_, ACL_MEMCPY_HOST_TO_DEVICE));
  }
  template <class T>
  std::vector<T> download() const {
    std::vector<T> host(bytes_ / sizeof(T));
    CHECK(aclrtMemcpy(host.data(), bytes_, device_, bytes_, ACL_MEMCPY_DEVICE_TO_HOST));
    return host;
  }

  aclTensor* handle;

 private:
  size_t bytes_;
  void* device_ = nullptr;
};

typedef aclnnStatus (*Phase2)(void*, uint64_t, aclOpExecutor*, aclrtStream);

void run(Phase2 phase2, uint64_t workspace_size, aclOpExecutor* executor, aclrtStream stream) {
  void* workspace = nullptr;
  if (workspace_size > 0) {
    CHECK(aclrtMalloc(&workspace, workspace_size, ACL_MEM_MALLOC_HUGE_FIRST));
  }
  CHECK(phase2(workspace, workspace_size, executor, stream));
  CHECK(aclrtSynchronizeStream(stream));
  if (workspace != nullptr) CHECK(aclrtFree(workspace));
}

struct Problem {
  std::vector<uint16_t> x, w;  // bf16, [tokens, hidden] and [vocab, hidden]
  std::vector<int64_t> target;
};

// What one rank keeps on its device.
struct Rank {
  Rank()
      : x(ACL_BF16, 2, {kTokens, kHidden}),
        w(ACL_BF16, 2, {kShard, kHidden}),
        target(ACL_INT64, 8, {kTokens}),
        max(ACL_FLOAT, 4, {kTokens}),
        sum(ACL_FLOAT, 4, {kTokens}),
        predicted(ACL_FLOAT, 4, {kTokens}),
        mask(ACL_UINT8, 1, {(kTokens + 7) / 8}),
        local_target(ACL_INT64, 8, {kTokens}),
        loss(ACL_FLOAT, 4, {kTokens}),
        grad(ACL_FLOAT, 4, {kTokens}),
        dx(ACL_BF16, 2, {kTokens, kHidden}),
        dw(ACL_BF16, 2, {kShard, kHidden}) {}

  void forward(int64_t first_id, aclrtStream stream) {
    uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    CHECK(aclnnFusedLinearOnlineMaxSumGetWorkspaceSize(
        x.handle, w.handle, target.handle, first_id, first_id + kShard, max.handle, sum.handle,
        predicted.handle, mask.handle, local_target.handle, nullptr, &size, &executor));
    run(&aclnnFusedLinearOnlineMaxSum, size, executor, stream);
  }

  void loss_and_gradients(aclrtStream stream) {
    uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    CHECK(aclnnFusedCrossEntropyLossWithMaxSumGetWorkspaceSize(
        max.handle, sum.handle, predicted.handle, 0.0f, nullptr, nullptr, nullptr, loss.handle,
        nullptr, &size, &executor));
    run(&aclnnFusedCrossEntropyLossWithMaxSum, size, executor, stream);
    CHECK(aclnnFusedLinearCrossEntropyLossGradGetWorkspaceSize(
        grad.handle, x.handle, w.handle, mask.handle, local_target.handle, 0.0f, max.handle,
        sum.handle, nullptr, dx.handle, dw.handle, &size, &executor));
    run(&aclnnFusedLinearCrossEntropyLossGrad, size, executor, stream);
  }

  Tensor x, w, target, max, sum, predicted, mask, local_target, loss, grad, dx, dw;
};

// The global step: an all-reduce MAX, then one all-reduce SUM of the rescaled pair.
void combine(Rank* ranks) {
  std::vector<float> max(kTokens, -HUGE_VALF), sum(kTokens), predicted(kTokens);
  for (int64_t r = 0; r < kRanks; r++) {
    const std::vector<float> local = ranks[r].max.download<float>();
    for (int64_t t = 0; t < kTokens; t++) max[t] = std::max(max[t], local[t]);
  }
  for (int64_t r = 0; r < kRanks; r++) {
    const std::vector<float> local_max = ranks[r].max.download<float>();
    const std::vector<float> local_sum = ranks[r].sum.download<float>();
    const std::vector<float> local_predicted = ranks[r].predicted.download<float>();
    const std::vector<uint8_t> mask = ranks[r].mask.download<uint8_t>();
    for (int64_t t = 0; t < kTokens; t++) {
      const float shift = local_max[t] - max[t];
      sum[t] += local_sum[t] * std::exp(shift);
      if ((mask[t / 8] >> (t % 8) & 1) == 0) predicted[t] += local_predicted[t] + shift;
    }
  }
  for (int64_t r = 0; r < kRanks; r++) {
    ranks[r].max.upload(max);
    ranks[r].sum.upload(sum);
    ranks[r].predicted.upload(predicted);
  }
}

Problem make_problem() {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  Problem p;
  for (int64_t i = 0; i < kTokens * kHidden; i++) p.x.push_back(to_bf16(normal(random)));
  for (int64_t i = 0; i < kVocab * kHidden; i++) p.w.push_back(to_bf16(0.2f * normal(random)));
  for (int64_t t = 0; t < kTokens; t++) {
    p.target.push_back(static_cast<int64_t>(random() % kVocab));
  }
  return p;
}

struct Reference {
  std::vector<double> loss, dx, dw;
};

Reference reference(const Problem& p) {
  Reference r = {std::vector<double>(kTokens), std::vector<double>(kTokens * kHidden),
                 std::vector<double>(kVocab * kHidden)};
  for (int64_t t = 0; t < kTokens; t++) {
    std::vector<double> logit(kVocab);
    for (int64_t v = 0; v < kVocab; v++) {
      for (int64_t h = 0; h < kHidden; h++) {
        logit[v] += from_bf16(p.x[t * kHidden + h]) * from_bf16(p.w[v * kHidden + h]);
      }
    }
    const double max = *std::max_element(logit.begin(), logit.end());
    double sum = 0;
    for (int64_t v = 0; v < kVocab; v++) sum += std::exp(logit[v] - max);
    r.loss[t] = std::log(sum) + max - logit[p.target[t]];
    for (int64_t v = 0; v < kVocab; v++) {
      const double softmax = std::exp(logit[v] - max) / sum;
      const double d = (softmax - (v == p.target[t] ? 1 : 0)) / kTokens;
      for (int64_t h = 0; h < kHidden; h++) {
        r.dx[t * kHidden + h] += d * from_bf16(p.w[v * kHidden + h]);
        r.dw[v * kHidden + h] += d * from_bf16(p.x[t * kHidden + h]);
      }
    }
  }
  return r;
}

// Largest |difference| against `bound` times the largest magnitude.
bool report(const char* name, const std::vector<double>& actual,
            const std::vector<double>& expected, double bound) {
  double difference = 0;
  double magnitude = 0;
  for (size_t i = 0; i < expected.size(); i++) {
    const double d = std::fabs(actual[i] - expected[i]);
    difference = std::isnan(d) ? HUGE_VAL : std::max(difference, d);
    magnitude = std::max(magnitude, std::fabs(expected[i]));
  }
  const bool good = difference <= bound * magnitude;
  std::printf("  %-10s [0]  %13.6e  %13.6e\n", name, actual[0], expected[0]);
  std::printf("  %-10s largest difference %.2e, allowed %.2e: %s\n", name, difference,
              bound * magnitude, good ? "ok" : "WRONG");
  return good;
}

}  // namespace

int main() {
  const Problem problem = make_problem();
  aclrtStream stream = nullptr;
  CHECK(aclInit(nullptr));
  CHECK(aclrtSetDevice(0));
  CHECK(aclrtCreateStream(&stream));
  std::vector<double> loss, dx(kTokens * kHidden), dw;
  {
    Rank ranks[kRanks];
    for (int64_t r = 0; r < kRanks; r++) {
      const auto first = problem.w.begin() + r * kShard * kHidden;
      ranks[r].x.upload(problem.x);
      ranks[r].w.upload(std::vector<uint16_t>(first, first + kShard * kHidden));
      ranks[r].target.upload(problem.target);
      ranks[r].grad.upload(std::vector<float>(kTokens, 1.0f / kTokens));  // of the mean loss
      ranks[r].forward(r * kShard, stream);
    }
    combine(ranks);
    for (int64_t r = 0; r < kRanks; r++) {
      ranks[r].loss_and_gradients(stream);
      const std::vector<uint16_t> part = ranks[r].dx.download<uint16_t>();
      for (int64_t i = 0; i < kTokens * kHidden; i++) dx[i] += from_bf16(part[i]);
      for (uint16_t value : ranks[r].dw.download<uint16_t>()) dw.push_back(from_bf16(value));
    }
    const std::vector<float> values = ranks[0].loss.download<float>();  // every rank has them all
    loss.assign(values.begin(), values.end());
  }
  CHECK(aclrtDestroyStream(stream));
  CHECK(aclrtResetDevice(0));
  CHECK(aclFinalize());

  std::printf("  tokens %d, hidden %d, vocabulary %d on %d ranks, bf16\n",
              static_cast<int>(kTokens), static_cast<int>(kHidden), static_cast<int>(kVocab),
              static_cast<int>(kRanks));
  std::printf("  %-10s      %13s  %13s\n", "", "operators", "double");
  const Reference expected = reference(problem);
  // fp32 logits leave a loss right to 2^-18 of its size. Gradients are rounded to bf16 when d is
  // formed and when they are stored, here once per rank as well: three times 2^-8 of the largest.
  const bool loss_good = report("loss", loss, expected.loss, std::ldexp(1.0, -18));
  const bool dx_good = report("inputGrad", dx, expected.dx, 3 * std::ldexp(1.0, -8));
  const bool dw_good = report("weightGrad", dw, expected.dw, 3 * std::ldexp(1.0, -8));
  return loss_good && dx_good && dw_good ? 0 : 1;
}
