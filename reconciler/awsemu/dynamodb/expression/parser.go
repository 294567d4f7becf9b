package expression

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/reconciler/awsemu/dynamodb/attr"
)

// token is a word, a sign, a #name or a :value. It is empty at the end.
type token struct {
	text       string
	start, end int
}

// parser is the state of parsing an expression. It refuses an expression by a panic, which read recovers.
type parser struct {
	*Reader
	name, text string
	tokens     []token
	next       int
	operators  int
}

func (p *parser) refuse(format string, args ...any) {
	panic(refusal{attr.Invalid("Invalid "+p.name+": "+format, args...)})
}

func letter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func digit(c byte) bool { return c >= '0' && c <= '9' }

// wordLength returns the length of a text's prefix of letters, digits and _.
func wordLength(text string) int {
	for i := range len(text) {
		if c := text[i]; !letter(c) && !digit(c) && c != '_' {
			return i
		}
	}
	return len(text)
}

// split splits an expression into tokens. Any other character is a token of its own, which no rule accepts.
func split(text string) []token {
	var out []token
	for at := 0; at < len(text); {
		c, size := text[at], 1
		switch {
		case strings.IndexByte(" \t\r\n", c) >= 0:
			at++
			continue
		case letter(c) || digit(c):
			size = wordLength(text[at:])
		case c == '#' || c == ':':
			size += wordLength(text[at+1:])
		case strings.HasPrefix(text[at:], "<=") || strings.HasPrefix(text[at:], ">=") || strings.HasPrefix(text[at:], "<>"):
			size = 2
		}
		out = append(out, token{text[at : at+size], at, at + size})
		at += size
	}
	end := 0
	if len(out) > 0 {
		end = out[len(out)-1].end
	}
	return append(out, token{"", end, end})
}

func (p *parser) peek() string { return p.tokens[p.next].text }

// at reports whether the next token is one of texts, ignoring case.
func (p *parser) at(texts ...string) bool {
	return slices.ContainsFunc(texts, func(text string) bool { return strings.EqualFold(p.peek(), text) })
}

// consume returns the next token and advances past it. It never advances past the end.
func (p *parser) consume() string {
	text := p.peek()
	if text != "" {
		p.next++
	}
	return text
}

// accept consumes a token if it is the next one.
func (p *parser) accept(text string) bool {
	if !p.at(text) {
		return false
	}
	p.consume()
	return true
}

func (p *parser) expect(text string) {
	if !p.accept(text) {
		p.unexpected()
	}
}

// unexpected refuses the next token, and shows it with its neighbors.
func (p *parser) unexpected() {
	near, to := p.tokens[max(p.next-1, 0)].start, p.tokens[min(p.next+1, len(p.tokens)-1)].end
	text := p.peek()
	if text == "" {
		text = "<EOF>"
	}
	p.refuse("Syntax error; token: \"%s\", near: \"%s\"", text, p.text[near:to])
}

// count counts an operator or function towards the limit.
func (p *parser) count() {
	if p.operators++; p.operators > maxOperators {
		p.refuse("The expression contains more than %d operators and functions", maxOperators)
	}
}

// operand is a path, a value, or a function of operands.
type operand struct {
	path  Path
	value *attr.Value
	call  string
	args  []operand
}

// functions has the number of operands of each function.
var functions = map[string]int{
	"attribute_exists": 1, "attribute_not_exists": 1, "attribute_type": 2, "begins_with": 2, "contains": 2, "size": 1,
	"if_not_exists": 2, "list_append": 2,
}

// operand parses an operand. The user of a function checks it.
func (p *parser) operand() operand {
	text := p.peek()
	switch {
	case strings.HasPrefix(text, ":"):
		return operand{value: p.value()}
	case text != "" && letter(text[0]) && p.tokens[p.next+1].text == "(":
		return p.function()
	}
	return operand{path: p.path()}
}

func (p *parser) value() *attr.Value {
	key := p.peek()
	if len(key) < 2 || key[0] != ':' {
		p.unexpected()
	}
	p.consume()
	v, ok := p.values[key]
	if !ok {
		p.refuse("An expression attribute value used in expression is not defined; attribute value: %s", key)
	}
	p.used[key] = true
	return &v
}

func (p *parser) function() operand {
	name := p.consume()
	p.count()
	want, known := functions[name]
	if !known {
		p.refuse("Invalid function name; function: %s", name)
	}
	updates := name == "if_not_exists" || name == "list_append"
	if updates != (p.name == "UpdateExpression") {
		in := "a condition expression"
		if p.name == "UpdateExpression" {
			in = "an update expression"
		}
		p.refuse("The function is not allowed in %s; function: %s", in, name)
	}
	p.expect("(")
	out := operand{call: name, args: []operand{p.operand()}}
	for p.accept(",") {
		out.args = append(out.args, p.operand())
	}
	p.expect(")")
	if len(out.args) != want {
		p.refuse("Incorrect number of operands for operator or function; operator or function: %s, number of operands: %d", name, len(out.args))
	}
	return out
}

// path parses a document path: a.b[3].#c.
func (p *parser) path() Path {
	out := Path{{name: p.attribute()}}
	for {
		switch {
		case p.accept("."):
			out = append(out, step{name: p.attribute()})
		case p.accept("["):
			text := p.peek()
			index, err := strconv.Atoi(text)
			switch {
			case text == "" || wordLength(text) != len(text) || !digit(text[0]) || err != nil && !errors.Is(err, strconv.ErrRange):
				p.unexpected()
			case err != nil || index > math.MaxInt32:
				p.refuse("List index is not within the allowable range; index: [%s]", text)
			}
			p.consume()
			p.expect("]")
			out = append(out, step{index: index, list: true})
		case len(out) > attr.MaxDepth:
			p.refuse("The document path has too many nesting levels; nesting levels: %d", len(out))
		default:
			return out
		}
	}
}

// attribute parses the name of an attribute.
func (p *parser) attribute() string {
	text := p.peek()
	switch {
	case len(text) > 1 && text[0] == '#':
		p.consume()
		name, ok := p.names[text]
		if !ok {
			p.refuse("An expression attribute name used in the document path is not defined; attribute name: %s", text)
		}
		p.used[text] = true
		return name
	case text == "" || !letter(text[0]):
		p.unexpected()
	case reserved()[strings.ToUpper(text)]:
		p.refuse("Attribute name is a reserved keyword; reserved keyword: %s", text)
	}
	return p.consume()
}

// typed refuses an operand that is a value with none of the types.
func (p *parser) typed(function string, o operand, types ...string) {
	if o.value != nil && !slices.Contains(types, o.value.Type) {
		p.refuse("Incorrect operand type for operator or function; operator or function: %s, operand type: %s", function, o.value.Type)
	}
}

// distinct refuses a first operand that is repeated.
func (p *parser) distinct(operator string, args []operand) {
	for _, o := range args[1:] {
		if args[0].path != nil && o.path != nil && slices.Equal(args[0].path, o.path) {
			p.refuse("The first operand must be distinct from the remaining operands for this operator or function; operator: %s, first operand: %s", operator, o.path)
		}
	}
}
