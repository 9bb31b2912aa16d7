// Runs recorded cases on an NVIDIA GPU: launch CASES. A program by itself: it needs CUDA's driver and nothing of
// russet, so that it runs where russet is not built.
//     RUSSET_TEST_CUDA_CASES=cases kernels_record_test
//     g++ -std=c++20 -O1 tests/kernels/cuda/launch.cpp -o launch && ./launch cases
// The format of CASES is that of tests/kernels/record.cpp.
#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using Bytes = std::string;

[[noreturn]] void fail(const std::string& text) { throw std::runtime_error(text); }

/// CUDA's driver, by the functions of its API that are needed here (cuda.h).
class Driver {
 public:
  using Handle = void*;
  using Address = unsigned long long;

  Driver() : library_(dlopen("libcuda.so.1", RTLD_NOW)) {
    if (library_ == nullptr) fail("no CUDA driver (libcuda.so.1)");
    call<unsigned>("cuInit", 0U);
    int device = 0;
    call<int*, int>("cuDeviceGet", &device, 0);
    char name[100] = "";
    call<char*, int, int>("cuDeviceGetName", name, 100, device);
    std::printf("%s\n", name);
    Handle context = nullptr;
    call<Handle*, int>("cuDevicePrimaryCtxRetain", &context, device);
    call<Handle>("cuCtxSetCurrent", context);
  }

  template <class... A>
  void call(const char* name, A... arguments) {
    auto* const function = reinterpret_cast<int (*)(A...)>(dlsym(library_, name));
    if (function == nullptr) fail(std::string("the driver lacks ") + name);
    const int result = function(arguments...);
    if (result != 0) fail(std::string(name) + ": error " + std::to_string(result));
  }

 private:
  void* library_;
};

class Reader {
 public:
  explicit Reader(const char* path) : file_(path, std::ios::binary) {
    if (!file_) fail(std::string("cannot read ") + path);
  }
  template <class T>
  T number() {
    T value{};
    file_.read(reinterpret_cast<char*>(&value), sizeof(value));
    if (!file_) fail("the file ends early");
    return value;
  }
  std::size_t size() { return static_cast<std::size_t>(number<std::uint64_t>()); }
  Bytes bytes() {
    Bytes text(size(), '\0');
    file_.read(text.data(), static_cast<std::streamsize>(text.size()));
    if (!file_) fail("the file ends early");
    return text;
  }

 private:
  std::ifstream file_;
};

struct Launch {
  std::size_t module;
  Bytes kernel;
  std::uint64_t groups[3];
  std::uint64_t threads;
  std::vector<std::pair<std::size_t, std::size_t>> buffers;  // region, offset
  Bytes values;
};

struct Result {
  std::size_t region;
  Bytes dtype;
  double bound;
  std::vector<std::int64_t> places;  // of its elements
  std::vector<double> expected;
};

struct Case {
  Bytes name;
  std::vector<Bytes> modules;  // cubins
  std::vector<Bytes> memory;
  std::vector<Launch> launches;
  std::vector<Result> results;
};

Case read_case(Reader& in) {
  Case one;
  one.name = in.bytes();
  for (std::size_t n = in.size(); n > 0; --n) one.modules.push_back(in.bytes());
  for (std::size_t n = in.size(); n > 0; --n) one.memory.push_back(in.bytes());
  for (std::size_t n = in.size(); n > 0; --n) {
    Launch launch;
    launch.module = in.size();
    launch.kernel = in.bytes();
    for (std::uint64_t& groups : launch.groups) groups = in.number<std::uint64_t>();
    launch.threads = in.number<std::uint64_t>();
    for (std::size_t b = in.size(); b > 0; --b) {
      const std::size_t region = in.size();
      launch.buffers.emplace_back(region, in.size());
    }
    launch.values = in.bytes();
    one.launches.push_back(std::move(launch));
  }
  for (std::size_t n = in.size(); n > 0; --n) {
    Result result;
    result.region = in.size();
    result.dtype = in.bytes();
    result.bound = in.number<double>();
    for (std::size_t e = in.size(); e > 0; --e) {
      result.places.push_back(in.number<std::int64_t>());
      result.expected.push_back(in.number<double>());
    }
    one.results.push_back(std::move(result));
  }
  return one;
}

template <class T>
double element(const Bytes& memory, std::int64_t place) {
  T value;
  std::memcpy(&value, memory.data() + static_cast<std::size_t>(place) * sizeof(T), sizeof(T));
  return static_cast<double>(value);
}

double half_value(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const double fraction = bits & 1023;
  double value = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  if (exponent == 31) value = fraction == 0 ? HUGE_VAL : NAN;
  return (bits & 0x8000) != 0 ? -value : value;
}

double number_at(const Bytes& memory, const Bytes& dtype, std::int64_t place) {
  if (dtype == "float32") return element<float>(memory, place);
  if (dtype == "int64") return element<std::int64_t>(memory, place);
  if (dtype == "int32") return element<std::int32_t>(memory, place);
  if (dtype == "int16") return element<std::int16_t>(memory, place);
  if (dtype == "int8") return element<std::int8_t>(memory, place);
  if (dtype == "uint8" || dtype == "bool") return element<std::uint8_t>(memory, place);
  std::uint16_t bits = 0;
  std::memcpy(&bits, memory.data() + static_cast<std::size_t>(place) * 2, 2);
  if (dtype == "float16") return half_value(bits);
  const std::uint32_t wide = static_cast<std::uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof(value));
  return value;
}

std::string difference(const Result& result, const Bytes& memory) {
  for (std::size_t i = 0; i < result.places.size(); ++i) {
    const double actual = number_at(memory, result.dtype, result.places[i]);
    const double wanted = result.expected[i];
    const bool same =
        actual == wanted || (std::isnan(actual) && std::isnan(wanted)) || std::abs(actual - wanted) <= result.bound;
    if (!same) {
      char text[200];
      std::snprintf(text, sizeof(text), "element %zu: %.9g instead of %.9g (bound %.3g)", i, actual, wanted,
                    result.bound);
      return text;
    }
  }
  return "";
}

/// What is wrong with the case; empty if nothing is.
std::string run(Driver& driver, Case& one) {
  std::vector<Driver::Handle> modules(one.modules.size());
  for (std::size_t i = 0; i < modules.size(); ++i) {
    driver.call<Driver::Handle*, const void*>("cuModuleLoadData", &modules[i], one.modules[i].data());
  }
  std::vector<Driver::Address> addresses(one.memory.size());
  for (std::size_t i = 0; i < one.memory.size(); ++i) {
    driver.call<Driver::Address*, std::size_t>("cuMemAlloc_v2", &addresses[i],
                                               std::max<std::size_t>(one.memory[i].size(), 16));
    driver.call<Driver::Address, const void*, std::size_t>("cuMemcpyHtoD_v2", addresses[i], one.memory[i].data(),
                                                           one.memory[i].size());
  }
  for (Launch& launch : one.launches) {
    Driver::Handle function = nullptr;
    driver.call<Driver::Handle*, Driver::Handle, const char*>("cuModuleGetFunction", &function, modules[launch.module],
                                                              launch.kernel.c_str());
    std::vector<Driver::Address> pointers;
    for (const auto& [region, offset] : launch.buffers) pointers.push_back(addresses[region] + offset);
    std::vector<void*> parameters;
    for (Driver::Address& pointer : pointers) parameters.push_back(&pointer);
    if (!launch.values.empty()) parameters.push_back(launch.values.data());
    const auto u = [](std::uint64_t x) { return static_cast<unsigned>(x); };
    driver.call<Driver::Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Driver::Handle,
                void**, void**>("cuLaunchKernel", function, u(launch.groups[0]), u(launch.groups[1]),
                                u(launch.groups[2]), u(launch.threads), 1U, 1U, 0U, nullptr, parameters.data(),
                                nullptr);
  }
  driver.call<>("cuCtxSynchronize");
  for (const Result& result : one.results) {
    Bytes& bytes = one.memory[result.region];
    driver.call<void*, Driver::Address, std::size_t>("cuMemcpyDtoH_v2", bytes.data(), addresses[result.region],
                                                     bytes.size());
  }
  for (const Driver::Address address : addresses) driver.call<Driver::Address>("cuMemFree_v2", address);
  for (const Driver::Handle module : modules) driver.call<Driver::Handle>("cuModuleUnload", module);
  for (std::size_t i = 0; i < one.results.size(); ++i) {
    const std::string wrong = difference(one.results[i], one.memory[one.results[i].region]);
    if (!wrong.empty()) return "result " + std::to_string(i) + ", " + wrong;
  }
  return "";
}

}  // namespace

int main(int count, char** arguments) {
  try {
    if (count != 2) fail("usage: launch CASES");
    Reader in(arguments[1]);
    Driver driver;
    std::size_t wrong = 0;
    const std::size_t cases = in.size();
    for (std::size_t i = 0; i < cases; ++i) {
      Case one = read_case(in);
      const std::string complaint = run(driver, one);
      if (!complaint.empty()) std::printf("%s: %s\n", one.name.c_str(), complaint.c_str());
      wrong += complaint.empty() ? 0 : 1;
    }
    std::printf("%zu cases, %zu wrong\n", cases, wrong);
    return wrong == 0 && cases > 0 ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
