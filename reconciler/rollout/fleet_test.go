package rollout

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/render/intent"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// fleet is a source whose pools do at once what their permits say.
type fleet struct {
	t       *testing.T
	in      Input
	record  Record
	events  []Event
	asks    []Ask
	answers func(Ask) Answer
}

func newFleet(t *testing.T, spec Spec, pools int) *fleet {
	if spec.Key.Name == "" {
		spec.Key = intent.Key{Namespace: "default", Name: "nodes"}
	}
	f := &fleet{t: t, in: Input{Revision: "c0", Specs: []Spec{spec}, Missing: map[string]string{}, Answers: map[string]Answer{}, Now: start}}
	for i := range pools {
		target := fmt.Sprintf("t%d", i%2)
		f.in.Pools = append(f.in.Pools, Pool{
			ID: ID{target, fmt.Sprintf("default/p%d", i)}, Namespace: "default", Cluster: target, Revision: "c0", Hash: "old", Machines: 10, New: 10,
		})
	}
	f.next(0)
	return f
}

func (f *fleet) next(after time.Duration) {
	now := f.in.Now.Add(after)
	f.nextKnown(after, map[string]time.Time{"t0": now, "t1": now, "t2": now})
}

// nextKnown is a turn in which targets were asked anew since then.
func (f *fleet) nextKnown(after time.Duration, fresh map[string]time.Time) {
	f.in.Now, f.in.Fresh = f.in.Now.Add(after), fresh
	if f.answers != nil {
		for _, a := range f.asks {
			f.in.Answers[a.Key()] = f.answers(a)
		}
	}
	out := Next(f.record, f.in)
	f.record, f.asks, f.events = out.Record, out.Asks, append(f.events, out.Events...)
}

// commit changes what machines of all pools are.
func (f *fleet) commit(revision, hash string) {
	f.in.Revision = revision
	for i := range f.in.Pools {
		p := &f.in.Pools[i]
		p.Revision = revision
		if p.Hash != hash {
			p.Earlier = &Version{Template: "lt", Hash: p.Hash}
			p.Hash, p.New, p.Pending, p.Failed = hash, 0, true, ""
		}
	}
}

// roll lets each pool go as far as its permit says, and names those that moved.
func (f *fleet) roll() (moved []string) {
	for i := range f.in.Pools {
		p := &f.in.Pools[i]
		permit, _ := f.record.PermitOf(p.ID)
		if permit.Hash != p.Hash || permit.Share == 0 || !p.Pending {
			continue
		}
		if to := Need(p.Machines, permit.Share); to > p.New {
			p.New = to
			p.Pending = to < p.Machines
			moved = append(moved, fmt.Sprintf("%s:%d", strings.TrimPrefix(p.Pool, "default/"), to))
		}
	}
	return moved
}

// story lists the pools that change in each turn, until none does for ten minutes.
func (f *fleet) story() string {
	var out []string
	for quiet := 0; quiet < 10; quiet++ {
		f.next(time.Minute)
		if moved := f.roll(); len(moved) > 0 {
			quiet = 0
			out = append(out, strings.Join(moved, " "))
		}
	}
	return strings.Join(out, ", then ")
}

func (f *fleet) permit(pool string) Permit {
	for _, p := range f.record.Permits {
		if p.Pool == "default/"+pool {
			return p
		}
	}
	f.t.Fatalf("%s has no permit", pool)
	return Permit{}
}
