package awsemu

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"sort"
	"strconv"
	"strings"
	"time"
)

// maxParamDepth bounds the nesting of parameter names; AWS's deepest is nine.
const maxParamDepth = 16

// paramNode is a level of a form's parameter names, split at the dots.
type paramNode struct {
	kids  map[string]*paramNode
	value string
	set   bool // the node has a value of its own
	used  bool
}

// params reads a form's parameters as a tree and remembers what was read. Faults
// are kept: the first one is what [params.finish] returns, so parsing code reads
// straight on.
type params struct {
	node *paramNode
	path string
	top  *paramTop
}

// paramTop is shared by all levels of one form.
type paramTop struct {
	dialect dialect
	lists   string // "member" in the query protocol, "" in EC2's
	root    *paramNode
	err     *apiError
	pairs   url.Values
}

// parseForm builds the tree from a form body.
func parseForm(body string, ec2 bool, d dialect) (*params, error) {
	pairs, err := url.ParseQuery(body)
	if err != nil {
		return nil, d.malformed("The query string is malformed")
	}
	root := &paramNode{}
	for name, values := range pairs {
		if len(values) != 1 {
			return nil, d.malformed("The parameter " + name + " is given more than once")
		}
		if err := root.insert(name, values[0], d); err != nil {
			return nil, err
		}
	}
	top := &paramTop{dialect: d, lists: "member", root: root, pairs: pairs}
	if ec2 {
		top.lists = ""
	}
	return &params{node: root, top: top}, nil
}

func (n *paramNode) insert(name, value string, d dialect) error {
	if strings.Count(name, ".") >= maxParamDepth {
		return d.unknownParam(name)
	}
	at := n
	for _, part := range strings.Split(name, ".") {
		kid := at.kids[part]
		if kid == nil {
			kid = &paramNode{}
			if at.kids == nil {
				at.kids = map[string]*paramNode{}
			}
			at.kids[part] = kid
		}
		at = kid
	}
	at.value, at.set = value, true
	return nil
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

func (p *params) kid(name string) *paramNode { return p.node.kids[name] }

// has says whether the parameter, or anything below it, was sent.
func (p *params) has(name string) bool { return p.kid(name) != nil }

// optional returns a scalar, nil where it was not sent.
func (p *params) optional(name string) *string {
	k := p.kid(name)
	if k == nil || !k.set {
		return nil
	}
	k.used = true
	return &k.value
}

// text returns a scalar, "" where it was not sent.
func (p *params) text(name string) string {
	if v := p.optional(name); v != nil {
		return *v
	}
	return ""
}

// required returns a scalar that must be sent and not be empty.
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

// optionalFloat returns a number, nil where it was not sent.
func (p *params) optionalFloat(name string) *float64 {
	v := p.optional(name)
	if v == nil {
		return nil
	}
	n, err := strconv.ParseFloat(*v, 64)
	if err != nil || n != n || n > 1e300 || n < -1e300 {
		p.bad(name, *v, "Expected a number.")
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

// optionalTime returns a time, nil where it was not sent.
func (p *params) optionalTime(name string) *time.Time {
	v := p.optional(name)
	if v == nil {
		return nil
	}
	t, err := time.Parse(time.RFC3339Nano, *v)
	if err != nil {
		p.bad(name, *v, "Expected a timestamp in ISO 8601.")
		return nil
	}
	t = t.UTC()
	return &t
}

// oneOf returns a scalar that is one of allowed, "" where it was not sent.
func (p *params) oneOf(name string, allowed ...string) string {
	v := p.optional(name)
	if v == nil {
		return ""
	}
	for _, a := range allowed {
		if *v == a {
			return a
		}
	}
	p.bad(name, *v, "Member must satisfy enum value set: ["+strings.Join(allowed, ", ")+"]")
	return ""
}

// sub returns the structure of the given name, nil where nothing of it was sent.
func (p *params) sub(name string) *params {
	k := p.kid(name)
	if k == nil {
		return nil
	}
	if k.set && k.value == "" {
		k.used = true // an empty structure is sent as an empty value
	}
	return &params{node: k, path: p.name(name), top: p.top}
}

// list returns the structures of a list, in the order of their numbers: name.N
// in EC2's protocol, name.member.N in the query protocol. An empty list is sent
// as an empty value.
func (p *params) list(name string) []*params {
	var out []*params
	for _, it := range p.items(name) {
		if it.node.set && it.node.value == "" {
			it.node.used = true
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
		if !it.node.set {
			continue
		}
		it.node.used = true
		out = append(out, it.node.value)
	}
	return out
}

func (p *params) items(name string) []*params {
	k := p.kid(name)
	if k == nil {
		return nil
	}
	if k.set && k.value == "" && len(k.kids) == 0 {
		k.used = true
		return nil
	}
	path := p.name(name)
	if p.top.lists != "" {
		path += "." + p.top.lists
		if k = k.kids[p.top.lists]; k == nil {
			return nil
		}
	}
	type numbered struct {
		n    int
		node *params
	}
	var all []numbered
	for index, node := range k.kids {
		n, err := strconv.Atoi(index)
		if err != nil || n < 1 || strconv.Itoa(n) != index {
			continue // stays unread, so it is refused
		}
		all = append(all, numbered{n, &params{node: node, path: path + "." + index, top: p.top}})
	}
	sort.Slice(all, func(i, j int) bool { return all[i].n < all[j].n })
	out := make([]*params, len(all))
	for i := range all {
		out[i] = all[i].node
	}
	return out
}

// finish returns the first fault found while reading, or a fault for a parameter
// that nobody read.
func (p *params) finish() error {
	if name, found := p.top.root.unread(""); found {
		return p.top.dialect.unknownParam(name)
	}
	if p.top.err != nil {
		return p.top.err
	}
	return nil
}

// unread returns the first parameter, by name, that nobody read.
func (n *paramNode) unread(path string) (string, bool) {
	if n.set && !n.used {
		return path, true
	}
	names := make([]string, 0, len(n.kids))
	for name := range n.kids {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		full := name
		if path != "" {
			full = path + "." + name
		}
		if found, ok := n.kids[name].unread(full); ok {
			return found, true
		}
	}
	return "", false
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
