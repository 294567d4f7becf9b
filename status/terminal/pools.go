package terminal

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/status/report"
	"github.com/weir-gitops/weir/status/wording"
)

// Mark summarizes a target's plan for one of its pools.
type Mark struct {
	// Held describes the hold of a step, empty if no step is held.
	Held  string `json:"held,omitempty"`
	Drift bool   `json:"drift,omitempty"`
}

// Marks contains the marks of pools by target and by namespace/name. Seen is the time at which a pass last
// read each target, zero if a pass has just read it.
type Marks struct {
	Pools map[[2]string]Mark
	Seen  map[string]time.Time
	Now   time.Time
	// Targets contains the targets by name.
	Targets map[string]Target
}

// Add adds the marks of a target's plan.
func (m *Marks) Add(target string, steps []step.Step) {
	if m.Pools == nil {
		m.Pools = map[[2]string]Mark{}
	}
	for _, s := range steps {
		for _, pool := range append([]string{s.Pool}, s.Pools...) {
			key := [2]string{target, pool}
			mark := m.Pools[key]
			if s.Held != "" && mark.Held == "" {
				mark.Held = wording.HeldUntil(target, s)
			}
			mark.Drift = mark.Drift || s.Drift != nil
			m.Pools[key] = mark
		}
	}
}

func (m Marks) markOf(s plan.PoolStatus) Mark {
	return m.Pools[[2]string{s.Target, s.Namespace + "/" + s.Name}]
}

// Beside describes the held steps of pools that are not in the list, such as the deletion of pools that Git
// no longer contains.
func (m Marks) Beside(pools []plan.PoolStatus) []string {
	here := map[[2]string]bool{}
	for _, s := range pools {
		here[[2]string{s.Target, s.Namespace + "/" + s.Name}] = true
	}
	var out []string
	for key, mark := range m.Pools {
		if mark.Held != "" && !here[key] {
			out = append(out, "target "+key[0]+": "+key[1]+" is held: "+mark.Held)
		}
	}
	slices.Sort(out)
	return out
}

// Problem reports whether a pool needs a person's attention: it has failed, is held, has drifted, has not
// converged, or the last pass could not read it.
func (m Marks) Problem(s plan.PoolStatus) bool {
	mark := m.markOf(s)
	return m.Targets[s.Target].Stale || !s.Converged || s.FailureMessage != "" || mark.Held != "" || mark.Drift
}

// Target is the state of a target. Phase comes from the daemon. Digest is the digest of its plan,
// which weir approve accepts. If Failed, Diagnostics contains the reasons. Stale means that its pools are
// older than the last pass, which could not read them. LastPass is missing if the pass has just run. Held
// describes the holds of its steps.
type Target struct {
	Name      string    `json:"name"`
	Phase     string    `json:"phase,omitempty"`
	Suspended bool      `json:"suspended"`
	Stale     bool      `json:"stale"`
	Revision  string    `json:"revision,omitempty"`
	LastPass  time.Time `json:"lastPass,omitzero"`
	Digest    string    `json:"digest,omitempty"`
	Held      []string  `json:"held,omitempty"`
	// HeldTo describes the hold of a target whose followed commit cannot be rendered.
	HeldTo      *report.Kept `json:"heldTo,omitempty"`
	Failed      bool         `json:"failed"`
	Diagnostics diag.List    `json:"diagnostics"`
}

// Standing returns the response of the API at /api/v1/pools, with the marks of each pool and with the
// targets. held is the reason why weir writes nothing at all.
func Standing(held string, pools []plan.PoolStatus, configs []plan.LaunchConfigStatus, m Marks, targets []Target) any {
	type marked struct {
		plan.PoolStatus
		Mark
	}
	all := make([]marked, 0, len(pools))
	for _, s := range pools {
		all = append(all, marked{s, m.markOf(s)})
	}
	targets = slices.Clone(targets)
	for i := range targets {
		targets[i].Diagnostics, targets[i].Held = listed(targets[i].Diagnostics), m.heldOf(targets[i].Name)
	}
	return struct {
		Pools         []marked                  `json:"pools"`
		LaunchConfigs []plan.LaunchConfigStatus `json:"launchConfigs"`
		Targets       []Target                  `json:"targets"`
		Held          string                    `json:"held,omitempty"`
	}{all, listed(configs), listed(targets), held}
}

// heldOf returns the holds of a target's pools.
func (m Marks) heldOf(target string) []string {
	var out []string
	for key, mark := range m.Pools {
		if key[0] == target && mark.Held != "" {
			out = append(out, key[1]+": "+mark.Held)
		}
	}
	slices.Sort(out)
	return out
}

// Pools prints a table of pools.
func (p Printer) Pools(pools []plan.PoolStatus, m Marks) {
	if len(pools) == 0 {
		p.line("No pools.")
		return
	}
	columns := []column{{"TARGET", 0}, {"POOL", 0}, {"KIND", 3}, {"PHASE", 0}, {"READY", 0}, {"BOUNDS", 2}, {"TEMPLATE", 1}, {"SEEN", 4}, {"NOTE", 0}}
	var rows [][]tableCell
	for _, s := range pools {
		rows = append(rows, m.row(s))
	}
	if len(m.Seen) == 0 {
		at := slices.IndexFunc(columns, func(c column) bool { return c.head == "SEEN" })
		columns = slices.Delete(columns, at, at+1)
		for i := range rows {
			rows[i] = slices.Delete(rows[i], at, at+1)
		}
	}
	p.table(columns, rows)
}

// row returns the cells of a pool in the table of pools.
func (m Marks) row(s plan.PoolStatus) []tableCell {
	kind := "group"
	if s.Kind == intent.NodegroupPool {
		kind = "nodegroup"
	}
	version, bounds, seen := "-", "-", "-"
	if s.LaunchTemplateVersion != "" {
		version = "v" + wording.Clean(s.LaunchTemplateVersion)
	}
	if s.MaxReplicas > 0 || s.MinReplicas > 0 {
		bounds = fmt.Sprintf("%d-%d", s.MinReplicas, s.MaxReplicas)
	}
	if at := m.Seen[s.Target]; !at.IsZero() {
		seen = ago(m.Now.Sub(at))
	}
	phase := tableCell{string(s.Phase), yellow}
	switch {
	case s.Phase == plan.PhaseFailed || s.FailureMessage != "":
		phase.color = red
	case s.Converged && !m.Targets[s.Target].Stale:
		phase.color = green
	}
	ready := plain(fmt.Sprintf("%d/%d", s.ReadyReplicas, s.DesiredReplicas))
	if s.ReadyReplicas < s.DesiredReplicas {
		ready.color = yellow
	}
	return []tableCell{plain(wording.Clean(s.Target)), plain(wording.Clean(s.Namespace + "/" + s.Name)), plain(kind), phase, ready, plain(bounds), plain(version), {seen, dim}, m.remarkCell(s)}
}

// remarkCell returns the most important remark about a pool, and the marks of its plan.
func (m Marks) remarkCell(s plan.PoolStatus) tableCell {
	mark := m.markOf(s)
	parts := []string{poolRemark(s)}
	if parts[0] != "" && strings.Contains(mark.Held, ", "+parts[0]) {
		parts = nil // the hold already contains it
	}
	color := ""
	if s.FailureMessage != "" {
		color = red
		if !s.FailedSince.IsZero() && len(parts) > 0 {
			parts[0] += " (for " + ago(m.Now.Sub(s.FailedSince)) + ")"
		}
	}
	if mark.Held != "" {
		parts = append(parts, "held: "+mark.Held)
	}
	if mark.Drift {
		parts = append(parts, "drift")
	}
	if m.Targets[s.Target].Suspended {
		parts = append(parts, "suspended")
	}
	if m.Targets[s.Target].Stale {
		color = red
	}
	if color == "" && (mark.Held != "" || mark.Drift) {
		color = yellow
	}
	text := strings.Join(slices.DeleteFunc(parts, func(t string) bool { return t == "" }), "; ")
	switch {
	case !m.Targets[s.Target].Stale:
	case text == "":
		text = "not known: the target fails now"
	default:
		text = "unknown: the target fails now; as last seen: " + text
	}
	return tableCell{text, color}
}

// ago formats a duration with one unit: 12s, 5m, 3h, 9d.
func ago(d time.Duration) string {
	switch d = max(0, d); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return fmt.Sprintf("%dd", d/(24*time.Hour))
}

// Lines returns a line of text for each pool, by target and pool, for output that only appends lines.
func (m Marks) Lines(pools []plan.PoolStatus) map[string]string {
	out := map[string]string{}
	for _, s := range pools {
		text := PoolState(s)
		if n := m.remarkCell(s).text; n != "" && !strings.Contains(text, n) {
			text += "; " + n
		}
		out[wording.Clean(s.Target)+" "+wording.Clean(s.Namespace+"/"+s.Name)] = text
	}
	return out
}
