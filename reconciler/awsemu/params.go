package awsemu

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"sort"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/reconciler/awsemu/model"
)

// params reads a form's parameters as a tree and remembers what was read. Faults
// are kept: the first one is what [params.finish] returns, so parsing code reads
// straight on.
type params struct {
	node  *model.Form
	shape *model.Shape // of the node; nil where only the form says what there is
	path  string
	top   *paramTop
}

// paramTop is shared by all levels of one form.
type paramTop struct {
	svc     *model.Service
	dialect dialect
	root    *model.Form
	err     *apiError
	pairs   url.Values
}

// parseForm builds the tree from a form body.
func parseForm(body string, sv *model.Service, d dialect) (*params, error) {
	root, pairs, err := model.ParseForm(body)
	if err != nil {
		return nil, d.malformed(err.Error())
	}
	return &params{node: root, top: &paramTop{svc: sv, dialect: d, root: root, pairs: pairs}}, nil
}

// alphanumeric are the letters and digits of AWS's names.
const alphanumeric = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

// consistsOf says whether every character of s is one of allowed, which are ASCII.
func consistsOf(s, allowed string) bool {
	for i := 0; i < len(s); i++ {
		if strings.IndexByte(allowed, s[i]) < 0 {
			return false
		}
	}
	return true
}

func (p *params) name(name string) string {
	if p.path == "" {
		return name
	}
	return p.path + "." + name
}

// reject records a fault; the first one is answered.
func (p *params) reject(err *apiError) {
	if p.top.err == nil {
		p.top.err = err
	}
}

// bad records that a parameter's value is refused, and why.
func (p *params) bad(name, value, why string) {
	p.reject(p.top.dialect.badParam(p.name(name), value, why))
}

func (p *params) kid(name string) *model.Form { return p.node.Kids[name] }

// has says whether the parameter, or anything below it, was sent.
func (p *params) has(name string) bool { return p.kid(name) != nil }

// optional returns a scalar, nil where it was not sent.
func (p *params) optional(name string) *string {
	k := p.kid(name)
	if k == nil || !k.Set {
		return nil
	}
	k.Read = true
	return &k.Value
}

// text returns a scalar, "" where it was not sent.
func (p *params) text(name string) string {
	if v := p.optional(name); v != nil {
		return *v
	}
	return ""
}

// required returns a scalar that must be sent and not be empty, where the model
// does not say so.
func (p *params) required(name string) string {
	v := p.text(name)
	if v == "" {
		p.reject(p.top.dialect.missingParam(p.name(name)))
	}
	return v
}

// optionalInt returns an integer, nil where it was not sent.
func (p *params) optionalInt(name string) *int64 {
	v := p.optional(name)
	if v == nil {
		return nil
	}
	n, err := strconv.ParseInt(*v, 10, 64)
	if err != nil {
		p.bad(name, *v, "Expected an integer.")
		return nil
	}
	return &n
}

// optionalBool returns a boolean, nil where it was not sent.
func (p *params) optionalBool(name string) *bool {
	v := p.optional(name)
	if v == nil {
		return nil
	}
	// Python's clients write True and False in forms made by hand.
	b := strings.EqualFold(*v, "true")
	if !b && !strings.EqualFold(*v, "false") {
		p.bad(name, *v, "Expected a boolean.")
		return nil
	}
	return &b
}

// boolean returns a boolean, false where it was not sent.
func (p *params) boolean(name string) bool {
	b := p.optionalBool(name)
	return b != nil && *b
}

// oneOf returns a scalar of which AWS takes some values alone, though its model
// takes any; "" where it was not sent.
func (p *params) oneOf(name string, allowed ...string) string {
	v := p.optional(name)
	if v == nil {
		return ""
	}
	if !contains(allowed, *v) {
		p.bad(name, *v, "Member must satisfy enum value set: ["+strings.Join(allowed, ", ")+"]")
	}
	return *v
}

// sub returns the structure of the given name, nil where nothing of it was sent.
func (p *params) sub(name string) *params {
	k := p.kid(name)
	if k == nil {
		return nil
	}
	if k.Set && k.Value == "" {
		k.Read = true // an empty structure is sent as an empty value
	}
	return &params{node: k, shape: p.shape.At(p.top.svc, name), path: p.name(name), top: p.top}
}

// list returns the structures of a list, in the order of their numbers: name.N
// in EC2's protocol, name.member.N in the query protocol. An empty list is sent
// as an empty value.
func (p *params) list(name string) []*params {
	var out []*params
	for _, it := range p.items(name) {
		if it.node.Set && it.node.Value == "" {
			it.node.Read = true
		}
		out = append(out, it)
	}
	return out
}

// strings returns the scalars of a list. Both an absent and an empty list are
// empty: use has to tell them apart.
func (p *params) strings(name string) []string {
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

func (p *params) items(name string) []*params {
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
	shape := p.shape.At(p.top.svc, name).Items()
	var out []*params
	for _, n := range k.Numbered() {
		out = append(out, &params{node: k.Kids[n], shape: shape, path: path + "." + n, top: p.top})
	}
	return out
}

// data reads a structure with all its members, as answers have them; nil where it
// was not sent.
func (p *params) data(name string) ltData {
	k := p.kid(name)
	if k == nil {
		return nil
	}
	k.ReadAll()
	v, _ := p.top.svc.Decode(k, p.shape.At(p.top.svc, name))
	m, _ := v.(map[string]any)
	return m
}

// finish returns the first fault found while reading, or a fault for a parameter
// that nobody read: AWS has it, and the emulator does not.
func (p *params) finish() error {
	if name, found := p.top.root.Unread(""); found {
		return p.top.dialect.unknownParam(name)
	}
	if p.top.err != nil {
		return p.top.err
	}
	return nil
}

// digest identifies what a form asks for, without its client token.
func (p *params) digest() string {
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
