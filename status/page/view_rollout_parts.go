package page

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/status/current"
	"github.com/weir-gitops/weir/status/report"
	"github.com/weir-gitops/weir/status/waves"
)

// turnView is a target that waits because of the configuration.
type turnView struct {
	linked
	Waits string
}

// rolloutActions contains the possible actions on a FleetRollout.
type rolloutActions struct {
	*Viewer
	// Revision is the change on the page. It prevents that a form stops a different change.
	Name, Source, Revision, Back string
	Paused                       *wordView
	// Abort says that there is a change that can be stopped.
	Abort bool
}

// Actions returns the possible actions on the FleetRollout.
func (p rolloutPage) Actions() rolloutActions {
	return rolloutActions{
		Viewer: p.Viewer, Name: p.Name, Source: p.Source, Revision: p.Revision, Back: p.Link, Paused: p.Paused,
		Abort: p.Began.Exact != "" && p.Ended.Exact == "" && p.Stopped == nil,
	}
}

// governing returns the FleetRollouts whose waves contain a pool.
func (w *views) governing(target, pool string) (out []governed) {
	list, _ := w.rollouts()
	for _, r := range list {
		if p, is := r.Governs(target, pool); is {
			g := governed{linked: linked{r.Name, rolloutLink(r.Source, r.Name)}, Wave: p.Wave, Phase: strings.ToLower(r.Phase), Mark: phaseMarks[r.Phase]}
			if busyRollout(r) {
				g.Waits = p.Waits
			}
			out = append(out, g)
		}
	}
	return out
}

// governed is a FleetRollout on the page of one of its pools.
type governed struct {
	linked
	Wave, Phase, Waits string
	Mark               report.Phase
}

// headlineOf describes the state of a rollout in a sentence, for the top of its page.
func headlineOf(r waves.Rollout) string {
	left := plural(int(r.Machines.Old), "machine") + " left"
	switch r.Phase {
	case waves.Stopped:
		return strings.TrimSpace("Stopped in "+r.Wave) + ", " + left + "."
	case waves.Paused:
		if r.Wave == "" {
			return "Paused: nothing starts."
		}
		return "Paused in " + r.At() + ", " + left + "."
	case waves.Idle:
		return "No rollout in progress."
	case waves.Gathering:
		return "Collecting the pools to roll."
	case waves.Baking:
		return "Baking: " + r.At() + ", " + left + "."
	case waves.Done, waves.Incomplete:
		if r.Failed > 0 {
			return fmt.Sprintf("Ended: %d of %s failed.", r.Failed, plural(len(r.Pools), "pool"))
		}
		if r.Phase == waves.Incomplete {
			return "Ended: not all pools have received the change."
		}
		return "All " + plural(len(r.Pools), "pool") + " rolled."
	}
	return "Rolling out: " + r.At() + ", " + left + "."
}

// badView is a change that is no longer rolled out, with its pools.
type badView struct {
	Hash, Why string
	Fields    string
	Found     moment
	Pools     []linked
	More      int
}

// badViews groups stopped changes by their reason.
func badViews(on *current.State, list []waves.BadHash) (out []badView) {
	for _, b := range list {
		i := slices.IndexFunc(out, func(v badView) bool { return v.Hash == b.Hash && v.Why == b.Why && v.Fields == b.Fields })
		if i < 0 {
			i = len(out)
			out = append(out, badView{Hash: b.Hash, Why: b.Why, Fields: b.Fields, Found: momentOf(on, b.At)})
		}
		if v := &out[i]; len(v.Pools) < shownBad {
			v.Pools = append(v.Pools, linked{b.Target + " " + b.Pool, keyLink(b.Target, b.Pool)})
		} else {
			v.More++
		}
	}
	return out
}
