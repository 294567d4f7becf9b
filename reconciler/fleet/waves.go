package fleet

import (
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/plan"
)

// chains finds the targets that others come after, by way of others too.
type chains struct {
	direct map[string][]string // by target
	// lists are those that were found, by the direct ones; nil while one is.
	lists map[string][]string
}

// before are the targets before a target, the first of all first. Those with the same
// direct ones share one list, so that hundreds after hundreds cost little.
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

// await has plans say which target moves before theirs: of those, that alone is known
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
