package forecast

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/simulate/timeline"
	"github.com/weir-gitops/weir/status/wording"
)

// action is a change of one kind to several pools in one wave, from the first start to the last end.
type action struct {
	wave string
	// rolls says that machines are replaced.
	rolls        bool
	pools        []string
	begins, ends float64
	// endless says that the change of at least one pool does not end.
	endless bool
	// machines is the number of replaced machines, and above the maximum surge of one pool above its
	// desired size.
	machines, above int32
	// started and ended are the numbers of machines by which pools grow and shrink.
	started, ended int32
}

// mostNamed is the maximum number of pools that an action names.
const mostNamed = 3

// actions returns the changes of a timeline's pools, grouped by kind and wave, in the order of their start.
func actions(t *timeline.Timeline) []action {
	type kind struct {
		wave  string
		rolls bool
	}
	at := map[kind]int{}
	var out []action
	for _, p := range t.Pools {
		replaced := p.Replacements()
		k := kind{waveAt(t, p), replaced > 0}
		n, known := at[k]
		if !known {
			n, at[k] = len(out), len(out)
			out = append(out, action{wave: k.wave, rolls: k.rolls, begins: p.Begins})
		}
		a := &out[n]
		a.pools = append(a.pools, strings.TrimSpace(p.Target+" "+p.Name))
		a.begins, a.ends = min(a.begins, p.Begins), max(a.ends, p.Ends)
		a.endless = a.endless || p.Ends == 0 && p.Begins > 0
		a.machines += replaced
		a.started, a.ended = a.started+max(0, p.Growth()), a.ended+max(0, -p.Growth())
		a.above = max(a.above, p.MostAbove)
	}
	slices.SortStableFunc(out, func(a, b action) int { return cmp.Compare(a.begins, b.begins) })
	return out
}

// waveAt returns the wave in which a pool starts, "" without waves.
func waveAt(t *timeline.Timeline, p timeline.Pool) (name string) {
	for _, w := range t.Waves {
		if w.At <= p.Begins {
			name = w.Name
		}
	}
	return name
}

// WavesOf returns the waves in which the pools of a target start, in order.
func WavesOf(t *timeline.Timeline, target string) (out []string) {
	for _, w := range t.Waves {
		if slices.ContainsFunc(t.Pools, func(p timeline.Pool) bool { return p.Target == target && waveAt(t, p) == w.Name }) && !slices.Contains(out, w.Name) {
			out = append(out, w.Name)
		}
	}
	return out
}

// text describes an action.
func (a action) text() string {
	does := "change"
	if a.rolls {
		does = "roll"
	}
	text := strings.Join(a.pools[:min(len(a.pools), mostNamed)], ", ")
	if n := len(a.pools) - mostNamed; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	if len(a.pools) == 1 {
		text += " " + does + "s"
	} else {
		text += " " + does
	}
	if a.wave != "" {
		text = wording.Clean(a.wave) + ": " + text
	}
	return text
}

// counted describes the numbers of machines of an action.
func (a action) counted() string {
	var parts []string
	for _, c := range []struct {
		n    int32
		what string
	}{{a.machines, "replaced"}, {a.started, "started"}, {a.ended, "ended"}} {
		if c.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", c.n, c.what))
		}
	}
	if a.machines > 0 && a.above > 0 {
		parts = append(parts, fmt.Sprintf("up to %d more in a pool", a.above))
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

func (a action) until() string {
	if a.endless {
		return "–"
	}
	return clock(a.ends)
}
