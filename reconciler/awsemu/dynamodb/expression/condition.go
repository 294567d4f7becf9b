package expression

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/weir-gitops/weir/reconciler/awsemu/dynamodb/attr"
)

// Condition is a condition on an item.
type Condition struct{ root *node }

// node is an operator or function of a condition, with its operands.
type node struct {
	op     string // AND, OR, NOT, a comparator, BETWEEN, IN, or a function
	kids   []*node
	args   []operand
	parens bool // it is in parentheses
}

var types = []string{"B", "NULL", "SS", "BOOL", "L", "BS", "N", "NS", "S", "M"}

func (p *parser) condition() *node {
	left := p.conjunction()
	for p.accept("OR") {
		p.count()
		left = &node{op: "OR", kids: []*node{left, p.conjunction()}}
	}
	return left
}

func (p *parser) conjunction() *node {
	left := p.negation()
	for p.accept("AND") {
		p.count()
		left = &node{op: "AND", kids: []*node{left, p.negation()}}
	}
	return left
}

func (p *parser) negation() *node {
	if p.accept("NOT") {
		p.count()
		return &node{op: "NOT", kids: []*node{p.negation()}}
	}
	if p.accept("(") {
		inner := p.condition()
		p.expect(")")
		if inner.parens {
			p.refuse("The expression has redundant parentheses;")
		}
		inner.parens = true
		return inner
	}
	return p.comparison()
}

// comparison parses a comparison, or a function that is a condition by itself.
func (p *parser) comparison() *node {
	left := p.operand()
	switch {
	case p.at("=", "<>", "<", "<=", ">", ">="):
		n := &node{op: p.consume(), args: []operand{left, p.operand()}}
		p.compared(n)
		return n
	case p.accept("BETWEEN"):
		low := p.operand()
		p.expect("AND")
		n := &node{op: "BETWEEN", args: []operand{left, low, p.operand()}}
		p.compared(n)
		p.bounds(n.args[1].value, n.args[2].value)
		return n
	case p.accept("IN"):
		n := &node{op: "IN", args: []operand{left}}
		p.expect("(")
		for more := true; more; more = p.accept(",") {
			n.args = append(n.args, p.operand())
		}
		p.expect(")")
		if len(n.args) > 101 {
			p.refuse("The IN operator is provided with too many operands; number of operands: %d", len(n.args)-1)
		}
		p.compared(n)
		return n
	case left.call == "":
		p.unexpected()
	case left.call == "size":
		p.misused("size")
	}
	return p.predicate(left)
}

func (p *parser) misused(function string) {
	p.refuse("The function is not allowed to be used this way in an expression; function: %s", function)
}

// compared checks the operands of a comparison.
func (p *parser) compared(n *node) {
	p.count()
	for _, o := range n.args {
		p.scalar(o)
		if n.op != "=" && n.op != "<>" && n.op != "IN" {
			p.typed(n.op, o, "S", "N", "B")
		}
	}
	p.distinct(n.op, n.args)
}

// scalar checks an operand that must not be a condition. The only such function is size.
func (p *parser) scalar(o operand) {
	switch {
	case o.call == "":
	case o.call != "size":
		p.misused(o.call)
	default:
		if p.scalar(o.args[0]); o.args[0].call != "" {
			o.args[0] = operand{value: &attr.Value{Type: "N"}} // like the result of size
		}
		p.typed("size", o.args[0], "S", "B", "SS", "NS", "BS", "L", "M")
	}
}

func (p *parser) bounds(low, high *attr.Value) {
	if low == nil || high == nil {
		return
	}
	order, same := low.Compare(*high)
	const shown = "lower bound operand: %s, upper bound operand: %s"
	switch {
	case !same:
		p.refuse("The BETWEEN operator requires same data type for lower and upper bounds; "+shown, low, high)
	case order > 0:
		p.refuse("The BETWEEN operator requires upper bound to be greater than or equal to lower bound; "+shown, low, high)
	}
}

// predicate checks a function that is a condition.
func (p *parser) predicate(o operand) *node {
	for _, arg := range o.args {
		p.scalar(arg)
	}
	switch o.call {
	case "attribute_exists", "attribute_not_exists":
		if o.args[0].path == nil {
			p.refuse("Operator or function requires a document path; operator or function: %s", o.call)
		}
	case "attribute_type":
		kind := o.args[1].value
		if kind == nil {
			p.misused(o.call)
		}
		p.typed(o.call, o.args[1], "S")
		if !slices.Contains(types, kind.Text) {
			p.refuse("Invalid attribute type name found; type: %s, valid types: {%s}", kind.Text, strings.Join(types, ","))
		}
	case "begins_with":
		p.typed(o.call, o.args[0], "S", "B")
		p.typed(o.call, o.args[1], "S", "B")
	}
	p.distinct(o.call, o.args)
	return &node{op: o.call, args: o.args}
}

// Holds reports whether an item meets the condition. Every item meets nil. An item that does not exist has
// no attributes.
func (c *Condition) Holds(item attr.Item) bool { return c == nil || c.root.evaluate(item) }

// Each calls f for each attribute in the condition.
func (c *Condition) Each(f func(attribute string)) {
	if c != nil {
		c.root.each(f)
	}
}

func (n *node) each(f func(string)) {
	for _, kid := range n.kids {
		kid.each(f)
	}
	eachOf(n.args, f)
}

func eachOf(args []operand, f func(string)) {
	for _, o := range args {
		if o.path != nil {
			f(o.path.Attribute())
		}
		eachOf(o.args, f)
	}
}

func (n *node) evaluate(item attr.Item) bool {
	switch n.op {
	case "AND":
		return n.kids[0].evaluate(item) && n.kids[1].evaluate(item)
	case "OR":
		return n.kids[0].evaluate(item) || n.kids[1].evaluate(item)
	case "NOT":
		return !n.kids[0].evaluate(item)
	}
	first, ok := n.args[0].of(item)
	switch n.op {
	case "attribute_exists":
		return ok
	case "attribute_not_exists":
		return !ok
	case "BETWEEN":
		return n.ordered(item, ">=", 1) && n.ordered(item, "<=", 2)
	case "IN":
		return ok && slices.ContainsFunc(n.args[1:], func(o operand) bool {
			v, ok := o.of(item)
			return ok && v.Equal(first)
		})
	}
	second, both := n.args[1].of(item)
	both = both && ok
	switch n.op {
	case "=":
		return both && first.Equal(second)
	case "<>":
		return !both || !first.Equal(second)
	case "attribute_type":
		return both && first.Type == second.Text
	case "begins_with":
		return both && first.Type == second.Type && (first.Type == "S" || first.Type == "B") && strings.HasPrefix(first.Text, second.Text)
	case "contains":
		return both && contains(first, second)
	}
	return n.ordered(item, n.op, 1)
}

// ordered compares the first operand with another one.
func (n *node) ordered(item attr.Item, op string, with int) bool {
	a, okA := n.args[0].of(item)
	b, okB := n.args[with].of(item)
	order, comparable := a.Compare(b)
	if !okA || !okB || !comparable {
		return false
	}
	switch op {
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	}
	return order >= 0
}

func contains(v, part attr.Value) bool {
	switch v.Type {
	case "S", "B":
		return v.Type == part.Type && strings.Contains(v.Text, part.Text)
	}
	return v.Has(part)
}

// of returns the operand's value for an item, and whether it has one. It does not support functions of
// updates.
func (o operand) of(item attr.Item) (attr.Value, bool) {
	switch {
	case o.value != nil:
		return *o.value, true
	case o.path != nil:
		return o.path.in(item)
	}
	v, ok := o.args[0].of(item)
	size := len(v.List) + len(v.Map)
	switch v.Type {
	case "S":
		size = utf8.RuneCountInString(v.Text)
	case "B":
		size = len(v.Text)
	case "N", "BOOL", "NULL":
		ok = false
	}
	return attr.Value{Type: "N", Number: attr.Integer(int64(size))}, ok
}
