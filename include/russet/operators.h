#pragma once
// The operator table, for people and programs that want to know what there is and what runs where.
#include <russet/device.h>
#include <russet/dtype.h>
#include <string>
#include <string_view>
#include <vector>

namespace russet {

/// A primitive: what every device knows. All other functions are written with these.
struct OperatorInfo {
  std::string name;
  std::string family;  // elementwise, reduction, contraction, ...
  int inputs = 0;
  std::string types;     // which types it takes, and which it gives
  std::string autocast;  // what an autocast policy does with it
  std::string documentation;
};
std::vector<OperatorInfo> operators();

/// What a device does with an operator.
struct OperatorSupport {
  std::vector<DType> native;  // types that the device itself computes
  std::string kernel;         // the implementation that takes a small float32 (else: the first native) example
  std::string reason;         // why there is none, where native is empty
};
/// Asks the device, type by type, with small examples; nothing runs. Throws ValueError for an unknown operator,
/// DeviceError for a device that is not available.
OperatorSupport operator_support(std::string_view name, Device device);

}  // namespace russet
