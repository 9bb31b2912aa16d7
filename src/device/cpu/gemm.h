#pragma once
// Our own matrix products: any strides, any type, convolutions included, with an exact epilogue. Each element is summed
// in an order that depends on the sizes alone.
#include "device/cpu/epilogue.h"
#include "device/cpu/implementation.h"
#include "device/cpu/product.h"

namespace russet::cpu {

/// A kernel for any contraction whose epilogue runs in it (see takes_epilogue).
KernelPtr make_product_kernel(const compile::Primitive& contraction, Epilogue epilogue);

/// Whether our products take this epilogue; if not, `reason` says why.
bool takes_epilogue(const compile::Primitive& contraction, const Epilogue& epilogue, std::string& reason);

}  // namespace russet::cpu
