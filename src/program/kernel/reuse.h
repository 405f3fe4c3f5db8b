// Kernels that one `def` made more than once (factories, closures) share their machine code if it would be the same.
//
// Sema's result depends on the kernel's tree, its parameters' types, the options, and the answers to its questions
// about names. Nothing else reaches it. So the analyses of one tree form a decision tree: each node is a question, each
// edge an answer, each leaf an analysed kernel with its code. A kernel that is asked the same questions and gives the
// same answers gets the code at the leaf, without being analysed. The next question depends on nothing but the answers
// so far: this is a proof and no heuristic.
//
// Calls must not overlap: the bindings make them while they hold the GIL.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "program/kernel/code.h"
#include "sema/environment.h"
#include "sema/sema.h"

namespace weft::program {

// Numbers the functions and objects that answers bring up, and encodes answers as text. Texts are equal exactly if sema
// can make no difference between the answers.
class Answers {
public:
    explicit Answers(std::shared_ptr<const sema::FunctionSource> kernel) { number_of(std::move(kernel)); }

    std::string describe(const sema::Binding& answer);
    const sema::FunctionSource& function(int number) const { return *functions_[static_cast<std::size_t>(number)]; }
    int function_count() const { return static_cast<int>(functions_.size()); }
    const std::shared_ptr<void>& object(int number) const { return objects_[static_cast<std::size_t>(number)]; }
    std::vector<std::shared_ptr<sema::Environment>> environments() const;
    int number_of_object(const void* object) const;  // -1 if it was in no answer

private:
    int number_of(std::shared_ptr<const sema::FunctionSource> function);
    void append(std::string& words, const sema::Binding& binding);
    void append_function(std::string& words, const std::shared_ptr<const sema::FunctionSource>& function);

    std::vector<std::shared_ptr<const sema::FunctionSource>> functions_;
    std::vector<std::shared_ptr<void>> objects_;
};

struct Question {
    enum class Kind { name, attribute, method, expression } kind = Kind::name;
    int function = 0;  // whose names: 0 is the kernel
    int object = -1;   // the object of an attribute
    Type type;         // the struct of a method
    std::string name;
    int expression = -1;
    std::vector<sema::Environment::Local> constants;  // of an expression
};

// The key of a kernel besides the answers: its types and sema's options, as one text.
std::string reuse_key(const sema::FunctionSource& kernel, const std::vector<Type>& types, const sema::Options& options);

// Null if no kernel of this tree and key has given the same answers. `asked` gets the environments of all functions
// that were asked.
std::shared_ptr<KernelCode> find_code(const std::shared_ptr<const sema::FunctionSource>& kernel, const std::string& key,
                                      std::vector<std::shared_ptr<sema::Environment>>& asked);

// Notes the questions of one analysis.
class QuestionLog {
public:
    explicit QuestionLog(std::shared_ptr<const sema::FunctionSource> kernel);

    // The kernel to analyse in place of the original: the same, with environments that note each question.
    const sema::FunctionSource& kernel() const { return *logged_; }
    std::vector<std::shared_ptr<sema::Environment>> asked() const { return answers_.environments(); }
    // Keeps the code for kernels that give the same answers. Keeps nothing if a question cannot be asked again (a
    // wp.static that uses objects found at compile time).
    void remember(const std::string& key, std::shared_ptr<KernelCode> code);

private:
    friend class LoggingEnvironment;
    sema::Binding note(Question question, sema::Binding answer);
    std::string question_words(const Question& question);
    std::shared_ptr<const sema::FunctionSource> logged(const std::shared_ptr<const sema::FunctionSource>& function);
    void replace_functions(sema::Binding& binding);

    std::shared_ptr<const sema::FunctionSource> original_, logged_;
    Answers answers_;
    std::unordered_map<const sema::FunctionSource*, int> numbers_;
    std::unordered_map<const sema::FunctionSource*, std::shared_ptr<const sema::FunctionSource>> wrapped_;
    std::vector<std::pair<Question, std::string>> notes_;
    std::unordered_set<std::string> asked_;
    bool is_complete_ = true;
};

}  // namespace weft::program
