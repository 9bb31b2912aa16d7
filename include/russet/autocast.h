#pragma once
// Autocast: mixed precision by a policy for each operator.
#include <russet/dtype.h>

namespace russet {

/// While an object of this lives, in this thread, matrix products, convolutions, attention and prelu run in `type`
/// (bfloat16 or float16), and exponentials, logarithms, powers, reciprocals, sums, softmax, norms of vectors and losses
/// in float32; other operators run in the widest type of their inputs, as torch.autocast has them. layer_norm and
/// group_norm keep the type of their input, as on PyTorch's CPU: inside they compute in float32. float64 and integers
/// are left alone. Scopes nest; one with `enabled` false switches the policy off. Throws ValueError for another type.
///
/// Gradients in float16 need amp::GradScaler.
class Autocast {
 public:
  explicit Autocast(DType type = DType::bfloat16, bool enabled = true);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  bool enabled_before_;
  DType type_before_;
};

/// A scope in which networks run in `precision`: autocast to bfloat16 or float16, or off for float32.
inline Autocast autocast_to(DType precision) { return Autocast(precision, precision != DType::float32); }

bool is_autocast_enabled();
/// The lower type of the innermost scope.
DType autocast_type();

}  // namespace russet
