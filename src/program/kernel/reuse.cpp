#include "program/kernel/reuse.h"

#include <algorithm>
#include <bit>
#include <deque>
#include <map>
#include <utility>

#include "support/error.h"

namespace weft::program {

using sema::Binding;
using sema::Environment;
using sema::FunctionSource;
using Kind = Binding::Kind;

namespace {

// Texts are preceded by their length, addresses and numbers end with a space: different answers never read alike. Types
// are interned and live for ever, so their addresses identify them.
void append_text(std::string& words, std::string_view text) {
    words += std::to_string(text.size()) + ":";
    words += text;
}
void append_address(std::string& words, const void* address) {
    words += std::to_string(reinterpret_cast<std::uintptr_t>(address)) + " ";
}

void append_pattern(std::string& words, const TypePattern& pattern) {
    words += std::to_string(static_cast<int>(pattern.shape)) + " " + std::to_string(pattern.rows) + " " +
             std::to_string(pattern.cols) + " " + std::to_string(pattern.ndim) + " ";
    append_address(words, pattern.type.node());
    append_address(words, pattern.variable_identity);
    for (const auto* patterns : {&pattern.parts, &pattern.choices}) {
        words += std::to_string(patterns->size()) + " ";
        for (const TypePattern& part : *patterns) append_pattern(words, part);
    }
}

// ---- the decision trees ----

struct Node {
    bool has_question = false;
    Question question;
    std::unordered_map<std::string, std::unique_ptr<Node>> next;
    std::weak_ptr<KernelCode> code;                              // of a leaf
    std::vector<std::shared_ptr<const syntax::Function>> trees;  // the answers contain their addresses
};

struct Root {
    std::weak_ptr<const syntax::Function> tree;
    std::map<std::string, std::unique_ptr<Node>> by_key;
};

struct State {
    std::unordered_map<const syntax::Function*, Root> roots;
    std::size_t sweep_at = 64;
    // The latest codes stay alive without a kernel that uses them.
    static constexpr std::size_t kMostKept = 1024;
    std::deque<std::shared_ptr<KernelCode>> kept;
};
State& state() {
    static auto* const instance = new State;  // leaked on purpose: Python objects may be gone at exit
    return *instance;
}

Root& root_of(const std::shared_ptr<const syntax::Function>& tree) {
    State& s = state();
    if (s.roots.size() >= s.sweep_at) {
        std::erase_if(s.roots, [](const auto& entry) { return entry.second.tree.expired(); });
        s.sweep_at = std::max<std::size_t>(64, 2 * s.roots.size());
    }
    Root& root = s.roots[tree.get()];
    if (root.tree.expired()) root = Root{tree, {}};  // another tree stood at this address
    return root;
}

// Null if the question cannot be asked of these functions.
std::optional<Binding> ask(const Question& question, const Answers& answers) {
    Environment& environment = *answers.function(question.function).environment;
    try {
        switch (question.kind) {
            case Question::Kind::name:
                return environment.lookup(question.name);
            case Question::Kind::attribute: {
                Binding object{.kind = Kind::object};
                object.object = answers.object(question.object);
                return environment.attribute(object, question.name);
            }
            case Question::Kind::method:
                return environment.method(question.type, question.name);
            case Question::Kind::expression:
                return environment.evaluate(question.expression, question.constants);
        }
    } catch (const UsageError&) {
        return std::nullopt;  // the analysis will meet the error, and knows its line
    }
    return std::nullopt;
}

// Whether a local can be passed to the expressions of another kernel: objects and functions belong to their own.
bool is_plain(const Binding& binding) {
    if (binding.kind == Kind::object || binding.kind == Kind::function) return false;
    return std::all_of(binding.elements.begin(), binding.elements.end(), is_plain);
}

}  // namespace

// ---- answers in words ----

int Answers::number_of(std::shared_ptr<const FunctionSource> function) {
    const auto found = std::find(functions_.begin(), functions_.end(), function);
    if (found != functions_.end()) return static_cast<int>(found - functions_.begin());
    functions_.push_back(std::move(function));
    return static_cast<int>(functions_.size()) - 1;
}

std::vector<std::shared_ptr<Environment>> Answers::environments() const {
    std::vector<std::shared_ptr<Environment>> found;
    for (const auto& function : functions_) found.push_back(function->environment);
    return found;
}

int Answers::number_of_object(const void* object) const {
    for (std::size_t i = 0; i < objects_.size(); ++i)
        if (objects_[i].get() == object) return static_cast<int>(i);
    return -1;
}

std::string Answers::describe(const Binding& answer) {
    std::string words;
    append(words, answer);
    return words;
}

void Answers::append(std::string& words, const Binding& binding) {
    const auto& [kind, type, numbers, is_literal, text, function, lambda, is_gradient, object, elements, takes_self,
                 is_property, takes_class] = binding;
    WEFT_CHECK(!lambda, "no lambda is known outside of its function");
    words += std::to_string(static_cast<int>(kind)) + (is_literal ? "l " : " ");
    append_address(words, type.node());
    append_text(words, text);
    for (const Number& number : numbers)
        words += (number.is_float ? "f" : "i") +
                 std::to_string(number.is_float ? std::bit_cast<std::int64_t>(number.f) : number.i) + " ";
    if (function) append_function(words, function);
    if (is_gradient) words += "gradient ";
    if (takes_self) words += is_property ? "property " : "method ";
    if (takes_class) words += "class method ";
    if (object) {
        int number = number_of_object(object.get());
        if (number < 0) {
            number = static_cast<int>(objects_.size());
            objects_.push_back(object);
        }
        words += "object" + std::to_string(number) + " ";
    }
    words += "(";
    for (const Binding& element : elements) append(words, element);
    words += ")";
}

void Answers::append_function(std::string& words, const std::shared_ptr<const FunctionSource>& function) {
    const auto& [tree, environment, annotations, references, key, defaults, result, native, native_adjoint,
                 native_replay, overloads, gradient, replay] = *function;
    const std::size_t known = functions_.size();
    const int number = number_of(function);
    words += "function" + std::to_string(number) + " ";
    if (functions_.size() == known) return;
    append_address(words, tree.get());
    for (const TypePattern& pattern : annotations) append_pattern(words, pattern);
    for (const std::string& name : references) append_text(words, name);
    if (result) append_address(words, result->node());
    for (const SourcePtr& snippet : {native, native_adjoint, native_replay}) {
        words += snippet ? "snippet " : "- ";
        if (!snippet) continue;
        for (const std::string& line : snippet->lines) append_text(words, line);
    }
    words += "(";
    for (const Binding& value : defaults) append(words, value);
    words += ")(";
    for (const auto& overload : overloads) append_function(words, overload);
    words += ")";
    for (const auto& custom : {gradient, replay}) {
        words += custom ? "derivative " : "- ";
        if (custom) append_function(words, custom);
    }
}

std::string reuse_key(const FunctionSource& kernel, const std::vector<Type>& types, const sema::Options& options) {
    std::string key;
    for (const TypePattern& pattern : kernel.annotations) append_pattern(key, pattern);
    for (const Type type : types) append_address(key, type.node());
    const auto& [max_unroll, debug, blocks] = options;
    key += std::to_string(max_unroll) + (debug ? " debug" : "");
    key += " " + std::to_string(blocks.lanes) + " " + std::to_string(blocks.lane_axis);
    for (const std::int64_t extent : blocks.threads) key += " " + std::to_string(extent);
    return key;
}

std::shared_ptr<KernelCode> find_code(const std::shared_ptr<const FunctionSource>& kernel, const std::string& key,
                                      std::vector<std::shared_ptr<Environment>>& asked) {
    Root& root = root_of(kernel->tree);
    const auto entry = root.by_key.find(key);
    if (entry == root.by_key.end()) return nullptr;
    const Node* node = entry->second.get();
    Answers answers(kernel);
    while (node->has_question) {
        const std::optional<Binding> answer = ask(node->question, answers);
        if (!answer) return nullptr;
        const auto next = node->next.find(answers.describe(*answer));
        if (next == node->next.end()) return nullptr;
        node = next->second.get();
    }
    asked = answers.environments();
    return node->code.lock();
}

// ---- the log of questions ----

class LoggingEnvironment final : public Environment {
public:
    LoggingEnvironment(QuestionLog& log, std::shared_ptr<const FunctionSource> original)
        : log_(log), original_(std::move(original)) {}

    void go_on() override { environment().go_on(); }
    Binding lookup(std::string_view name) override {
        Question question{.function = number(), .name = std::string(name)};
        return log_.note(std::move(question), environment().lookup(name));
    }
    Binding attribute(const Binding& object, std::string_view name) override {
        Question question{.kind = Question::Kind::attribute, .function = number(), .name = std::string(name)};
        question.object = log_.answers_.number_of_object(object.object.get());
        if (question.object < 0) log_.is_complete_ = false;
        return log_.note(std::move(question), environment().attribute(object, name));
    }
    Binding method(Type type, std::string_view name) override {
        Question question{.kind = Question::Kind::method, .function = number(), .name = std::string(name)};
        question.type = type;
        return log_.note(std::move(question), environment().method(type, name));
    }
    // Answers about these types never change: the key of a struct contains the rules of its dataclass.
    std::optional<sema::Construction> construction(Type type) override { return environment().construction(type); }
    std::string module_with_operator(Type type, std::string_view name) override {
        return environment().module_with_operator(type, name);
    }
    bool is_derived(Type type, Type base) override { return environment().is_derived(type, base); }
    Binding evaluate(int expression_id, const std::vector<Local>& constants) override {
        Question question{.kind = Question::Kind::expression, .function = number(), .expression = expression_id};
        for (const Local& local : constants) log_.is_complete_ = log_.is_complete_ && is_plain(local.value);
        question.constants = constants;
        return log_.note(std::move(question), environment().evaluate(expression_id, constants));
    }
    std::vector<std::string> names() override { return environment().names(); }
    std::vector<std::string> attribute_names(const Binding& object) override {
        return environment().attribute_names(object);
    }

private:
    Environment& environment() const { return *original_->environment; }
    int number() const { return log_.numbers_.at(original_.get()); }

    QuestionLog& log_;
    std::shared_ptr<const FunctionSource> original_;
};

QuestionLog::QuestionLog(std::shared_ptr<const FunctionSource> kernel) : original_(kernel), answers_(kernel) {
    numbers_.emplace(kernel.get(), 0);
    logged_ = logged(original_);
}

std::shared_ptr<const FunctionSource> QuestionLog::logged(const std::shared_ptr<const FunctionSource>& function) {
    if (const auto known = wrapped_.find(function.get()); known != wrapped_.end()) return known->second;
    auto copy = std::make_shared<FunctionSource>(*function);
    copy->environment = std::make_shared<LoggingEnvironment>(*this, function);
    wrapped_.emplace(function.get(), copy);
    for (Binding& value : copy->defaults) replace_functions(value);
    for (auto& overload : copy->overloads) overload = logged(overload);
    for (auto* custom : {&copy->gradient, &copy->replay})
        if (*custom) *custom = logged(*custom);
    return copy;
}

void QuestionLog::replace_functions(Binding& binding) {
    if (binding.function) binding.function = logged(binding.function);
    for (Binding& element : binding.elements) replace_functions(element);
}

std::string QuestionLog::question_words(const Question& question) {
    std::string words = std::to_string(static_cast<int>(question.kind)) + " " + std::to_string(question.function) +
                        " " + std::to_string(question.object) + " " + std::to_string(question.expression) + " ";
    append_text(words, question.name);
    append_address(words, question.type.node());
    for (const Environment::Local& local : question.constants) {
        append_text(words, local.name);
        if (local.length) words += "of length " + std::to_string(*local.length) + " ";
        words += answers_.describe(local.value);
    }
    return words;
}

Binding QuestionLog::note(Question question, Binding answer) {
    std::string words = answers_.describe(answer);
    // A repeated question decides nothing.
    if (asked_.insert(question_words(question)).second) notes_.emplace_back(std::move(question), std::move(words));
    // Number the functions that this answer has brought up.
    for (int i = static_cast<int>(numbers_.size()); i < answers_.function_count(); ++i)
        numbers_.emplace(&answers_.function(i), i);
    replace_functions(answer);
    return answer;
}

void QuestionLog::remember(const std::string& key, std::shared_ptr<KernelCode> code) {
    if (!is_complete_) return;
    std::unique_ptr<Node>& top = root_of(original_->tree).by_key[key];
    if (!top) top = std::make_unique<Node>();
    Node* node = top.get();
    for (auto& [question, answer] : notes_) {
        if (!node->has_question) {
            node->has_question = true;
            node->question = std::move(question);
        }
        std::unique_ptr<Node>& next = node->next[answer];
        if (!next) next = std::make_unique<Node>();
        node = next.get();
    }
    node->code = code;
    node->trees.clear();
    for (int i = 1; i < answers_.function_count(); ++i) node->trees.push_back(answers_.function(i).tree);
    State& s = state();
    s.kept.push_back(std::move(code));
    if (s.kept.size() > State::kMostKept) s.kept.pop_front();
}

}  // namespace weft::program
