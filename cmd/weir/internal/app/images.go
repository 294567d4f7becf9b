package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/fleet"
	"github.com/weir-gitops/weir/reconciler/newer"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/edit"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest/kinds"
	"github.com/weir-gitops/weir/source/snapshot"
	"github.com/weir-gitops/weir/source/transport"
	"github.com/weir-gitops/weir/status/proposal"
	"github.com/weir-gitops/weir/status/proposal/images"
	"github.com/weir-gitops/weir/status/pulls"
)

// imaging proposes newer images of a source, with a token that is in no other client.
type imaging struct {
	*images.Source
	pusher *transport.Pusher
}

// makeImages makes what proposes newer images, for the sources of which the configuration wants
// that.
func (g *generation) makeImages() error {
	g.images = map[string]*imaging{}
	for _, f := range g.config.Forges {
		every, is := g.config.Proposes(f)
		if !is {
			continue
		}
		client, pusher, err := g.pushing(f)
		if err != nil {
			return err
		}
		a, of := g.app, g.followers[f.Source]
		name, address := f.Push.By()
		g.images[f.Source] = &imaging{images.New(images.Options{
			Options: proposal.Options{
				Source: f.Source, PageURL: g.config.PublicURL, Author: name, Address: address, Every: every,
				Forge: client, Pusher: pusher, Redact: a.o.Secrets.Redact, Event: a.board.Event, Logger: a.log,
			},
			Settle: min(every, settleImages), Git: of.git, Fleet: pinner{g, f.Source},
			Counted: func(pools, open int) { a.metrics.Images(f.Source, pools, open) },
		}), pusher}
	}
	return nil
}

// settleImages is how long after a look at images the next one is that a commit asks for.
const settleImages = 2 * time.Minute

// propose turns while the daemon runs.
func (g *generation) propose(ctx context.Context, name string, s *imaging) error {
	defer s.pusher.Close()
	return g.proposing(ctx, name, "newer images", nil, func(store state.Store, of *follower) (time.Time, error) {
		head := of.now().Snapshot
		if head.Revision == "" || g.base.Load() == nil {
			return time.Now().Add(unled), nil
		}
		again, err := s.Turn(ctx, store, proposal.Now{Time: time.Now().UTC(), Head: head.Revision, Base: of.branch()})
		if errors.Is(err, pulls.ErrEarly) || errors.Is(err, pulls.ErrBusy) {
			return time.Now().Add(unled), nil
		}
		return again, err
	})
}

// pinner finds newer images of a source's pools and writes pins. It looks with the roles for
// plans, as for pull requests.
type pinner struct {
	g      *generation
	source string
}

// look plans a commit: all targets of the source, or those that it changes.
func (p pinner) look(ctx context.Context, s snapshot.Snapshot, all bool) (*fleet.Base, *fleet.Review, map[string]*plan.Report, error) {
	base := p.g.base.Load()
	if base == nil {
		return nil, nil, nil, pulls.ErrEarly
	}
	if s.Revision == "" {
		s = base.View(p.source).Snapshot
	}
	review, list, err := p.g.app.drafts.Trusted(ctx, base, fleet.Proposal{Source: p.source, Snapshot: s, Owner: "images of " + p.source, All: all})
	reports := map[string]*plan.Report{}
	for _, r := range list {
		reports[r.Target] = r
	}
	return base, review, reports, err
}

// Survey implements images.Fleet.
func (p pinner) Survey(ctx context.Context) (out images.Survey, err error) {
	began := time.Now()
	base, review, reports, err := p.look(ctx, snapshot.Snapshot{}, true)
	if err != nil {
		return out, err
	}
	out.Head, out.Unread = base.View(p.source).Snapshot.Revision, map[string]string{}
	plans := map[string]*plan.Plan{}
	for _, name := range review.Touched {
		switch r := reports[name]; {
		case r == nil:
			out.Unread[name] = "it was not planned"
		case r.Plan != nil && r.Err == nil:
			plans[name] = r.Plan
		default:
			out.Unread[name] = faultOf(r)
		}
	}
	var pools []newer.Pool
	for _, b := range review.Batches {
		if b.Scope == nil {
			continue // its targets have no plan
		}
		for i := range b.Targets {
			if d := &b.Targets[i]; !d.Whole && out.Unread[d.Policy.Target] == "" { // pools may be missing
				out.Unread[d.Policy.Target] = partly(d)
			}
		}
		found, err := b.Newer(ctx, plans, began)
		if err != nil {
			return out, err
		}
		pools = append(pools, found...)
	}
	out.Families, out.Gaps = newer.Find(pools)
	return out, nil
}

// partly says why a target's manifests do not hold all that they should.
func partly(d *reconciler.Desired) string {
	if i := slices.IndexFunc(d.Diagnostics, func(x diag.Diagnostic) bool { return x.Severity == diag.Error }); i >= 0 {
		return d.Diagnostics[i].String()
	}
	return "its manifests have faults"
}

// faultOf is what keeps a target from being planned.
func faultOf(r *plan.Report) string {
	if r.Err != nil {
		return r.Err.Error()
	}
	for _, d := range r.Diagnostics {
		if d.Severity == diag.Error {
			return d.String()
		}
	}
	return "it has no plan"
}

// Pin implements images.Fleet.
func (p pinner) Pin(ctx context.Context, on string, pins []newer.Pin) (out images.Pinned, err error) {
	base := p.g.base.Load()
	if base == nil {
		return out, pulls.ErrEarly
	}
	git := p.g.followers[p.source].git
	head, err := git.At(ctx, on)
	if err != nil {
		return out, err
	}
	before, err := base.Review(ctx, p.g.app.planAccounts, fleet.Proposal{Source: p.source, Snapshot: head, Owner: "images of " + p.source, All: true})
	if err != nil {
		return out, err
	}
	var places []edit.Place
	for _, at := range before.Places {
		places = append(places, edit.Place{Name: at.Name, Dir: at.Dir, Options: at.Options})
	}
	set, err := p.write(ctx, head, places, pins, &out)
	if err != nil || len(set) == 0 {
		return out, err
	}
	out.Files = set
	edited, err := git.Edited(ctx, on, set)
	if err != nil {
		return out, err
	}
	_, review, reports, err := p.look(ctx, edited, false)
	if err != nil {
		return out, err
	}
	after := setsOf(review)
	for _, pin := range out.Pins {
		if got := pinOf(after[pin.Target], pin.Pool); got != pin.To {
			return out, fmt.Errorf("pool %s of target %s would have the image %q, and not %s", pin.Pool, pin.Target, got, pin.To)
		}
	}
	for _, at := range review.Places {
		if slices.Contains(review.Touched, at.Name) {
			out.Plans = append(out.Plans, planned(at, reports[at.Name]))
		}
	}
	return out, nil
}

// write sets the pins in files. What one pin cannot have is left out whole.
func (p pinner) write(ctx context.Context, head snapshot.Snapshot, places []edit.Place, pins []newer.Pin, out *images.Pinned) (map[string][]byte, error) {
	refused := map[string]string{}
	for {
		var wishes []edit.Wish
		pinsOf := map[string][]newer.Pin{}
		for _, pin := range pins {
			id := pin.Target + " " + pin.At.Object.String()
			if refused[id] != "" {
				continue
			}
			if pinsOf[id] = append(pinsOf[id], pin); len(pinsOf[id]) > 1 {
				continue // it shares the object
			}
			wishes = append(wishes, edit.Wish{Place: pin.Target, Object: pin.At.Object, Field: pin.At.Field, Value: pin.To})
			if pin.At.Remember != "" {
				wishes = append(wishes, edit.Wish{Place: pin.Target, Object: pin.At.Object, Field: kinds.AnnotationPath(kinds.AnnotationImageFamily), Value: pin.At.Remember})
			}
		}
		if len(wishes) == 0 {
			return nil, nil
		}
		got, err := edit.Set(ctx, head.Tree, places, wishes)
		if err != nil {
			return nil, err
		}
		if len(got.Refused) == 0 {
			for _, pin := range pins {
				if why := refused[pin.Target+" "+pin.At.Object.String()]; why != "" {
					out.Refused = append(out.Refused, images.Refusal{Pin: pin, Text: why})
				} else {
					out.Pins = append(out.Pins, pin)
				}
			}
			return got.Files, nil
		}
		for _, r := range got.Refused {
			refused[r.Place+" "+r.Object.String()] = cmp.Or(r.Text, "it cannot be written")
		}
	}
}

// setsOf are the intents of targets.
func setsOf(review *fleet.Review) map[string]*intent.Set {
	out := map[string]*intent.Set{}
	for _, b := range review.Batches {
		for i := range b.Targets {
			out[b.Targets[i].Policy.Target] = b.Targets[i].Set
		}
	}
	return out
}

// pinOf is the image or release that a pool is pinned to.
func pinOf(set *intent.Set, pool string) string {
	if set == nil {
		return ""
	}
	p := set.Pool(pool)
	if p == nil {
		return ""
	}
	_, at := p.Newest("")
	return at.Has
}

// planned is what a change of images does to a target.
func planned(at fleet.Place, r *plan.Report) images.Planned {
	out := images.Planned{Target: at.Name}
	if len(at.Windows) > 0 {
		var windows []string
		for _, w := range at.Windows {
			windows = append(windows, w.Words())
		}
		out.Schedule = "in its windows: " + strings.Join(windows, "; ")
	}
	if len(at.DependsOn) > 0 {
		out.Schedule = strings.TrimPrefix(out.Schedule+", after "+strings.Join(at.DependsOn, ", "), ", ")
	}
	if r == nil || r.Plan == nil || r.Err != nil {
		out.Fault = "it was not planned"
		if r != nil {
			out.Fault = faultOf(r)
		}
		return out
	}
	pools := map[string]bool{}
	for _, s := range r.Plan.Steps {
		if s.Rolls() {
			pools[s.Pool] = true
			out.Machines += s.Instances
		}
	}
	out.Pools = len(pools)
	return out
}
