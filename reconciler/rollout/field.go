package rollout

import (
	"cmp"
	"slices"
	"strings"
)

// A change is a set of fields. The cause of a stop is known to be in these fields, and in no other.
// So a later commit is free of the stop only if it sets one of them to another value. Other changes
// in the commit do not matter.

// Field is a value of a launch configuration. Each element of a list is a separate Field, so an
// added element changes no other.
type Field struct {
	// Key is the place of the value. All elements of a list have the same key.
	Key string `json:"key"`
	// Name is the manifest's name for it.
	Name string `json:"name"`
	// Mark identifies the value. It is a keyed hash, as any value may be secret.
	Mark string `json:"mark"`
	// Gone is set if the change removed the value.
	Gone bool `json:"gone,omitempty"`
	// Tag is set for a tag, which does not affect the behavior of a machine.
	Tag bool `json:"tag,omitempty"`
}

func (f Field) is(o Field) bool { return f.Key == o.Key && f.Mark == o.Mark }

// mostFields is the number of fields that are stored for a change. A longer change is identified by
// its first ones.
const mostFields = 40

// Difference lists the fields that a change sets and removes, tags last.
func Difference(from, to []Field) (out []Field) {
	add := func(of, without []Field, gone bool) {
		for _, f := range of {
			if f.Gone = gone; !slices.ContainsFunc(without, f.is) && !slices.ContainsFunc(out, f.is) {
				out = append(out, f)
			}
		}
	}
	add(to, from, false)
	add(from, to, true)
	return bounded(out)
}

// after returns the fields that two successive changes set together.
func after(first, second []Field) (out []Field) {
	out = slices.Clone(second)
	for _, f := range first {
		switch i := slices.IndexFunc(out, f.is); {
		case i < 0:
			out = append(out, f)
		case out[i].Gone != f.Gone: // the second undoes it
			out = slices.Delete(out, i, i+1)
		}
	}
	return bounded(out)
}

func bounded(list []Field) []Field {
	slices.SortFunc(list, func(a, b Field) int {
		return cmp.Or(compareBool(a.Tag, b.Tag), compareBool(a.Gone, b.Gone), strings.Compare(a.Key, b.Key), strings.Compare(a.Mark, b.Mark))
	})
	return list[:min(len(list), mostFields)]
}

// List is the suffix of the keys of list elements.
const List = "[]"

// Choices is the suffix of the keys of alternatives: each machine has one of the elements, such as
// an instance type. If a change that adds elements is stopped, the stop covers only these. It
// applies whenever one of them is used again, regardless of other elements in the list.
const Choices = "{}"

// beside reports whether a field is an alternative that a change removed while it added others.
func (f Field) beside(all []Field) bool {
	return f.Gone && strings.HasSuffix(f.Key, Choices) && slices.ContainsFunc(all, func(o Field) bool { return o.Key == f.Key && !o.Gone })
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// Decisive returns the fields that decide about the stop, which ends once one of them changes. Tags
// are among them only if the change set nothing else: a commit that increments a tag must not
// restart a stopped change.
func (b *Bad) Decisive() []Field {
	if i := slices.IndexFunc(b.Fields, func(f Field) bool { return f.Tag }); i > 0 {
		return b.Fields[:i]
	}
	return b.Fields
}

// In reports whether values contain everything that the stopped change set. A change without
// recorded fields is identified only by its hash.
func (b *Bad) In(values []Field) bool {
	fields := b.Decisive()
	return len(fields) > 0 && !slices.ContainsFunc(fields, func(f Field) bool { return !f.beside(fields) && slices.ContainsFunc(values, f.is) == f.Gone })
}

// Names returns the manifest's names of the decisive fields, shortened.
func (b *Bad) Names() string {
	const most = 4
	var names []string
	for _, f := range b.Decisive() {
		if !slices.Contains(names, f.Name) {
			names = append(names, f.Name)
		}
	}
	if more := len(names) - most; more > 0 {
		return strings.Join(names[:most], ", ") + " and " + itoa(more) + " more"
	}
	return strings.Join(names, ", ")
}

// Still returns the newest stopped change that the wanted configuration of a pool still contains,
// although its hash is a different one. It is nil for none.
func Still(stops []Bad, hash string, values func() []Field) *Bad {
	var known []Field
	if slices.ContainsFunc(stops, func(b Bad) bool { return b.Hash == hash }) {
		return nil // the hash itself was stopped
	}
	for i := range slices.Backward(stops) {
		b := &stops[i]
		if len(b.Fields) == 0 {
			continue
		}
		if known == nil {
			known = values()
		}
		if b.In(known) {
			return b
		}
	}
	return nil
}

// StillText explains that a later commit still contains the stopped change, and what ends the stop.
func (b *Bad) StillText() string { return b.text() + "; still in it: " + b.Names() }

// bad returns the stop that applies to the wanted configuration of a pool, nil for none. still is
// set if the stop is of an earlier commit whose change is still included.
func (r *Record) bad(p Pool) (b *Bad, still bool) {
	if b := r.BadOf(p.ID, p.Hash); b != nil || p.Still == "" {
		return b, false
	}
	b = r.BadOf(p.ID, p.Still)
	return b, b != nil
}

// Unproven is a change that a pool has started to run and that no run has completed. It may make
// later changes fail.
type Unproven struct {
	ID
	Hash   string  `json:"hash"`
	Fields []Field `json:"fields,omitempty"`
}

// unproven returns the changes, by pool, that machines may already run although the run has not
// ended.
func (r *Run) unproven() (out []Unproven) {
	if r.Began.IsZero() || !r.Ended.IsZero() {
		return nil
	}
	for _, m := range r.Members {
		if m.Granted > 0 {
			out = append(out, Unproven{m.ID, m.Hash, m.Change})
		}
	}
	for _, u := range r.Unproven {
		if !slices.ContainsFunc(out, func(o Unproven) bool { return o.ID == u.ID }) {
			out = append(out, u)
		}
	}
	return out
}

// changeOf returns the fields that the change of a pool sets, relative to the last version that was
// found good. The pool's machines may already run another change that was stopped, or that was
// superseded before it was proven.
func (n *next) changeOf(r *Run, p Pool) []Field {
	if p.Earlier == nil || p.Earlier.Hash == "" || len(p.Change) == 0 {
		return p.Change
	}
	if b := n.out.Record.BadOf(p.ID, p.Earlier.Hash); b != nil {
		return after(b.Fields, p.Change)
	}
	for _, u := range r.Unproven {
		if u.ID == p.ID && u.Hash == p.Earlier.Hash {
			return after(u.Fields, p.Change)
		}
	}
	return p.Change
}
