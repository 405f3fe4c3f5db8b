#include "frontend/tree_reader.h"

namespace weft::frontend {

ExpressionLocation TreeReader::location(nb::handle node) const {
    const FieldNames& f = fields();
    return {get_int(node, f.lineno) + line_offset_, get_int(node, f.col_offset),
            get_int(node, f.end_lineno) + line_offset_, get_int(node, f.end_col_offset)};
}

// The part on the first line; ast counts bytes of UTF-8, a Span counts characters.
Span TreeReader::span(const ExpressionLocation& at) const {
    const std::string& line = source_.line(at.line);
    const int end = at.end_line == at.line ? at.end : static_cast<int>(line.size());
    return {&source_, at.line, characters(line, at.begin), characters(line, end)};
}

int TreeReader::characters(const std::string& line, int bytes) {
    int count = 0;
    for (int i = 0; i < bytes && i < static_cast<int>(line.size()); ++i) {
        count += (static_cast<unsigned char>(line[static_cast<std::size_t>(i)]) & 0xC0) != 0x80;
    }
    return count;
}

ReadTree read_tree(const ParsedFunction& parsed, IsAdjoint is_adjoint) {
    auto function = std::make_shared<Function>();
    TreeReader reader(parsed, std::move(is_adjoint));
    const FieldNames& f = fields();
    function->source = parsed.source;
    function->name = get_text(parsed.definition, f.name);
    function->span = reader.span(parsed.definition);
    reader.signature(get(parsed.definition, f.args), *function);
    if (nb::object result = get(parsed.definition, f.returns); !result.is_none())
        function->result_span = reader.span(result);
    function->body = reader.block(get(parsed.definition, f.body));
    return {std::move(function), std::move(reader.locations)};
}

}  // namespace weft::frontend
