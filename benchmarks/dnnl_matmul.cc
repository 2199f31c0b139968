#include "dnnl_matmul.h"

#include <omp.h>

#include <dnnl.hpp>
#include <string>

namespace npuless::bench {
namespace {

const dnnl::engine& cpu() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

dnnl::memory::desc describe(int64_t rows, int64_t cols, bool transposed, DType dtype) {
  using dnnl::memory;
  const auto type = dtype == DType::kBfloat16 ? memory::data_type::bf16 : memory::data_type::f32;
  const memory::dims strides = transposed ? memory::dims{1, rows} : memory::dims{cols, 1};
  return {{rows, cols}, type, strides};
}

dnnl::matmul::primitive_desc choose(const DnnlMatmul::Shape& s) {
  const dnnl::matmul::desc desc(describe(s.m, s.k, s.a_transposed, s.operands),
                                describe(s.k, s.n, s.b_transposed, s.operands),
                                describe(s.m, s.n, false, s.result));
  return {desc, cpu()};
}

}  // namespace

struct DnnlMatmul::Primitive {
  explicit Primitive(const Shape& shape) : desc(choose(shape)), matmul(desc) {}

  dnnl::matmul::primitive_desc desc;
  dnnl::matmul matmul;
  dnnl::stream stream{cpu()};
};

bool DnnlMatmul::has_bfloat16() {
  try {
    const auto desc = choose({256, 256, 256, false, true, DType::kBfloat16, DType::kBfloat16});
    return std::string(desc.impl_info_str()).find("ref") == std::string::npos;
  } catch (const dnnl::error&) {
    return false;
  }
}

void DnnlMatmul::set_threads(int threads) {
  omp_set_num_threads(threads);
}

DnnlMatmul::DnnlMatmul(const Shape& shape) : primitive_(new Primitive(shape)) {}
DnnlMatmul::~DnnlMatmul() = default;

void DnnlMatmul::run(const void* a, const void* b, void* c) const {
  Primitive& p = *primitive_;
  const auto memory = [](const dnnl::memory::desc& desc, const void* data) {
    return dnnl::memory(desc, cpu(), const_cast<void*>(data));
  };
  p.matmul.execute(p.stream, {{DNNL_ARG_SRC, memory(p.desc.src_desc(), a)},
                              {DNNL_ARG_WEIGHTS, memory(p.desc.weights_desc(), b)},
                              {DNNL_ARG_DST, memory(p.desc.dst_desc(), c)}});
  p.stream.wait();
}

}  // namespace npuless::bench
