package field

import (
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/weir-gitops/weir/render/intent"
)

// Operations that send most members of a kind.
const (
	createGroup     = "CreateAutoScalingGroup"
	UpdateGroup     = "UpdateAutoScalingGroup"
	UpdateNodegroup = "UpdateNodegroupConfig"
)

// Member is a top-level member in AWS's requests and answers about a kind. Rows for parts of the same field form
// one member. It also has the member's place in a struct of settings. The same struct type serves for the
// settings in Git, in AWS and in requests. An absent member is not declared, not set, or not changed.
type Member struct {
	// AWS is AWS's name. Field is the manifest's field below spec that changes the member.
	AWS, Field string
	// OfPool is true if the pool's own object sets the member. If not, PoolOptions does.
	OfPool bool
	// Call is the API call that changes the member.
	Call string
	// Special is true if separate code compares or converts the member.
	Special bool
	// Replaces is true if a change replaces the resource that has the member.
	Replaces bool
	// Path is the path in requests and answers, with AWS's names.
	Path []string
	// Block describes how the member is changed as a whole. It is nil for a scalar member.
	Block   *Block
	index   []int
	normal  reflect.Value // if no manifest has the field
	missing reflect.Value // the value that AWS uses if it is absent
}

// GroupMembers returns the members of an Auto Scaling group, in intent.GroupSettings, in the order of the
// rows.
var GroupMembers = sync.OnceValue(func() []*Member { return membersOf[intent.GroupSettings](Group) })

// NodegroupMembers returns the members of a managed nodegroup, in intent.NodegroupSettings.
var NodegroupMembers = sync.OnceValue(func() []*Member {
	members := membersOf[intent.NodegroupSettings](Nodegroup)
	for _, m := range members {
		f := reflect.TypeFor[intent.NodegroupSettings]().FieldByIndex(m.index)
		if b, ok := nodegroupBlocks[f.Name]; ok {
			m.Block, m.Special = &b, false
			put(&m.missing, f.Type, nil, b.Absent)
		}
	}
	return members
})

// GroupMember returns GroupMembers by AWS name.
var GroupMember = sync.OnceValue(func() map[string]*Member { return byName(GroupMembers()) })

func byName(members []*Member) map[string]*Member {
	out := make(map[string]*Member, len(members))
	for _, m := range members {
		out[m.AWS] = m
	}
	return out
}

// Of returns the member's field in the struct that settings points to.
func (m *Member) Of(settings any) reflect.Value {
	return reflect.ValueOf(settings).Elem().FieldByIndex(m.index)
}

// OfCreation reports whether the call that creates the resource sends the member.
func (m *Member) OfCreation() bool {
	switch m.Call {
	case UpdateGroup, createGroup, "AttachTrafficSources":
		return true
	}
	return false
}

// IsDefault reports whether a value is empty or the default.
func (m *Member) IsDefault(v reflect.Value) bool {
	return v.IsZero() || m.normal.IsValid() && reflect.DeepEqual(v.Interface(), m.normal.Interface())
}

// Found returns the value in AWS. If it is absent, Found returns the value that AWS uses, except for a block
// with a switch.
func (m *Member) Found(v reflect.Value) reflect.Value {
	if v.IsZero() && m.missing.IsValid() && (m.Block == nil || m.Block.Switch == "") {
		return m.missing
	}
	return v
}

// Holds reports whether the value in AWS has all parts of the desired value. An absent value means AWS's
// default. If the default is unknown, any value matches an absent one.
func (m *Member) Holds(want, found reflect.Value) bool {
	return want.IsZero() || Holds(want, found, m.missing)
}

// Holds compares like Member.Holds. missing is the value that AWS uses for an absent one, or the zero Value
// if that is unknown.
func Holds(want, found, missing reflect.Value) bool {
	if missing.IsValid() && absent(found) {
		found = missing
	}
	if missing.IsValid() && absent(want) {
		want = missing
	}
	switch want.Kind() {
	case reflect.Pointer:
		if want.IsNil() || found.IsNil() {
			return want.IsNil()
		}
		if missing.IsValid() && !missing.IsNil() {
			return Holds(want.Elem(), found.Elem(), missing.Elem())
		}
		return Holds(want.Elem(), found.Elem(), reflect.Value{})
	case reflect.Struct:
		for i := range want.NumField() {
			below := missing
			if below.IsValid() {
				below = below.Field(i)
			}
			if !Holds(want.Field(i), found.Field(i), below) {
				return false
			}
		}
		return true
	case reflect.Slice:
		return want.IsNil() || want.Len() == 0 && found.Len() == 0 || reflect.DeepEqual(want.Interface(), found.Interface())
	case reflect.String:
		return want.String() == "" || want.String() == found.String()
	}
	return want.Equal(found)
}

// Complete returns a value with AWS's defaults for absent members. If the value means the same as an absent
// one, it returns the zero Value. So values with the same meaning are equal.
func (m *Member) Complete(v reflect.Value) reflect.Value {
	none := reflect.Zero(v.Type())
	switch {
	case v.IsZero() || m.missing.IsValid() && reflect.DeepEqual(v.Interface(), m.missing.Interface()):
		return none
	case m.Block == nil || m.Block.Form != Whole:
		return v
	case m.Block.Switch != "":
		if on := v.Elem().FieldByName(m.Block.Switch); on.IsNil() || !on.Elem().Bool() {
			return none
		}
	}
	out := reflect.New(v.Type().Elem())
	out.Elem().Set(v.Elem())
	for i := range out.Elem().NumField() {
		if f := out.Elem().Field(i); f.IsZero() {
			f.Set(m.missing.Elem().Field(i))
		}
	}
	if out.Elem().IsZero() {
		return none
	}
	return out
}

// absent reports whether a value is unset. Numbers and booleans are never absent, because their pointer was
// not nil.
func absent(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Bool, reflect.Int32:
		return false
	}
	return v.IsZero()
}

// membersOf returns one Member for each field of the struct T that rows of the kind describe, in the order of
// the rows. Rows for parts of the same field, such as X.A and X.B, form one Member with the defaults of all of
// them. The field may be in a struct below T.
func membersOf[T any](of Kind) []*Member {
	var out []*Member
	for _, r := range Rows(of) {
		name, path := elements(r.AWS)[0], elements(r.member())
		f := settingOf(reflect.TypeFor[T](), path[0])
		i := slices.IndexFunc(out, func(m *Member) bool { return slices.Equal(m.index, f.Index) })
		if i < 0 {
			i = len(out)
			m := &Member{AWS: name, OfPool: r.OfPool(), Call: r.Call(), Replaces: r.Replaces, index: f.Index, Field: section(of) + "." + Key(name)}
			// The path to the member itself, without the elements below it.
			m.Path = elements(r.AWS)
			m.Path = m.Path[:len(m.Path)-len(path)+1]
			if set := r.PoolFields(); len(set) > 0 && len(path) == 1 {
				m.Field = set[0]
			} else if len(set) > 0 {
				m.Field, _, _ = strings.Cut(strings.ReplaceAll(set[0], "[]", "."), ".")
			}
			out = append(out, m)
		}
		out[i].Special = out[i].Special || r.Special != ""
		put(&out[i].normal, f.Type, path[1:], r.Default)
		put(&out[i].missing, f.Type, path[1:], r.Absent)
	}
	return out
}

// settingOf returns the field with the given AWS name in a struct or in a struct below it.
func settingOf(t reflect.Type, name string) reflect.StructField {
	if i := memberIndex(t, name); i >= 0 {
		return t.Field(i)
	}
	for i := range t.NumField() {
		if outer := t.Field(i); outer.Type.Kind() == reflect.Struct {
			if j := memberIndex(outer.Type, name); j >= 0 {
				f := outer.Type.Field(j)
				f.Index = []int{i, j}
				return f
			}
		}
	}
	panic("field: " + t.String() + " has no member " + name)
}

// put sets the string at a path of a value of type t. It creates the value for the first string.
func put(v *reflect.Value, t reflect.Type, path []string, text string) {
	if text == "" {
		return
	}
	if !v.IsValid() {
		*v = reflect.New(t).Elem()
	}
	at := *v
	for {
		if at.Kind() == reflect.Pointer {
			if at.IsNil() {
				at.Set(reflect.New(at.Type().Elem()))
			}
			at = at.Elem()
		}
		if len(path) == 0 {
			break
		}
		at, path = at.Field(memberIndex(at.Type(), path[0])), path[1:]
	}
	if at.Kind() == reflect.String {
		text = strconv.Quote(text)
	}
	if err := json.Unmarshal([]byte(text), at.Addr().Interface()); err != nil {
		panic("field: " + text + ": " + err.Error())
	}
}
