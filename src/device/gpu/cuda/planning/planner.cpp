// What `russet plan` takes for cuda where there is no GPU: NVIDIA's libraries are taken to do all that they are asked.
#include "device/gpu/cuda/planning/convolutions.h"
#include "device/gpu/cuda/planning/products.h"
#include "device/gpu/cuda/planning/properties.h"
#include "device/gpu/planning.h"

namespace russet::cuda {
namespace {

/// Never made ready to run.
class PlannedCall final : public gpu::Pipeline {};

gpu::Verdict planned(const gpu::VendorLibrary& library, std::vector<gpu::Region> regions,
                     const gpu::GpuContext& context) {
  return gpu::accept([&context, name = library.name(), regions = std::move(regions)] {
    return gpu::make_library_kernel(context, name, std::make_shared<const PlannedCall>(), regions, 0);
  });
}

class PlannedProducts final : public Products {
  std::string version() const override { return "planned"; }
  gpu::Verdict answer(const MatmulQuestion& /*question*/, std::vector<gpu::Region> regions,
                      const gpu::GpuContext& context) const override {
    return planned(*this, std::move(regions), context);
  }
};

class PlannedConvolutions final : public Convolutions {
  std::string version() const override { return "planned"; }
  gpu::Verdict answer(const ConvolutionQuestion& /*question*/, std::vector<gpu::Region> regions,
                      const gpu::GpuContext& context) const override {
    return planned(*this, std::move(regions), context);
  }
};

std::unique_ptr<gpu::Driver> make_planner(std::string_view name) {
  const Chip& chip = name.empty() ? chips(DeviceType::cuda).front() : chip_of(name, DeviceType::cuda);
  std::vector<std::unique_ptr<const gpu::VendorLibrary>> libraries;
  libraries.push_back(std::make_unique<PlannedConvolutions>());
  libraries.push_back(std::make_unique<PlannedProducts>());
  return gpu::make_planning_driver(DeviceType::cuda, properties_of(chip), std::move(libraries));
}

const bool registered = [] {
  runtime::register_planner(DeviceType::cuda, make_planner);
  return true;
}();

}  // namespace
}  // namespace russet::cuda
