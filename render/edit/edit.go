// Package edit sets fields of rendered objects in the files that they come from. It finds the file and line
// to change, and changes as few bytes as possible, so that comments, order and quotes stay.
//
//	done, err := edit.Set(ctx, tree, places, []edit.Change{{Place: "prod", Object: ref, Field: path, Value: "ami-1"}})
//
// A Place is the directory of a target, with the options for rendering it. The caller passes all places of
// the source, because Set checks all places that a file affects. Image returns the object and field that pin
// the image of a pool.
//
// For each change Set tries, in this order:
//
//  1. the place that sets the field now: in the object, or in a patch (a file or
//     inline, a strategic merge or JSON 6902);
//  2. if nothing sets it, the object's own document;
//  3. an existing patch of the object in the kustomization of the place's directory;
//  4. a new inline patch at the end of that kustomization.
//
// A try counts only after a proof. Set renders every place that the file affects before and after the change.
// The objects must be equal, except that the wanted fields have the wanted values. So a base is changed only
// if all its users get the same change; otherwise the overlay gets a patch. If a kustomization that is not a
// Place includes a file, the file counts as shared too, because another instance of weir may apply that
// kustomization.
//
// If a variable sets the field, nothing is changed, because its value is in the configuration, not in the
// tree. If no try can be proven, the result has advice on what to write by hand. A caller that proposes the result
// must also plan it, because a render does not show all effects.
package edit

import (
	"context"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"

	"github.com/weir-gitops/weir/render"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/kust"
	"github.com/weir-gitops/weir/render/lazyregexp"
	"github.com/weir-gitops/weir/render/slot"
	"github.com/weir-gitops/weir/render/tree"
)

// Place is a path that is applied to a target.
type Place struct {
	// Name is the name of the target.
	Name string
	// Dir is the path of the target: a directory, or a single file of objects.
	Dir     string
	Options render.Options
}

// Change is a wanted value for a field of a rendered object.
type Change struct {
	// Place is the name of a Place.
	Place string
	// Object identifies the rendered object.
	Object intent.ObjectRef
	// Field is the path of the field in the rendered object, such as spec.awsLaunchTemplate.ami.id. It may
	// identify a list item by a text in it, as in hooks[name=drain].
	Field intent.Path
	// Value is a YAML value: a string, a number, a list or a mapping. Nil removes the field. A string must be
	// printable.
	Value any
}

// Placed is a fulfilled change.
type Placed struct {
	// Of is the index of the change.
	Of int
	Change
	// At is the position of the value after the change. For a removed field it has only the file. It is empty
	// if the field did not exist.
	At diag.Position
}

// Refused is a change that could not be made.
type Refused struct {
	Of int
	Change
	// Text has the reason and advice.
	Text string
	// Variable is the name of the variable that sets the field, or "".
	Variable string
}

// Result is the result of Set.
type Result struct {
	// Files has the new contents of the changed files, by path.
	Files   map[string][]byte
	Placed  []Placed
	Refused []Refused
	// Tree is the tree with the changed files.
	Tree tree.Tree
}

// Paths returns the paths of the changed files, in order.
func (r *Result) Paths() []string { return slices.Sorted(maps.Keys(r.Files)) }

// Image returns the field that pins a pool's image. ok is false for pools with a foreign launch template, and
// if EKS chooses the image.
func Image(p *intent.Pool) (object intent.ObjectRef, field intent.Path, ok bool) {
	if p.ForeignTemplate != nil || p.LaunchTemplate == nil || p.LaunchTemplate.Image == (intent.Lookup{}) {
		return object, nil, false
	}
	if l := p.LaunchConfig; l != nil {
		return l.Source, l.Spec().Join("ami", "id"), true
	}
	return p.Infrastructure, intent.Path{"spec", "awsLaunchTemplate", "ami", "id"}, true
}

// plainValue matches a text that needs no escaping between any quotes of YAML or JSON.
var plainValue = lazyregexp.New(`^[!#-&(-\[\]-~]+( [!#-&(-\[\]-~]+)*$`)

// Set finds the files that set the fields, and changes them to the wanted values. It returns an error only if
// the tree cannot be read, ctx ends, or the caller requests something impossible.
func Set(ctx context.Context, t tree.Tree, places []Place, changes []Change) (*Result, error) {
	changes = slices.Clone(changes)
	s := &setter{tree: t, files: map[string][]byte{}, places: places, renders: map[string]*render.Result{}, changes: changes, state: make([]state, len(changes))}
	for i, w := range changes {
		value, ok := normal(w.Value)
		if s.place(w.Place) == nil || !ok || len(w.Field) == 0 {
			return nil, fmt.Errorf("set %s of %s to %q: no such field, or no such value", w.Field, w.Object, w.Value)
		}
		changes[i].Value = value
	}
	for i := range changes {
		if s.state[i].done {
			continue
		}
		if err := s.fulfil(ctx, i); err != nil {
			return nil, err
		}
	}
	out := &Result{Files: s.files, Tree: s.now()}
	for i, w := range changes {
		if !s.state[i].done {
			out.Refused = append(out.Refused, Refused{i, w, s.state[i].why, s.state[i].variable})
			continue
		}
		r, err := s.render(ctx, s.now(), s.place(w.Place))
		if err != nil {
			return nil, err
		}
		at, known := r.Origin(w.Object, w.Field)
		if !known {
			at.File = s.state[i].file
		}
		out.Placed = append(out.Placed, Placed{i, w, at})
	}
	return out, nil
}

// setter is the state of one Set.
type setter struct {
	tree   tree.Tree
	files  map[string][]byte // the changes so far
	places []Place
	// renders caches renders of the tree with files, by place.
	renders map[string]*render.Result
	changes []Change
	state   []state
	users   *users // of files; nil until it is needed
}

type state struct {
	done          bool
	file          string // the file that was changed for it
	why, variable string
}

// change is a possible change of a file.
type change struct {
	path    string
	content []byte
}

func (s *setter) place(name string) *Place {
	if i := slices.IndexFunc(s.places, func(p Place) bool { return p.Name == name }); i >= 0 {
		return &s.places[i]
	}
	return nil
}

func (s *setter) now() tree.Tree { return changed{s.tree, s.files} }

func (s *setter) render(ctx context.Context, t tree.Tree, p *Place) (*render.Result, error) {
	o := p.Options
	o.For.Class = slot.Proposed
	return render.Render(ctx, t, p.Dir, o)
}

// before returns the render of a place with the changes so far.
func (s *setter) before(ctx context.Context, p *Place) (*render.Result, error) {
	if r := s.renders[p.Name]; r != nil {
		return r, nil
	}
	r, err := s.render(ctx, s.now(), p)
	if err == nil {
		s.renders[p.Name] = r
	}
	return r, err
}

// fulfil tries the possible edits for a change in order, and keeps the first one that is proven.
func (s *setter) fulfil(ctx context.Context, i int) error {
	w, st := s.changes[i], &s.state[i]
	p := s.place(w.Place)
	r, err := s.before(ctx, p)
	if err != nil {
		return err
	}
	if fault := faultOf(r); fault != "" {
		st.why = fmt.Sprintf("the target %s does not render: %s", w.Place, fault)
		return nil
	}
	object, ok := objectOf(r, w.Object)
	if !ok {
		st.why = fmt.Sprintf("%s is not among what the target %s renders", w.Object, w.Place)
		return nil
	}
	w.Field = positions(object, w.Field)
	s.changes[i].Field = w.Field
	if reflect.DeepEqual(valueAt(object, w.Field), w.Value) {
		st.done = true
		return nil
	}
	f := &finder{files: s.now(), render: r, change: w, dir: p.Dir}
	f.steps = r.Chain(render.Field{Source: render.Written, Object: w.Object, Manifest: w.Field})
	if name := f.variable(); name != "" {
		at := f.steps[len(f.steps)-1].Position
		st.variable = name
		st.why = fmt.Sprintf("the variable %s decides %s of %s, at %s: give it the value %s %s", name, w.Field, w.Object, at, flow(w.Value), p.Options.GiveValue)
		return nil
	}
	for _, try := range []func() []change{f.inPlace, f.inObject, f.inPatches, f.asPatch} {
		for _, c := range try() {
			why, err := s.prove(ctx, i, c)
			if err != nil {
				return err
			}
			if why == "" {
				return nil
			}
			if st.why == "" {
				st.why = why
			}
		}
	}
	where := "in a patch of " + p.Dir
	if at, ok := r.Origin(w.Object, w.Field); ok {
		where = "it is set at " + at.String()
	} else if at, ok := r.Origin(w.Object, intent.Path{"metadata", "name"}); ok {
		where = "the object is at " + at.String()
	}
	why := st.why
	st.why = fmt.Sprintf("write %s: %s into %s (%s)", w.Field, flow(w.Value), w.Object, where)
	if w.Value == nil {
		st.why = fmt.Sprintf("take %s out of %s (%s)", w.Field, w.Object, where)
	}
	if why != "" {
		st.why += "; weir does not, as " + why
	}
	return nil
}

// prove renders the places that a change affects, before and after it. It keeps the change if only wanted
// fields differ. Otherwise it returns the reason.
func (s *setter) prove(ctx context.Context, i int, c change) (why string, err error) {
	if s.users == nil {
		if s.users, err = usersOf(ctx, s.tree); err != nil {
			return "", err
		}
	}
	reached := s.users.reach(c.path)
	if at := s.users.otherKustomization(reached, s.places); at != "" {
		return fmt.Sprintf("%s is used by %s too, which is not a target of this weir", c.path, at), nil
	}
	files := maps.Clone(s.files)
	files[c.path] = c.content
	then := changed{s.tree, files}
	renders := map[string]*render.Result{}
	var done []int
	for k := range s.places {
		p := &s.places[k]
		if !reached[path.Clean(p.Dir)] && p.Name != s.changes[i].Place {
			continue
		}
		before, err := s.before(ctx, p)
		if err != nil {
			return "", err
		}
		after, err := s.render(ctx, then, p)
		if err != nil {
			return "", err
		}
		if faultOf(before) != "" {
			return fmt.Sprintf("the target %s uses %s too, and does not render", p.Name, c.path), nil
		}
		if fault := faultOf(after); fault != "" {
			return fmt.Sprintf("the target %s would no longer render if %s were changed: %s", p.Name, c.path, fault), nil
		}
		got, why := s.compare(p, before, after)
		if why != "" {
			return fmt.Sprintf("a change of %s would change more: %s", c.path, why), nil
		}
		done = append(done, got...)
		renders[p.Name] = after
	}
	if !slices.Contains(done, i) {
		return fmt.Sprintf("a change of %s has no effect", c.path), nil
	}
	s.files = files
	maps.Copy(s.renders, renders)
	for _, k := range done {
		s.state[k] = state{done: true, file: c.path}
	}
	return "", nil
}

func faultOf(r *render.Result) string {
	for _, d := range r.Diags {
		if d.Severity == diag.Error {
			return d.String()
		}
	}
	if r.Objects == nil {
		return "it gives no objects"
	}
	return ""
}

// variables matches the variables in a text before substitution.
var variables = lazyregexp.New(`(^|[^$])\$\{([A-Za-z_][A-Za-z0-9_]*)`)

// variable returns the name of the variable that sets the field, or "".
func (f *finder) variable() string {
	n := len(f.steps)
	if n < 2 || f.steps[n-1].How != kust.Variable || f.steps[n-2].Value == nil {
		return ""
	}
	if m := variables.FindStringSubmatch(*f.steps[n-2].Value); m != nil {
		return m[2]
	}
	return ""
}
