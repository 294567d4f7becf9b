package rollout

import (
	"cmp"
	"slices"
	"strings"
)

// A change is the fields that it set. What stopped a change is known to be in them, and in nothing else: so a later
// commit is free of the stop only if it sets one of them to something else. Whatever it changes beside them leaves
// what was stopped in it.

// Field is a value of a launch configuration. Each element of a list is a Field of its own, so an
// added element changes no other.
type Field struct {
	// Key is the place of the value. Elements of a list have one key.
	Key string `json:"key"`
	// Name is the manifest's name for it.
	Name string `json:"name"`
	// Mark identifies the value. It is keyed, as any value may be secret.
	Mark string `json:"mark"`
	// Gone says that the change took the value away.
	Gone bool `json:"gone,omitempty"`
	// Tag says that it is a tag, which changes nothing of what a machine does.
	Tag bool `json:"tag,omitempty"`
}

func (f Field) is(o Field) bool { return f.Key == o.Key && f.Mark == o.Mark }

// mostFields is the number of a change's fields to keep. A longer change is recognised by the first
// ones.
const mostFields = 40

// Difference lists what a change from some values to others sets and takes away, tags last.
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

// after returns what two successive changes set together.
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

// List ends the keys of elements of lists.
const List = "[]"

// Choices ends the keys of alternatives: each machine has one of the elements, such as an instance
// type. If a change that adds some is stopped, the stop covers only the added ones: it applies as
// soon as they are used again, whatever other elements the list has.
const Choices = "{}"

// beside reports whether a field is a choice that a change took away where it added others.
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

// Decisive returns the fields that decide about the stop: it ends once one of them changes. Tags
// are among them only if the change set nothing else: a commit that counts up a tag must not
// restart a stopped change.
func (b *Bad) Decisive() []Field {
	if i := slices.IndexFunc(b.Fields, func(f Field) bool { return f.Tag }); i > 0 {
		return b.Fields[:i]
	}
	return b.Fields
}

// In reports whether values contain all that the stopped change set. A change without recorded
// fields is identified by its hash alone.
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

// Still names the stopped change, by its hash, that what a pool wants now still holds though its own hash is another.
func Still(stops []Bad, hash string, values func() []Field) *Bad {
	var known []Field
	if slices.ContainsFunc(stops, func(b Bad) bool { return b.Hash == hash }) {
		return nil // it is that one itself
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

// StillText says that a later commit leaves the stopped change in, and what ends that.
func (b *Bad) StillText() string { return b.text() + "; still in it: " + b.Names() }

// bad returns the stop that holds what a pool wants now; nil for none. still says that the stop is
// of an earlier commit whose stopped change is still included.
func (r *Record) bad(p Pool) (b *Bad, still bool) {
	if b := r.BadOf(p.ID, p.Hash); b != nil || p.Still == "" {
		return b, false
	}
	b = r.BadOf(p.ID, p.Still)
	return b, b != nil
}

// Unproven is a change that a pool has begun to run and that no run has brought to its end: what comes after it may
// fail of it.
type Unproven struct {
	ID
	Hash   string  `json:"hash"`
	Fields []Field `json:"fields,omitempty"`
}

// unproven returns the changes that machines may run already, by pool, though the run has not
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

// changeOf returns what the change of a pool sets, relative to what was last found good. The pool's
// machines may already run another change that was stopped, or that was superseded before it was
// proven.
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
