package observe

import (
	"context"
	"maps"

	"golang.org/x/sync/errgroup"

	"github.com/weir-gitops/weir/reconciler/observed"
)

// ahead contains resources that are read before Observe needs them.
type ahead struct {
	owner string
	done  chan struct{}
	state observed.State
	err   error
}

// Ahead reads in advance what the first Observe will read for an owner, independent of Git. It is for
// commands that observe once. If it fails, Observe reads by itself.
func (o *Observer) Ahead(ctx context.Context, owner string) {
	a := &ahead{owner: owner, done: make(chan struct{})}
	o.mu.Lock()
	late := o.began
	if !late {
		o.ahead = a
	}
	o.mu.Unlock()
	if !late {
		defer close(a.done)
		a.err = o.list(ctx, observed.Query{Owner: owner, Groups: true, Templates: true}, &a.state)
	}
}

// owned returns the groups and templates of an owner: from the read ahead, from an earlier list with the
// moving set read again, or from a new list.
func (o *Observer) owned(ctx context.Context, q observed.Query, s *observed.State) error {
	o.mu.Lock()
	a := o.ahead
	o.ahead, o.began = nil, true
	o.mu.Unlock()
	switch {
	case a != nil && a.owner == q.Owner && q.Groups && q.Templates && a.read(ctx):
		s.Groups, s.Templates = a.state.Groups, a.state.Templates
		return nil
	case q.Moving != nil:
		return o.readMoving(ctx, q.Owner, q.Moving, s)
	default:
		return o.list(ctx, q, s)
	}
}

// read waits for the read ahead, and reports whether it succeeded.
func (a *ahead) read(ctx context.Context) bool {
	select {
	case <-a.done:
		return a.err == nil
	case <-ctx.Done():
		return false
	}
}

func (o *Observer) list(ctx context.Context, q observed.Query, s *observed.State) error {
	g, ctx := errgroup.WithContext(ctx)
	if q.Groups {
		g.Go(func() (err error) { s.Groups, err = o.reader.OwnedGroups(ctx, q.Owner); return err })
	}
	if q.Templates {
		g.Go(func() (err error) { s.Templates, err = o.reader.OwnedTemplates(ctx, q.Owner); return err })
	}
	return g.Wait()
}

func (o *Observer) readMoving(ctx context.Context, owner string, near *observed.MovingSet, s *observed.State) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		s.Groups, err = readAgain(ctx, near.Listed.Groups, near.Groups, o.reader.Groups, func(g observed.Group) bool { return g.Tags[observed.TagOwner].Value == owner })
		return err
	})
	g.Go(func() (err error) {
		s.Templates, err = readAgain(ctx, near.Listed.Templates, near.Templates, o.reader.Templates, func(t observed.Template) bool { return t.Tags[observed.TagOwner] == owner })
		return err
	})
	return g.Wait()
}

// readAgain returns known with some names read again. Like a list, it leaves out resources that are gone or have
// another owner by then.
func readAgain[T any](ctx context.Context, known map[string]T, names []string, read func(context.Context, ...string) (map[string]T, error), mine func(T) bool) (map[string]T, error) {
	out := maps.Clone(known)
	for _, name := range names {
		delete(out, name)
	}
	found, err := read(ctx, names...)
	maps.DeleteFunc(found, func(_ string, one T) bool { return !mine(one) })
	maps.Copy(out, found)
	return out, err
}
