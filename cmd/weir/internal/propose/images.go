package propose

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/fleet"
	"github.com/weir-gitops/weir/reconciler/imageupdates"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/render/edit"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest/kinds"
	"github.com/weir-gitops/weir/source/snapshot"
	"github.com/weir-gitops/weir/status/proposal/images"
)

// Images finds newer images of a source's pools and writes pins. It implements images.Fleet.
type Images struct{ Source }

func (p Images) owner() string { return "images of " + p.Name }

// Survey implements images.Fleet.
func (p Images) Survey(ctx context.Context) (out images.Survey, err error) {
	began := time.Now()
	head, err := p.followed()
	if err != nil {
		return out, err
	}
	review, reports, err := p.plan(ctx, head, p.owner(), nil, true)
	if err != nil {
		return out, err
	}
	out.Head, out.Unread = head.Revision, map[string]string{}
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
	var pools []imageupdates.Pool
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
	out.Families, out.Gaps = imageupdates.Find(pools)
	return out, nil
}

// Pin implements images.Fleet.
func (p Images) Pin(ctx context.Context, on string, pins []imageupdates.Pin) (out images.Pinned, err error) {
	head, err := p.Git.At(ctx, on)
	if err != nil {
		return out, err
	}
	before, err := p.render(ctx, head, p.owner(), nil, true)
	if err != nil {
		return out, err
	}
	set, err := p.pin(ctx, head, before, pins, &out)
	if err != nil || len(set) == 0 {
		return out, err
	}
	out.Files = set
	edited, err := p.Git.Edited(ctx, on, set)
	if err != nil {
		return out, err
	}
	review, reports, err := p.plan(ctx, edited, p.owner(), nil, false)
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

// pin sets the pins in files. If part of a pin cannot be set, the whole pin is left out.
func (p Images) pin(ctx context.Context, head snapshot.Snapshot, of *fleet.Review, pins []imageupdates.Pin, out *images.Pinned) (map[string][]byte, error) {
	refused := map[string]string{}
	for {
		var changes []edit.Change
		pinsOf := map[string][]imageupdates.Pin{}
		for _, pin := range pins {
			id := pin.Target + " " + pin.At.Object.String()
			if refused[id] != "" {
				continue
			}
			if pinsOf[id] = append(pinsOf[id], pin); len(pinsOf[id]) > 1 {
				continue // it shares the object
			}
			changes = append(changes, edit.Change{Place: pin.Target, Object: pin.At.Object, Field: pin.At.Field, Value: pin.To})
			if pin.At.Remember != "" {
				changes = append(changes, edit.Change{Place: pin.Target, Object: pin.At.Object, Field: kinds.AnnotationPath(kinds.AnnotationImageFamily), Value: pin.At.Remember})
			}
		}
		if len(changes) == 0 {
			return nil, nil
		}
		got, err := write(ctx, head.Tree, of, changes)
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

// pinOf returns the image or release to which a pool is pinned.
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

// planned returns the effect of a change of images on a target.
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
