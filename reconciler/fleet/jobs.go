package fleet

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// forLong is the time after which weir applies a target's last build although newer commits are still being
// rendered.
const forLong = 10 * time.Minute

// job renders a copy of an item in the background.
type job struct {
	item  item
	had   int // the number of diagnostics before the render
	since time.Time
	err   error
	done  chan struct{}
}

func (j *job) ended() bool {
	select {
	case <-j.done:
		return true
	default:
		return false
	}
}

// Rendering is a target whose newest commit is still being rendered.
type Rendering struct {
	Target, Source, Revision string
	Since                    time.Time
	// Blank says that there is no earlier build to show for the target.
	Blank bool
}

// start renders an item in the background, so that a slow render delays only its own target. Package render
// bounds the number of parallel renders, and lets small ones pass large ones.
func (f *Fleet) start(ctx context.Context, it *item) *job {
	j := &job{item: *it, had: len(it.diags), since: time.Now(), done: make(chan struct{})}
	own := *it.render
	j.item.render, j.item.diags = &own, slices.Clone(it.diags)
	f.jobs[it.name] = j
	f.runs.start(ctx, j.done, &j.err, func() error { return j.item.draw(ctx) })
	return j
}

// besideReview bounds the renders of one proposal that run or wait at the same time. So a proposal that
// changes thousands of targets does not delay all other renders.
const besideReview = 2

// rendersLike reports whether the renders of two items have the same inputs.
func (it *item) rendersLike(o *item) bool {
	return it.path == o.path && it.view.ID == o.view.ID && it.view.Verify == o.view.Verify && it.view.Snapshot.Revision == o.view.Snapshot.Revision &&
		it.keys.id == o.keys.id && maps.Equal(it.vars, o.vars) && slices.Equal(it.secretVars, o.secretVars) && slices.Equal(it.valueFiles, o.valueFiles)
}

// prepare puts the result of an ended job into the item. Without a result it checks whether the last build is
// still valid, and starts a render if it is not. It returns the job that is still running, if any.
func (f *Fleet) prepare(ctx context.Context, it *item) (*job, error) {
	j := f.jobs[it.name]
	if j != nil && !j.ended() {
		return j, nil
	}
	if j != nil {
		delete(f.jobs, it.name)
		if j.err != nil {
			return nil, j.err
		}
		f.budget.put(it.name, it.render, j.item.render)
		if it.rendersLike(&j.item) {
			it.diags = append(it.diags, j.item.diags[j.had:]...)
			if it.err == nil {
				it.err = j.item.err
			}
			it.render.behind = time.Time{}
			return nil, nil
		}
	}
	if it.upToDate() {
		it.render.behind = time.Time{}
		return nil, ctx.Err()
	}
	return f.start(ctx, it), nil
}

// renderAll starts renders of the items, and waits for them up to patience. A negative patience
// waits without a limit.
func (f *Fleet) renderAll(ctx context.Context, items []*item, patience time.Duration) error {
	kept, late, err := f.startAll(ctx, items)
	if err != nil {
		return err
	}
	outstanding, err := f.waitFor(ctx, late, patience)
	if err != nil {
		return err
	}
	if !outstanding {
		select {
		case <-f.runs.ended: // the composition has taken all results
		default:
		}
	}
	for name, j := range f.jobs {
		if kept[name] == nil && j.ended() {
			delete(f.jobs, name)
		}
	}
	f.renders = kept
	f.budget.setTargets(kept) // including builds of ended jobs
	f.budget.sweep()
	for _, it := range items {
		if over := it.render.over; over != nil {
			it.diags = append(it.diags, over.diagnostic(f.budget))
		}
	}
	return nil
}

// startAll starts the renders that are due. It returns the last builds of all items by name, and the items
// that wait for a render.
func (f *Fleet) startAll(ctx context.Context, items []*item) (kept map[string]*rendered, late []*item, err error) {
	kept = make(map[string]*rendered, len(items))
	for _, it := range items {
		it.written = f.o.Written
		if it.budget, it.render = f.budget, f.renders[it.name]; it.render == nil {
			it.render = standsFor(f.followed[it.name])
		}
		kept[it.name] = it.render
	}
	f.budget.setTargets(kept)
	for _, it := range items {
		j, err := f.prepare(ctx, it)
		if err != nil {
			return nil, nil, err
		}
		if j != nil {
			late = append(late, it)
		}
	}
	return kept, late, nil
}

// waitFor waits for the renders of items up to patience, and takes their results. outstanding says that some
// have not ended.
func (f *Fleet) waitFor(ctx context.Context, late []*item, patience time.Duration) (outstanding bool, err error) {
	var enough <-chan time.Time
	if patience >= 0 {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		enough = timer.C
	}
	waiting := true
	for _, it := range late {
		j := f.jobs[it.name]
		for waiting && !j.ended() {
			select {
			case <-j.done:
			case <-enough:
				waiting = false
			case <-ctx.Done():
				return false, ctx.Err()
			}
		}
		if j.ended() {
			if j, err = f.prepare(ctx, it); err != nil {
				return false, err
			}
		}
		if j != nil { // it continues, or was of an earlier commit and starts again
			outstanding = true
			it.await(j)
		}
	}
	return outstanding, nil
}

// await notes that the item's newest commit is still being rendered. A repeated render of the same commit
// does not count.
func (it *item) await(j *job) {
	r := it.render
	if r.revision == it.view.Snapshot.Revision && r.of(it) {
		return
	}
	it.since = j.since
	if r.behind.IsZero() {
		r.behind = j.since
	}
}

// Ended receives a value when a render has ended that no composition waited for.
func (f *Fleet) Ended() <-chan struct{} { return f.runs.ended }

// Wait waits for all running renders. They end at the latest with the context of the composition that started them.
func (f *Fleet) Wait() { f.runs.running.Wait() }

// runs are the renders that run in the background.
type runs struct {
	running sync.WaitGroup
	// ended receives a value when a render has ended.
	ended chan struct{}
	// slots bound the renders that run or wait at the same time. If slots is nil, there is no bound.
	slots chan struct{}
}

// start runs do in the background, as soon as there is a slot. It puts the error into err and closes done
// when do has ended.
func (r *runs) start(ctx context.Context, done chan struct{}, err *error, do func() error) {
	r.running.Go(func() {
		defer func() {
			close(done)
			select {
			case r.ended <- struct{}{}:
			default:
			}
		}()
		if *err = r.enter(ctx); *err == nil {
			defer r.leave()
			*err = do()
		}
	})
}

// enter waits for a slot.
func (r *runs) enter(ctx context.Context) error {
	if r.slots == nil {
		return nil
	}
	select {
	case r.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *runs) leave() {
	if r.slots != nil {
		<-r.slots
	}
}
