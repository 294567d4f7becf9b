package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/reconciler/awsemu/model"
)

// Params reads a form's parameters as a tree and remembers what was read. Faults
// are kept: the first one is what [params.finish] returns, so parsing code reads
// straight on.
type Params struct {
	node  *model.Form
	Shape *model.Shape // of the node; nil where only the form says what there is
	path  string
	top   *paramTop
}

// paramTop is shared by all levels of one form.
type paramTop struct {
	svc     *model.Service
	dialect Dialect
	root    *model.Form
	err     *Error
	pairs   url.Values
}

// ParseForm builds the tree from a form body.
func ParseForm(body string, sv *model.Service, d Dialect) (*Params, error) {
	root, pairs, err := model.ParseForm(body)
	if err != nil {
		return nil, d.malformed(err.Error())
	}
	return &Params{node: root, top: &paramTop{svc: sv, dialect: d, root: root, pairs: pairs}}, nil
}

// Alphanumeric are the letters and digits of AWS's names.
const Alphanumeric = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

// ConsistsOf says whether every character of s is one of allowed, which are ASCII.
func ConsistsOf(s, allowed string) bool {
	for i := 0; i < len(s); i++ {
		if strings.IndexByte(allowed, s[i]) < 0 {
			return false
		}
	}
	return true
}

func (p *Params) name(name string) string {
	if p.path == "" {
		return name
	}
	return p.path + "." + name
}

// Reject records a fault; the first one is answered.
func (p *Params) Reject(err *Error) {
	if p.top.err == nil {
		p.top.err = err
	}
}

// Bad records that a parameter's value is refused, and why.
func (p *Params) Bad(name, value, why string) {
	p.Reject(p.top.dialect.BadParam(p.name(name), value, why))
}

func (p *Params) kid(name string) *model.Form { return p.node.Kids[name] }

// Has says whether the parameter, or anything below it, was sent.
func (p *Params) Has(name string) bool { return p.kid(name) != nil }

// Optional returns a scalar, nil where it was not sent.
func (p *Params) Optional(name string) *string {
	k := p.kid(name)
	if k == nil || !k.Set {
		return nil
	}
	k.Read = true
	return &k.Value
}

// Text returns a scalar, "" where it was not sent.
func (p *Params) Text(name string) string {
	if v := p.Optional(name); v != nil {
		return *v
	}
	return ""
}

// Required returns a scalar that must be sent and not be empty, where the model
// does not say so.
func (p *Params) Required(name string) string {
	v := p.Text(name)
	if v == "" {
		p.Reject(p.top.dialect.MissingParam(p.name(name)))
	}
	return v
}

// OptionalInt returns an integer, nil where it was not sent.
func (p *Params) OptionalInt(name string) *int64 {
	v := p.Optional(name)
	if v == nil {
		return nil
	}
	n, err := strconv.ParseInt(*v, 10, 64)
	if err != nil {
		p.Bad(name, *v, "Expected an integer.")
		return nil
	}
	return &n
}

// OptionalBool returns a boolean, nil where it was not sent.
func (p *Params) OptionalBool(name string) *bool {
	v := p.Optional(name)
	if v == nil {
		return nil
	}
	// Python's clients write True and False in forms made by hand.
	b := strings.EqualFold(*v, "true")
	if !b && !strings.EqualFold(*v, "false") {
		p.Bad(name, *v, "Expected a boolean.")
		return nil
	}
	return &b
}

// Boolean returns a boolean, false where it was not sent.
func (p *Params) Boolean(name string) bool {
	b := p.OptionalBool(name)
	return b != nil && *b
}

// OneOf returns a scalar of which AWS takes some values alone, though its model
// takes any; "" where it was not sent.
func (p *Params) OneOf(name string, allowed ...string) string {
	v := p.Optional(name)
	if v == nil {
		return ""
	}
	if !slices.Contains(allowed, *v) {
		p.Bad(name, *v, "Member must satisfy enum value set: ["+strings.Join(allowed, ", ")+"]")
	}
	return *v
}

// Sub returns the structure of the given name, nil where nothing of it was sent.
func (p *Params) Sub(name string) *Params {
	k := p.kid(name)
	if k == nil {
		return nil
	}
	if k.Set && k.Value == "" {
		k.Read = true // an empty structure is sent as an empty value
	}
	return &Params{node: k, Shape: p.Shape.At(p.top.svc, name), path: p.name(name), top: p.top}
}

// List returns the structures of a list, in the order of their numbers: name.N
// in EC2's protocol, name.member.N in the query protocol. An empty list is sent
// as an empty value.
func (p *Params) List(name string) []*Params {
	var out []*Params
	for _, it := range p.items(name) {
		if it.node.Set && it.node.Value == "" {
			it.node.Read = true
		}
		out = append(out, it)
	}
	return out
}

// Strings returns the scalars of a list. Both an absent and an empty list are
// empty: use has to tell them apart.
func (p *Params) Strings(name string) []string {
	var out []string
	for _, it := range p.items(name) {
		if !it.node.Set {
			continue
		}
		it.node.Read = true
		out = append(out, it.node.Value)
	}
	return out
}

func (p *Params) items(name string) []*Params {
	k := p.kid(name)
	if k == nil {
		return nil
	}
	if k.Set && k.Value == "" && len(k.Kids) == 0 {
		k.Read = true
		return nil
	}
	path := p.name(name)
	if p.top.svc.Protocol != "ec2" {
		path += ".member"
		if k = k.Kids["member"]; k == nil {
			return nil
		}
	}
	shape := p.Shape.At(p.top.svc, name).Items()
	var out []*Params
	for _, n := range k.Numbered() {
		out = append(out, &Params{node: k.Kids[n], Shape: shape, path: path + "." + n, top: p.top})
	}
	return out
}

// Data reads a structure with all its members, as answers have them; nil where it
// was not sent.
func (p *Params) Data(name string) Data {
	k := p.kid(name)
	if k == nil {
		return nil
	}
	k.ReadAll()
	v, _ := p.top.svc.Decode(k, p.Shape.At(p.top.svc, name))
	m, _ := v.(map[string]any)
	return m
}

// finish returns the first fault found while reading, or a fault for a parameter
// that nobody read: AWS has it, and the emulator does not.
func (p *Params) finish() error {
	if name, found := p.top.root.Unread(""); found {
		return p.top.dialect.unknownParam(name)
	}
	if p.top.err != nil {
		return p.top.err
	}
	return nil
}

// digest identifies what a form asks for, without its client token.
func (p *Params) digest() string {
	names := make([]string, 0, len(p.top.pairs))
	for name := range p.top.pairs {
		if name != "ClientToken" && name != "Version" {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	h := sha256.New()
	for _, name := range names {
		writeField(h, name)
		writeField(h, p.top.pairs.Get(name))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Mentions says whether a parameter holds a text.
func (p *Params) Mentions(text string) bool {
	for _, values := range p.top.pairs {
		if strings.Contains(values[0], text) {
			return true
		}
	}
	return false
}
