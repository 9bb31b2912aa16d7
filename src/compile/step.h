#pragma once
// Step: one thing that a device does. A plan is a list of steps over a table of memory slots.
#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/function_ref.h"
#include "compile/group.h"

namespace russet::compile {

/// A strided array in a slot. Random numbers that an attention draws itself have none: then the offset's argument is
/// that of the random operator.
struct Operand {
  Access access;
  Shape sizes;
  bool operator==(const Operand&) const = default;
};

/// What a primitive's kernel computes along, of the primitive's inputs or some of them.
struct Companion {
  ops::Op op = ops::Op::leaf;
  Operand output;
  /// The operator's results are added up over the rows of each matrix, in float32: one row is left of it.
  bool is_sum = false;
  bool operator==(const Companion&) const = default;
};

/// A primitive that is a step of its own: contraction, indexing, window, ordering, a reduction that no group took.
/// `output` is always dense (a permutation of contiguous strides) for contractions, but may be any region.
struct Primitive {
  ops::Op op = ops::Op::leaf;
  ops::Attributes attributes;
  std::vector<Operand> inputs;
  Operand output;
  /// The logsumexp of an attention; with the key's gradient the value's, and the query's, and sums of the three.
  std::vector<Companion> companions;
  std::int32_t argument = -1;
  /// Of a contraction or a pool: work on the result before it is stored; empty code means none. Access 0 stands for the
  /// result as it was computed (float32 for 16-bit types, before rounding). Either elementwise, and its space is the
  /// output's sizes; or a column group whose full values are the output's elements: then the code stores the output,
  /// be it the result itself, and what the reductions give.
  Group epilogue;
  /// Of a contraction or a pool: how the elements of an input are computed where they are read; empty code means that
  /// they lie in memory. Elementwise, over a dense array whose elements the space counts one after the other; the last
  /// instruction stores the element. That access has no slot unless others read the array too; then the contraction
  /// stores it, and what else the code stores. The input's has none: it tells where in the array it reads.
  std::array<Group, 2> prologues;
  bool operator==(const Primitive&) const = default;
};

/// Whether an input of the primitive is computed where it is read.
bool has_prologue(const Primitive& primitive);
/// Whether what a prologue computes is stored, too.
bool is_storing(const Group& prologue);

/// One of the two launches that a device takes for a group or a primitive: the first leaves parts of the result in a
/// slot of their own, the second makes the result of them.
struct Stage {
  std::variant<Group, Primitive> whole;
  int number = 0;                   // 0 or 1
  std::int32_t parts = -1;          // slot
  std::vector<std::int32_t> reads;  // slots that this stage reads and writes besides the parts
  std::vector<std::int32_t> writes;
  bool operator==(const Stage&) const = default;
};

struct Step;

/// Memory that one step alone touches: what its members hand on to each other.
struct HandedOn {
  std::int32_t slot = -1;
  std::size_t bytes = 0;
  bool operator==(const HandedOn&) const = default;
};

/// Steps, other than bundles, that one step runs.
struct Bundle {
  std::vector<Step> members;
  /// 0: they neither read nor write what another one writes, such as the updates of a model's parameters. Else they run
  /// one after the other for each sample of a batch of so many: what members write lies sample by sample, and of that
  /// they read their own sample alone. See the pass `samples`.
  std::int64_t samples = 0;
  /// Of members that go sample by sample: what they hand on, which need not be stored where others would find it.
  std::vector<HandedOn> handed_on{};
  /// Slots that they do not write and of which they read the same for each sample, such as weights.
  std::vector<std::int32_t> shared{};
  friend bool operator==(const Bundle& a, const Bundle& b);
};

struct Step : std::variant<Group, Primitive, Stage, Bundle> {
  using variant::variant;
};

inline bool operator==(const Bundle& a, const Bundle& b) {
  return a.samples == b.samples && a.handed_on == b.handed_on && a.shared == b.shared && a.members == b.members;
}

/// Of each access of a group, whether an instruction stores there.
std::vector<bool> written_accesses(const Group& group);
/// Calls visit(slot, writes) for each access of a step to a slot.
void for_each_access(const Step& step, base::FunctionRef<void(std::int32_t, bool)> visit);
/// Puts place(slot) where the step accesses a slot.
void rename_slots(Step& step, base::FunctionRef<std::int32_t(std::int32_t)> place);
/// Calls visit(step) for each member of a bundle, or for the step itself.
void for_each_member(const Step& step, base::FunctionRef<void(const Step&)> visit);
/// The group that a step is, or that it is a stage of; nullptr for others.
const Group* group_of(const Step& step);

/// What a replay hands to a kernel.
struct Bindings {
  std::byte* const* slots = nullptr;
  const std::uint64_t* arguments = nullptr;
  std::byte* scratch = nullptr;  // kernel.scratch_bytes(), 64-byte aligned
};

/// A step that is ready to run. Stateless between runs; scratch comes from the plan's arena.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual void run(const Bindings& bindings) const = 0;
  virtual std::size_t scratch_bytes() const { return 0; }
  /// Whether a run does nothing but launch what follows from the bindings.
  virtual bool only_launches() const { return false; }
  /// Which implementation this is: "tiles", "onednn:brgconv:avx512_core_amx", ...
  virtual std::string name() const = 0;
  /// How many kernels a device launches for it.
  virtual int launches() const { return 1; }
  /// Why another device runs the step; empty if its own does.
  virtual std::string fallback_reason() const { return {}; }
};

/// What a device says of running a step together with others in one.
struct Sharing {
  std::string kind;  // steps of one kind may be members of one bundle; empty: the step runs alone
  std::string code;  // steps of one code are one piece of code to the device
};

/// How far bundles go.
struct BundleLimits {
  std::size_t members = 1;  // of a bundle
  std::size_t codes = 1;    // of a bundle's members
  std::size_t waiting = 8;  // bundles that wait for members at once, at most 32
  std::size_t window = 0;   // steps ahead from which members come early
  /// Likewise in a program whose temporaries lie apart (Target::bytes_apart): there a step that comes early makes the
  /// bundle wait for what it needs, while by itself it would run beside others.
  std::size_t window_apart = 0;
  /// Bytes of temporaries that live longer because steps which read more than a few KiB wait for others. They do so
  /// only where the plan's peak lies elsewhere.
  std::size_t held_bytes = 0;
};

/// Seconds that a step takes by itself, and as a member of a bundle that runs sample by sample, to which each launch
/// adds `launch`.
struct SampleTimes {
  double launch = 0, alone = 0, together = 0;
};

/// What the two stages of a step touch; see Stage.
struct Stages {
  std::size_t parts_bytes = 0;
  std::array<std::vector<std::int32_t>, 2> reads, writes;
};

/// What the compiler asks a device while it makes a plan.
class Target {
 public:
  virtual ~Target() = default;
  /// The first implementation that accepts. Throws TypeError if none does.
  virtual std::unique_ptr<Kernel> compile(const Step& step) const = 0;
  /// Called with all kernels of a plan when it is made: devices may let several have the same code.
  virtual void share_code(std::span<const std::unique_ptr<Kernel>> /*kernels*/) const {}
  /// Called with all kernels of a plan before it runs for the first time: devices that compile kernels do it here.
  virtual void prepare(std::span<const std::unique_ptr<Kernel>> /*kernels*/) const {}
  /// Whether the device runs groups with generated code; otherwise every primitive is a step (reference).
  virtual bool runs_groups() const { return true; }
  /// With which steps this one may share a bundle; asked of groups, primitives and stages.
  virtual Sharing sharing(const Step& /*step*/) const { return {}; }
  virtual BundleLimits bundle_limits() const { return {}; }
  /// What is gained by running the step in a bundle, for each of so many samples; nullopt if the device does not.
  virtual std::optional<SampleTimes> sample_times(const Step& /*step*/, std::int64_t /*samples*/) const {
    return std::nullopt;
  }
  /// The stages that a group or primitive is divided into if they are to be steps of their own; nullopt if it is one
  /// launch, or if the device keeps it whole.
  virtual std::optional<Stages> stages(const Step& /*step*/) const { return std::nullopt; }
  /// Whether a row group is to add up columns, too, rather than a group of its own.
  virtual bool adds_up_columns(const Group& /*with column sums*/) const { return false; }
  /// The longest row that a row group may hold while full instructions follow its reductions.
  virtual std::int64_t longest_row() const { return 16384; }
  /// Whether an integer divided by 0 is a number on this device, rather than a failure. What fails is a step by itself.
  virtual bool integers_divide_by_zero() const { return false; }
  /// Whether the device computes with a type itself. Groups hold nothing that it does not beside what it does.
  virtual bool computes(DType /*dtype*/) const { return true; }
  /// The most accesses to memory that a group may have.
  virtual int max_accesses() const { return 1024; }
  /// Whether the device has kernels for attention in the type; else the program has products and elementwise operators
  /// in its place.
  virtual bool has_attention(DType /*dtype*/) const { return false; }
  /// Elements whose multiple lines of products of the type should have, where an attention's are free to be longer.
  virtual std::int64_t line_multiple(DType /*dtype*/) const { return 1; }
  /// Whether this attention, or gradient of one, is to be a kernel's rather than products and elementwise operators.
  virtual bool prefers_attention(const Primitive& attention) const {
    return has_attention(attention.inputs[0].access.dtype);
  }
  /// Whether one kernel computes the three gradients of an attention: asked of the key's, with the others along. Its
  /// delta may be the attention's result, of which the kernel then makes deltas.
  virtual bool computes_gradients_at_once(const Primitive& /*with companions*/) const { return false; }
  /// Whether a convolution that is a product, once its patches are copied, is to be one. Asked of gradients, too.
  virtual bool prefers_products(const Primitive& /*convolution*/) const { return false; }
  /// Whether a number for each channel by which a convolution's result is multiplied is to be multiplied with its
  /// weight instead: the device adds a bias as it stores the result. `once`: the weight stays, so that this is done
  /// once for many runs.
  virtual bool prefers_folded_scales(const Primitive& /*convolution*/, bool /*once*/) const { return false; }
  /// Whether a product of matrices is to become one with others that share a factor or are added to it, where what
  /// these do not share is put together.
  virtual bool joins_products(const Primitive& /*product*/) const { return false; }
  /// Whether a convolution over few channels is to have no stride and more channels. Asked of weights' gradients, too.
  virtual bool prefers_space_to_depth(const Primitive& /*convolution*/) const { return false; }
  /// Whether a convolution of single pixels with a stride is to have none, and a copy of the pixels that it sees.
  virtual bool prefers_subsampling(const Primitive& /*convolution*/) const { return false; }
  /// Whether a kernel runs the primitive as it is: a max_pool with the positions of its maxima, which the gradient's
  /// kernel reads then; an attention with the bits of what its dropout keeps; its gradients with their sums, or with
  /// such bits in place of random numbers.
  virtual bool has_kernel(const Primitive& /*with companions, or with bits*/) const { return false; }
  /// Whether the device runs a group that stores masks four elements to a byte, or reads such.
  virtual bool packs_masks(const Group& /*with packed accesses*/) const { return false; }
  /// Whether a contraction or a pool takes this epilogue, and these prologues.
  virtual bool accepts_epilogue(const Primitive& /*with epilogue*/) const { return false; }
  /// Whether an epilogue may store an element where it has read one.
  virtual bool epilogues_update_in_place() const { return false; }
  /// What an operation costs beside a byte that memory moves: a core of a CPU's is 1.
  virtual double cost_of_operations() const { return 1; }
  /// Whether a primitive without an epilogue stores its result as a part of a larger array, with any strides.
  virtual bool stores_into_arrays(const Primitive& /*with these strides*/) const { return false; }
  /// Whether contractions may have prologues.
  virtual bool takes_prologues() const { return false; }
  /// Whether this one may have one of its first input all the same, if nobody else reads that.
  virtual bool computes_image(const Primitive& /*without prologues*/) const { return false; }
  /// The dense strides that a contraction would like for its operand (input i, or -1 for the output).
  virtual Strides preferred_strides(const Primitive& contraction, int operand) const {
    return contiguous_strides(operand < 0 ? contraction.output.sizes
                                          : contraction.inputs[static_cast<std::size_t>(operand)].sizes);
  }
  /// The dense strides without which the best that the device has does not take a contraction: operands that lie
  /// otherwise are copied. Nothing where the operand may lie anyhow.
  virtual std::optional<Strides> required_strides(const Primitive& /*contraction*/, int /*operand*/) const {
    return std::nullopt;
  }
  /// Up to how many bytes temporaries of steps that do not need each other lie apart, with what these need to run, so
  /// that the device may run such steps at once; beyond that, memory is used again as soon as it is free.
  virtual std::size_t bytes_apart() const { return 0; }
  /// Part of the plan's key: thread count, versions of kernel tables.
  virtual std::uint64_t key() const { return 0; }
};

}  // namespace russet::compile
