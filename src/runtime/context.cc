#include "runtime/context.h"

namespace npuless::runtime {
namespace {

Status no_memory() {
  return fail(code::kMemoryAllocation, "out of host memory for a stream or context");
}

}  // namespace

ContextTable& contexts() {
  static constinit ContextTable table;
  return table;
}

Status create_context(int device, bool primary, void** handle) {
  const ContextPin context = contexts().insert(device, primary);
  if (!context) return no_memory();
  // Its worker starts with the first task: most programs never use a default stream.
  const StreamPin stream = streams().insert(
      StreamOptions{.context = context.handle(), .device = device, .is_default = true});
  if (!stream) {
    contexts().take(context.handle());
    return no_memory();
  }
  context->default_stream = stream.handle();
  *handle = context.handle();
  return {};
}

bool destroy_context(const void* handle, bool discard) {
  const ContextPin context = contexts().take(handle);
  if (!context) return false;
  streams().for_each([&](const StreamPin& stream) {
    if (stream->options().context == handle) destroy_stream(stream.handle(), discard);
  });
  return true;
}

uint32_t available_streams(int device) {
  uint32_t count = 0;
  streams().for_each([&](const StreamPin& stream) { count += stream->options().device == device; });
  return count < kMaxStreams ? kMaxStreams - count : 0;
}

Status create_stream(const ContextPin& context, uint32_t priority, uint32_t flags, void** handle) {
  if (available_streams(context->device) == 0) {
    return fail(code::kNoStreamResource, "device %d has %u streams already", context->device,
                kMaxStreams);
  }
  const StreamPin stream = streams().insert(StreamOptions{.context = context.handle(),
                                                          .device = context->device,
                                                          .priority = priority,
                                                          .flags = flags});
  if (!stream) return no_memory();
  if (const Status status = stream->start(); !status.ok()) {
    streams().take(stream.handle());
    return status;
  }
  // A context destroyed meanwhile may have looked for its streams before this one was there.
  if (!contexts().find(context.handle())) {
    destroy_stream(stream.handle(), true);
    return fail(code::kRtContextNull, "the current context is being destroyed");
  }
  *handle = stream.handle();
  return {};
}

bool destroy_stream(const void* handle, bool discard) {
  StreamPin stream = streams().take(handle);
  if (!stream) return false;
  if (stream->is_orphan()) {
    Stream::abandon(std::move(stream));
  } else {
    stream->shut_down(discard);
  }
  return true;
}

}  // namespace npuless::runtime
