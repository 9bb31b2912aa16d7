// What metal-cpp declares for each message of the stand-in's table. Compiled by clang.
#define NS_PRIVATE_IMPLEMENTATION
#define MTL_PRIVATE_IMPLEMENTATION
#include "metal/signatures.h"

#include <Foundation/Foundation.hpp>
#include <Metal/Metal.hpp>

#include "device/gpu/simulator/objects/send.h"

namespace russet::metal_test {
namespace {

template <class R, class... A>
std::string types_of() {
  return std::string(objects::signature<R, A...>());
}

template <class R, class C, class... A>
Declared row(const char* type, const char* message, R (C::*)(A...)) {
  return {type, message, types_of<R, A...>()};
}
template <class R, class C, class... A>
Declared row(const char* type, const char* message, R (C::*)(A...) const) {
  return {type, message, types_of<R, A...>()};
}
template <class R, class... A>
Declared row(const char* type, const char* message, R (*)(A...)) {
  return {type, message, types_of<R, A...>()};
}

using Handler = const MTL::CommandBufferHandler;
using Deallocator = void (^)(void*, NS::UInteger);

std::vector<Declared> foundation() {
  return {
      row("NSString", "stringWithCString:encoding:",
          static_cast<NS::String* (*)(const char*, NS::StringEncoding)>(&NS::String::string)),
      row("NSString", "UTF8String", &NS::String::utf8String),
      row("NSError", "localizedDescription", &NS::Error::localizedDescription),
      row("NSError", "code", &NS::Error::code),
      row("NSURL", "fileURLWithPath:", &NS::URL::fileURLWithPath),
      row("NSArray", "arrayWithObject:", static_cast<NS::Array* (*)(const NS::Object*)>(&NS::Array::array)),
      row("NSProcessInfo", "processInfo", &NS::ProcessInfo::processInfo),
      row("NSProcessInfo", "operatingSystemVersion", &NS::ProcessInfo::operatingSystemVersion),
      row("NSProcessInfo", "operatingSystemVersionString", &NS::ProcessInfo::operatingSystemVersionString),
      row("NSAutoreleasePool", "alloc", &NS::AutoreleasePool::alloc),
      row("NSAutoreleasePool", "init", &NS::AutoreleasePool::init),
      row("NSAutoreleasePool", "drain", &NS::AutoreleasePool::drain),
      row("NSAutoreleasePool", "release", &NS::AutoreleasePool::release),
      row("NSObject", "retain", &NS::Object::retain),
      row("NSObject", "release", &NS::Object::release),
  };
}

std::vector<Declared> device() {
  using MTL::Device;
  return {
      row("MTLDevice", "name", &Device::name),
      row("MTLDevice", "supportsFamily:", &Device::supportsFamily),
      row("MTLDevice", "hasUnifiedMemory", &Device::hasUnifiedMemory),
      row("MTLDevice", "maxBufferLength", &Device::maxBufferLength),
      row("MTLDevice", "recommendedMaxWorkingSetSize", &Device::recommendedMaxWorkingSetSize),
      row("MTLDevice", "maxThreadgroupMemoryLength", &Device::maxThreadgroupMemoryLength),
      row("MTLDevice", "maxThreadsPerThreadgroup", &Device::maxThreadsPerThreadgroup),
      row("MTLDevice", "setShouldMaximizeConcurrentCompilation:", &Device::setShouldMaximizeConcurrentCompilation),
      row("MTLDevice", "newFence", &Device::newFence),
      row("MTLDevice", "newCommandQueue", static_cast<MTL::CommandQueue* (Device::*)()>(&Device::newCommandQueue)),
      row("MTLDevice", "newBufferWithLength:options:",
          static_cast<MTL::Buffer* (Device::*)(NS::UInteger, MTL::ResourceOptions)>(&Device::newBuffer)),
      row("MTLDevice", "newBufferWithBytesNoCopy:length:options:deallocator:",
          static_cast<MTL::Buffer* (Device::*)(const void*, NS::UInteger, MTL::ResourceOptions, Deallocator)>(
              &Device::newBuffer)),
      row("MTLDevice", "newLibraryWithSource:options:error:",
          static_cast<MTL::Library* (Device::*)(const NS::String*, const MTL::CompileOptions*, NS::Error**)>(
              &Device::newLibrary)),
      row("MTLDevice", "newComputePipelineStateWithDescriptor:options:reflection:error:",
          static_cast<MTL::ComputePipelineState* (Device::*)(const MTL::ComputePipelineDescriptor*, MTL::PipelineOption,
                                                             const MTL::AutoreleasedComputePipelineReflection*,
                                                             NS::Error**)>(&Device::newComputePipelineState)),
      row("MTLDevice", "newBinaryArchiveWithDescriptor:error:", &Device::newBinaryArchive),
      row("MTLDevice", "newResidencySetWithDescriptor:error:", &Device::newResidencySet),
  };
}

std::vector<Declared> library() {
  using MTL::CompileOptions;
  using Descriptor = MTL::ComputePipelineDescriptor;
  return {
      row("MTLCompileOptions", "alloc", &CompileOptions::alloc),
      row("MTLCompileOptions", "init", &CompileOptions::init),
      row("MTLCompileOptions", "setLanguageVersion:", &CompileOptions::setLanguageVersion),
      row("MTLCompileOptions", "setFastMathEnabled:", &CompileOptions::setFastMathEnabled),
      row("MTLCompileOptions", "setMathMode:", &CompileOptions::setMathMode),
      row("MTLCompileOptions", "setMathFloatingPointFunctions:", &CompileOptions::setMathFloatingPointFunctions),
      row("MTLLibrary", "newFunctionWithName:",
          static_cast<MTL::Function* (MTL::Library::*)(const NS::String*)>(&MTL::Library::newFunction)),
      row("MTLComputePipelineDescriptor", "alloc", &Descriptor::alloc),
      row("MTLComputePipelineDescriptor", "init", &Descriptor::init),
      row("MTLComputePipelineDescriptor", "setLabel:", &Descriptor::setLabel),
      row("MTLComputePipelineDescriptor", "setComputeFunction:", &Descriptor::setComputeFunction),
      row("MTLComputePipelineDescriptor", "setThreadGroupSizeIsMultipleOfThreadExecutionWidth:",
          &Descriptor::setThreadGroupSizeIsMultipleOfThreadExecutionWidth),
      row("MTLComputePipelineDescriptor",
          "setMaxTotalThreadsPerThreadgroup:", &Descriptor::setMaxTotalThreadsPerThreadgroup),
      row("MTLComputePipelineDescriptor", "setBinaryArchives:", &Descriptor::setBinaryArchives),
      row("MTLComputePipelineState", "maxTotalThreadsPerThreadgroup",
          &MTL::ComputePipelineState::maxTotalThreadsPerThreadgroup),
      row("MTLComputePipelineState", "threadExecutionWidth", &MTL::ComputePipelineState::threadExecutionWidth),
      row("MTLBinaryArchiveDescriptor", "alloc", &MTL::BinaryArchiveDescriptor::alloc),
      row("MTLBinaryArchiveDescriptor", "init", &MTL::BinaryArchiveDescriptor::init),
      row("MTLBinaryArchiveDescriptor", "setUrl:", &MTL::BinaryArchiveDescriptor::setUrl),
      row("MTLBinaryArchive",
          "addComputePipelineFunctionsWithDescriptor:error:", &MTL::BinaryArchive::addComputePipelineFunctions),
      row("MTLBinaryArchive", "serializeToURL:error:", &MTL::BinaryArchive::serializeToURL),
  };
}

std::vector<Declared> memory() {
  return {
      row("MTLBuffer", "contents", &MTL::Buffer::contents),
      row("MTLBuffer", "length", &MTL::Buffer::length),
      row("MTLResidencySetDescriptor", "alloc", &MTL::ResidencySetDescriptor::alloc),
      row("MTLResidencySetDescriptor", "init", &MTL::ResidencySetDescriptor::init),
      row("MTLResidencySet", "addAllocation:", &MTL::ResidencySet::addAllocation),
      row("MTLResidencySet", "removeAllocation:", &MTL::ResidencySet::removeAllocation),
      row("MTLResidencySet", "commit", &MTL::ResidencySet::commit),
      row("MTLResidencySet", "requestResidency", &MTL::ResidencySet::requestResidency),
      row("MTLCaptureManager", "sharedCaptureManager", &MTL::CaptureManager::sharedCaptureManager),
      row("MTLCaptureManager", "supportsDestination:", &MTL::CaptureManager::supportsDestination),
      row("MTLCaptureManager", "startCaptureWithDescriptor:error:",
          static_cast<bool (MTL::CaptureManager::*)(const MTL::CaptureDescriptor*, NS::Error**)>(
              &MTL::CaptureManager::startCapture)),
      row("MTLCaptureManager", "stopCapture", &MTL::CaptureManager::stopCapture),
      row("MTLCaptureDescriptor", "alloc", &MTL::CaptureDescriptor::alloc),
      row("MTLCaptureDescriptor", "init", &MTL::CaptureDescriptor::init),
      row("MTLCaptureDescriptor", "setCaptureObject:", &MTL::CaptureDescriptor::setCaptureObject),
      row("MTLCaptureDescriptor", "setDestination:", &MTL::CaptureDescriptor::setDestination),
      row("MTLCaptureDescriptor", "setOutputURL:", &MTL::CaptureDescriptor::setOutputURL),
  };
}

std::vector<Declared> work() {
  using MTL::CommandBuffer;
  using Encoder = MTL::ComputeCommandEncoder;
  return {
      row("MTLCommandQueue", "addResidencySet:", &MTL::CommandQueue::addResidencySet),
      row("MTLCommandQueue", "commandBuffer",
          static_cast<CommandBuffer* (MTL::CommandQueue::*)()>(&MTL::CommandQueue::commandBuffer)),
      row("MTLCommandQueue", "commandBufferWithUnretainedReferences",
          &MTL::CommandQueue::commandBufferWithUnretainedReferences),
      row("MTLCommandBuffer", "commit", &CommandBuffer::commit),
      row("MTLCommandBuffer", "waitUntilCompleted", &CommandBuffer::waitUntilCompleted),
      row("MTLCommandBuffer",
          "addCompletedHandler:", static_cast<void (CommandBuffer::*)(Handler)>(&CommandBuffer::addCompletedHandler)),
      row("MTLCommandBuffer", "status", &CommandBuffer::status),
      row("MTLCommandBuffer", "error", &CommandBuffer::error),
      row("MTLCommandBuffer", "GPUStartTime", &CommandBuffer::GPUStartTime),
      row("MTLCommandBuffer", "GPUEndTime", &CommandBuffer::GPUEndTime),
      row("MTLCommandBuffer", "computeCommandEncoderWithDispatchType:",
          static_cast<Encoder* (CommandBuffer::*)(MTL::DispatchType)>(&CommandBuffer::computeCommandEncoder)),
      row("MTLComputeCommandEncoder", "endEncoding", &Encoder::endEncoding),
      row("MTLComputeCommandEncoder", "setComputePipelineState:", &Encoder::setComputePipelineState),
      row("MTLComputeCommandEncoder", "setBuffer:offset:atIndex:",
          static_cast<void (Encoder::*)(const MTL::Buffer*, NS::UInteger, NS::UInteger)>(&Encoder::setBuffer)),
      row("MTLComputeCommandEncoder", "setBytes:length:atIndex:",
          static_cast<void (Encoder::*)(const void*, NS::UInteger, NS::UInteger)>(&Encoder::setBytes)),
      row("MTLComputeCommandEncoder",
          "memoryBarrierWithScope:", static_cast<void (Encoder::*)(MTL::BarrierScope)>(&Encoder::memoryBarrier)),
      row("MTLComputeCommandEncoder", "waitForFence:", &Encoder::waitForFence),
      row("MTLComputeCommandEncoder", "updateFence:", &Encoder::updateFence),
      row("MTLComputeCommandEncoder", "dispatchThreadgroups:threadsPerThreadgroup:",
          static_cast<void (Encoder::*)(MTL::Size, MTL::Size)>(&Encoder::dispatchThreadgroups)),
  };
}

}  // namespace

std::vector<Declared> declared_messages() {
  std::vector<Declared> all;
  for (const auto part : {foundation, device, library, memory, work}) {
    for (Declared& message : part()) all.push_back(std::move(message));
  }
  return all;
}

DeclaredSizes declared_sizes() {
  return {sizeof(MTL::Size), offsetof(MTL::Size, height), offsetof(MTL::Size, depth),
          sizeof(NS::OperatingSystemVersion)};
}

}  // namespace russet::metal_test
