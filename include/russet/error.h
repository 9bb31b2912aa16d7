#pragma once
// Every failure is a typed exception derived from russet::Error.
#include <stdexcept>
#include <string>

namespace russet {

/// Base of every exception that russet throws. The message says what was wrong and what to do.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Sizes that do not fit each other or the operator.
class ShapeError : public Error {
 public:
  using Error::Error;
};

/// A data type that the operator does not take, or types that do not promote.
class TypeError : public Error {
 public:
  using Error::Error;
};

/// An argument outside its range.
class ValueError : public Error {
 public:
  using Error::Error;
};

/// An index outside a tensor.
class IndexError : public Error {
 public:
  using Error::Error;
};

/// A matrix that a decomposition or a solver cannot take: singular, not positive definite, not finite.
class LinAlgError : public Error {
 public:
  using Error::Error;
};

/// A device that does not exist, does not match, or cannot do what was asked.
class DeviceError : public Error {
 public:
  using Error::Error;
};

/// Memory that a device or a limit does not grant; the message holds what is needed and what there is.
class OutOfMemoryError : public Error {
 public:
  using Error::Error;
};

/// A gradient that cannot be computed: no graph, a freed graph, an in-place write to a leaf.
class AutogradError : public Error {
 public:
  using Error::Error;
};

/// A file that cannot be read, written or understood.
class FileError : public Error {
 public:
  using Error::Error;
};

/// A state of russet itself that should be impossible; please report it.
class InternalError : public Error {
 public:
  using Error::Error;
};

}  // namespace russet
