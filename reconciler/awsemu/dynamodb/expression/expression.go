// Package expression parses and evaluates DynamoDB's expressions: conditions, filters, key conditions,
// updates and projections.
//
// A [Reader] has the names and values of one request. It parses all expressions before the request does
// anything, so an invalid expression has no effect. [Reader.Done] then refuses unused names and values. The
// results are [Condition]s, [Update]s and [Projection]s, which contain their values and are applied to
// items. An update computes every operand from the original item, and shares unchanged parts with it.
//
// Messages are AWS's, after the expression's name. If AWS does not document a message, users' reports are
// the source.
package expression

import (
	_ "embed"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/weir-gitops/weir/reconciler/awsemu/dynamodb/attr"
)

// The limits of one expression in DynamoDB.
const (
	maxSize      = 4096
	maxOperators = 300
)

//go:embed reserved.txt
var reservedWords string

// reserved returns the words that must not be attribute names in an expression.
var reserved = sync.OnceValue(func() map[string]bool {
	out := map[string]bool{}
	for _, word := range strings.Fields(reservedWords) {
		out[word] = true
	}
	return out
})

// Reader parses the expressions of one request.
type Reader struct {
	names  map[string]string
	values attr.Item

	used map[string]bool // names and values
	read bool            // an expression was parsed
}

// NewReader returns a reader for expressions with names (#name) and values (:value).
func NewReader(names map[string]string, values attr.Item) (*Reader, error) {
	for kind, keys := range map[string][]string{"Names": slices.Sorted(maps.Keys(names)), "Values": slices.Sorted(maps.Keys(values))} {
		prefix := map[string]byte{"Names": '#', "Values": ':'}[kind]
		for _, key := range keys {
			if len(key) < 2 || key[0] != prefix || wordLength(key[1:]) != len(key)-1 {
				return nil, attr.Invalid("ExpressionAttribute%s contains invalid key: Syntax error; key: %q", kind, key)
			}
		}
	}
	switch {
	case names != nil && len(names) == 0:
		return nil, attr.Invalid("ExpressionAttributeNames must not be empty")
	case values != nil && len(values) == 0:
		return nil, attr.Invalid("ExpressionAttributeValues must not be empty")
	}
	return &Reader{names: names, values: values, used: map[string]bool{}}, nil
}

// Done refuses unused names and values. of lists the expressions that the request may have.
func (r *Reader) Done(of ...string) error {
	if !r.read {
		switch {
		case r.names != nil:
			return attr.Invalid("ExpressionAttributeNames can only be specified when using expressions")
		case r.values != nil:
			are := " are null"
			if len(of) == 1 {
				are = " is null"
			}
			return attr.Invalid("ExpressionAttributeValues can only be specified when using expressions: %s", strings.Join(of, " and ")+are)
		}
	}
	if unused := r.unused(slices.Sorted(maps.Keys(r.names))); unused != "" {
		return attr.Invalid("Value provided in ExpressionAttributeNames unused in expressions: keys: {%s}", unused)
	}
	if unused := r.unused(slices.Sorted(maps.Keys(r.values))); unused != "" {
		return attr.Invalid("Value provided in ExpressionAttributeValues unused in expressions: keys: {%s}", unused)
	}
	return nil
}

func (r *Reader) unused(keys []string) string {
	return strings.Join(slices.DeleteFunc(keys, func(key string) bool { return r.used[key] }), ", ")
}

// Condition parses a condition. name is the member of the request, such as FilterExpression. The result is
// nil without a text.
func (r *Reader) Condition(name string, text *string) (*Condition, error) {
	return read(r, name, text, func(p *parser) *Condition { return &Condition{p.condition()} })
}

// Update parses an UpdateExpression. The result is nil without a text.
func (r *Reader) Update(text *string) (*Update, error) {
	return read(r, "UpdateExpression", text, (*parser).update)
}

// Projection parses a ProjectionExpression. The result is nil without a text.
func (r *Reader) Projection(text *string) (*Projection, error) {
	return read(r, "ProjectionExpression", text, (*parser).projection)
}

// refusal is the error that ends parsing.
type refusal struct{ error }

// read parses an expression to its end.
func read[E any](r *Reader, name string, text *string, rule func(p *parser) *E) (out *E, err error) {
	if text == nil {
		return nil, nil
	}
	r.read = true
	p := &parser{Reader: r, name: name, text: *text}
	defer func() {
		switch why := recover().(type) {
		case nil:
		case refusal:
			out, err = nil, why.error
		default:
			panic(why)
		}
	}()
	if len(p.text) > maxSize {
		p.refuse("Expression size has exceeded the maximum allowed size; expression size: %d", len(p.text))
	}
	p.tokens = split(p.text)
	if len(p.tokens) == 1 {
		p.refuse("The expression can not be empty;")
	}
	out = rule(p)
	if !p.at("") {
		p.unexpected()
	}
	return out, nil
}
