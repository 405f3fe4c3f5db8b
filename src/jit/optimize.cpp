#include "jit/optimize.h"

#include "codegen/codegen.h"
#include "llvm/Analysis/AliasAnalysis.h"
#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/Analysis/CGSCCPassManager.h"
#include "llvm/Analysis/InstructionSimplify.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PassManager.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/ADCE.h"
#include "llvm/Transforms/Scalar/CorrelatedValuePropagation.h"
#include "llvm/Transforms/Scalar/DeadStoreElimination.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/GVN.h"
#include "llvm/Transforms/Scalar/IndVarSimplify.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/LoopDeletion.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/LoopUnrollPass.h"
#include "llvm/Transforms/Scalar/Reassociate.h"
#include "llvm/Transforms/Scalar/SROA.h"
#include "llvm/Transforms/Scalar/SimpleLoopUnswitch.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"
#include "llvm/Transforms/Utils/LCSSA.h"
#include "llvm/Transforms/Utils/LoopRotationUtils.h"
#include "llvm/Transforms/Utils/LoopSimplify.h"
#include "llvm/Transforms/Utils/SimplifyCFGOptions.h"

namespace weft::jit {

namespace {

// Some passes are quadratic in the number of loops: all loops of a kernel are inside the loop over its threads, and a
// change to one invalidates LLVM's analyses of all. Others are quadratic in the number of stores. Above these numbers,
// beyond the largest kernels of real programs, such passes are skipped.
constexpr std::size_t kManyLoops = 64, kManyStores = 256;

struct Size {
    bool has_many_loops = false, has_many_stores = false;
    bool has_own_loops = false;  // besides those over its threads
};

Size size_of(llvm::Function& function) {
    std::size_t stores = 0;
    for (const llvm::Instruction& instruction : llvm::instructions(function)) stores += instruction.mayWriteToMemory();
    const llvm::DominatorTree dominators(function);
    const std::size_t loops = llvm::LoopInfo(dominators).getLoopsInPreorder().size();
    const std::uint64_t over_threads = function.getFnAttributeAsParsedInteger(codegen::kThreadLoops);
    return {loops > kManyLoops, stores > kManyStores, loops > over_threads};
}

// Rotates loops, so that they test at their end. LLVM's own pass keeps MemorySSA and scalar evolution up to date, which
// is quadratic in the number of loops; at this point no pass has computed either.
struct RotateLoops : llvm::PassInfoMixin<RotateLoops> {
    llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses) {
        constexpr unsigned kMostCopied = 16;  // instructions of a loop's test that are duplicated
        auto& loops = analyses.getResult<llvm::LoopAnalysis>(function);
        auto& dominators = analyses.getResult<llvm::DominatorTreeAnalysis>(function);
        auto& assumptions = analyses.getResult<llvm::AssumptionAnalysis>(function);
        auto& costs = analyses.getResult<llvm::TargetIRAnalysis>(function);
        const llvm::SimplifyQuery query(function.getDataLayout(), nullptr, &dominators, &assumptions);
        const llvm::SmallVector<llvm::Loop*, 4> outer_first = loops.getLoopsInPreorder();
        for (auto loop = outer_first.rbegin(); loop != outer_first.rend(); ++loop)
            llvm::LoopRotation(*loop, &loops, &costs, &assumptions, &dominators, nullptr, nullptr, query,
                               /*RotationOnly=*/false, kMostCopied, /*IsUtilMode=*/false);
        llvm::PreservedAnalyses kept;
        kept.preserve<llvm::LoopAnalysis>();
        kept.preserve<llvm::DominatorTreeAnalysis>();
        return kept;
    }
};

llvm::FunctionPassManager make_pipeline(int level, Size size) {
    llvm::FunctionPassManager passes;
    // Promotion to registers, then the cheapest and most effective clean-up.
    passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
    passes.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/level >= 2));
    passes.addPass(llvm::SimplifyCFGPass());
    passes.addPass(llvm::InstCombinePass());
    if (level < 2) return passes;

    // Loops: rotated, with invariants hoisted (address arithmetic, loads of array descriptors, uniform loads).
    passes.addPass(llvm::LoopSimplifyPass());
    passes.addPass(llvm::LCSSAPass());
    passes.addPass(RotateLoops());
    llvm::LoopPassManager hoisting;
    hoisting.addPass(llvm::LICMPass(llvm::LICMOptions()));
    passes.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(hoisting), /*UseMemorySSA=*/true));

    if (size.has_own_loops) {
        llvm::LoopPassManager counting;
        counting.addPass(llvm::IndVarSimplifyPass());
        counting.addPass(llvm::LoopDeletionPass());
        passes.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(counting), /*UseMemorySSA=*/false));
    }

    // Short uniform loops inside a thread (n-body's inner loop, small matrices) unroll; later passes merge the copies.
    if (level >= 3 && size.has_own_loops && !size.has_many_loops) {
        passes.addPass(llvm::LoopUnrollPass(llvm::LoopUnrollOptions(level, /*OnlyWhenForced=*/false)));
        passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
    }
    passes.addPass(llvm::GVNPass());
    if (!size.has_many_stores) passes.addPass(llvm::DSEPass());
    if (size.has_own_loops) passes.addPass(llvm::InstCombinePass());

    // GVN may have made further addresses and loads invariant.
    if (!size.has_many_loops) {
        llvm::LoopPassManager last_hoisting;
        last_hoisting.addPass(llvm::LICMPass(llvm::LICMOptions()));
        passes.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(last_hoisting), /*UseMemorySSA=*/true));
    }

    passes.addPass(llvm::ADCEPass());
    passes.addPass(llvm::SimplifyCFGPass(
        llvm::SimplifyCFGOptions().convertSwitchRangeToICmp(true).hoistCommonInsts(true).sinkCommonInsts(true)));
    return passes;
}

}  // namespace

void run_passes(llvm::Module& module, llvm::TargetMachine& machine, int level) {
    // Declared in the order of their references to each other; the proxies connect them.
    llvm::LoopAnalysisManager loops;
    llvm::FunctionAnalysisManager functions;
    llvm::CGSCCAnalysisManager components;
    llvm::ModuleAnalysisManager modules;
    llvm::PassBuilder builder(&machine);
    builder.registerModuleAnalyses(modules);
    builder.registerCGSCCAnalyses(components);
    builder.registerFunctionAnalyses(functions);
    builder.registerLoopAnalyses(loops);
    builder.crossRegisterProxies(loops, functions, components, modules);

    for (llvm::Function& function : module)
        if (!function.isDeclaration()) make_pipeline(level, size_of(function)).run(function, functions);
}

}  // namespace weft::jit
