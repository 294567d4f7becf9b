// Package expression reads and runs DynamoDB's expressions: conditions, filters, key
// conditions, updates and projections.
//
// A [Reader] has the names and values of one request and reads its expressions, all
// before the request does anything: so an expression that DynamoDB refuses has no
// effect. [Reader.Done] then refuses names and values that none of them used. The
// results are [Condition]s, [Update]s and [Projection]s, which hold their values and
// run on items. An update computes every operand from the item as it was, and shares
// what it does not change with it.
//
// Messages are those of AWS, after the expression's name: what its documentation does
// not tell is as its users report it.
package expression

import (
	_ "embed"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/weir-gitops/weir/reconciler/awsemu/dynamodb/attr"
)

// DynamoDB's limits of one expression.
const (
	maxSize      = 4096
	maxOperators = 300
)

//go:embed reserved.txt
var reservedWords string

// reserved are the words that no attribute may be called in an expression.
var reserved = sync.OnceValue(func() map[string]bool {
	out := map[string]bool{}
	for _, word := range strings.Fields(reservedWords) {
		out[word] = true
	}
	return out
})

// Reader reads the expressions of one request.
type Reader struct {
	names  map[string]string
	values attr.Item

	used map[string]bool // names and values
	read bool            // there was an expression
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

// Done refuses names and values that no expression used. of are the expressions that
// the request could have had.
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

// Condition reads a condition, which the request calls by a name such as
// FilterExpression; nil without one.
func (r *Reader) Condition(name string, text *string) (*Condition, error) {
	return read(r, name, text, func(p *parser) *Condition { return &Condition{p.condition()} })
}

// Update reads an UpdateExpression; nil without one.
func (r *Reader) Update(text *string) (*Update, error) {
	return read(r, "UpdateExpression", text, (*parser).update)
}

// Projection reads a ProjectionExpression; nil without one.
func (r *Reader) Projection(text *string) (*Projection, error) {
	return read(r, "ProjectionExpression", text, (*parser).projection)
}

// refusal is what ends the reading of an expression.
type refusal struct{ error }

// read reads an expression to its end.
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
