package fleet

import (
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/plan"
)

// chains finds all targets that a target waits for, directly or through other targets.
type chains struct {
	direct map[string][]string // by target
	// lists are the lists that were found, by the direct dependencies. A list is nil while it is being found.
	lists map[string][]string
}

// before returns the targets that a target waits for, in order. Targets with the same direct dependencies
// share one list, so that hundreds of targets that wait for hundreds of others need little memory.
func (c *chains) before(target string) []string {
	direct := c.direct[target]
	if len(direct) == 0 {
		return nil
	}
	key := strings.Join(direct, "\n")
	if list, known := c.lists[key]; known {
		return list
	}
	c.lists[key] = nil // the configuration has no cycle; if it had, it would end here
	var out []string
	seen, walked := map[string]bool{}, map[*string]bool{}
	add := func(name string) {
		if !seen[name] {
			seen[name] = true
			out = append(out, name)
		}
	}
	for _, name := range direct {
		if list := c.before(name); len(list) > 0 && !walked[&list[0]] {
			walked[&list[0]] = true
			for _, earlier := range list {
				add(earlier)
			}
		}
		add(name)
	}
	c.lists[key] = out
	return out
}

// await adds to plans the names of the targets that change earlier. Nothing else is known of those targets
// before the proposal is followed.
func (r *Review) await(reports []*plan.Report) {
	moves := map[string]bool{}
	for _, report := range reports {
		moves[report.Target] = report.Plan == nil || !report.Plan.Empty()
	}
	for _, report := range reports {
		on := r.after[report.Target]
		if i := slices.IndexFunc(on, func(earlier string) bool { return moves[earlier] }); i >= 0 && report.Plan != nil {
			report.Plan.Await(plan.WaitText(on[i], "moves first"))
		}
	}
}
